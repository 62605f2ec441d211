//! The body of a server's answer, with the connection that it comes over: asking for a frame drives the connection.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use super::pool::Lease;
use super::timeouts::{BrokenOff, Watch};

/// Frames up to this size that begin a read are copied, in bytes: what the allocator keeps at hand for each thread. As long as a
/// frame shares hyper's buffer of 8 kB, hyper takes a new one for the next read, and events that come alone would each
/// touch 8 kB of memory that no one has touched for long.
const LARGEST_COPIED: usize = 1000;

/// What is left of an answer once its head is there.
pub(super) struct Reply {
    incoming: Incoming,
    /// Gone when it has been given back, or is of no more use.
    lease: Option<Lease>,
    /// Reads from the connection so far, and when the last one was.
    reads: u64,
    read_at: Instant,
    /// Where a limit is set on how long it may take.
    watch: Option<Box<Watch>>,
}

impl Reply {
    pub(super) fn new(incoming: Incoming, lease: Lease, watch: Option<Box<Watch>>) -> Self {
        Self {
            incoming,
            lease: Some(lease),
            reads: 0,
            read_at: Instant::now(),
            watch,
        }
    }

    /// When the last frame was read. What came in one read has one time, and costs one look at the clock.
    pub(super) fn read_at(&self) -> Instant {
        self.read_at
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
    type Error = BrokenOff;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let this = self.get_mut();
        let Some(lease) = &mut this.lease else {
            return Poll::Ready(None);
        };
        let frame = lease.poll_frame(&mut this.incoming, context);
        let reads = lease.reads();
        let begins_a_read = this.reads != reads;
        if begins_a_read {
            this.reads = reads;
            this.read_at = Instant::now();
        }
        if frame.is_pending()
            && let Some(watch) = &mut this.watch
        {
            let late = ready!(watch.poll_late(this.read_at, context));
            return Poll::Ready(Some(Err(late.into())));
        }
        let frame = frame.map_err(BrokenOff::from);
        if begins_a_read {
            frame.map_ok(|frame| frame.map_data(apart))
        } else {
            frame
        }
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

/// The bytes without the buffer that they were read into, if they are few.
fn apart(data: Bytes) -> Bytes {
    if data.len() <= LARGEST_COPIED {
        Bytes::copy_from_slice(&data)
    } else {
        data
    }
}
