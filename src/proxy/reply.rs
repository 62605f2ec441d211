//! The body of a server's answer, with the connection that it comes over: asking for a frame drives the connection.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use super::pool::Lease;

/// What is left of an answer once its head is there.
pub(super) struct Reply {
    incoming: Incoming,
    /// Gone when it has been given back, or is of no more use.
    lease: Option<Lease>,
}

impl Reply {
    pub(super) fn new(incoming: Incoming, lease: Lease) -> Self {
        Self {
            incoming,
            lease: Some(lease),
        }
    }

    /// All of it was read: its connection may serve another request.
    pub(super) fn give_back(&mut self) {
        if let Some(lease) = self.lease.take() {
            lease.give_back();
        }
    }

    /// Its connection is of no more use.
    pub(super) fn close(&mut self) {
        self.lease = None;
    }
}

impl Body for Reply {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        if let ready @ Poll::Ready(_) = Pin::new(&mut self.incoming).poll_frame(context) {
            return ready;
        }
        let Some(lease) = &mut self.lease else {
            return Poll::Pending;
        };
        lease.drive(context);
        Pin::new(&mut self.incoming).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
