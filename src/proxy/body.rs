//! The response's body on its way to the client: each frame goes on as it came, or through the tap's filter where the
//! tap caused something that must go. It ends in exactly one of complete, truncated, or cancelled (dropped before).

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use super::outlet::Outlet;
use super::upstream::Lease;
use crate::tap::{self, End};

/// The body of a relayed response.
pub(super) struct RelayBody {
    incoming: Incoming,
    outlet: Arc<Outlet>,
    filter: Option<tap::Filter>,
    lease: Option<Lease>,
    stage: Stage,
    bodiless: Option<u64>,
}

enum Stage {
    /// Frames are still to come from the server.
    Reading,
    /// The server is through; what the filter held still goes out, and the trailers, if any, behind it.
    Emptying(Option<Frame<Bytes>>),
    /// The server broke off; the error comes out once everything before it has left.
    Failing(hyper::Error),
    /// Over.
    Ended,
}

impl RelayBody {
    /// `bodiless`: the length that the head announces for a body that is not sent (304, or the answer to HEAD).
    pub(super) fn new(
        incoming: Incoming,
        outlet: Arc<Outlet>,
        filter: Option<tap::Filter>,
        lease: Lease,
        bodiless: Option<u64>,
    ) -> Self {
        let mut body = Self {
            incoming,
            outlet,
            filter,
            lease: Some(lease),
            stage: Stage::Reading,
            bodiless,
        };
        if body.incoming.is_end_stream() {
            body.complete();
        }
        body
    }

    fn complete(&mut self) {
        self.stage = Stage::Ended;
        if let Some(lease) = self.lease.take() {
            lease.give_back();
        }
        self.outlet.end(End::Complete, true);
    }

    /// The server is through: what the filter holds goes out first, then the trailers. Returns them when nothing stands
    /// before them.
    fn finish_reading(&mut self, trailers: Option<Frame<Bytes>>) -> Option<Frame<Bytes>> {
        match &mut self.filter {
            Some(filter) => {
                filter.end();
                self.stage = Stage::Emptying(trailers);
                None
            }
            None => {
                self.complete();
                trailers
            }
        }
    }

    fn take_filtered(&mut self) -> Option<Bytes> {
        self.filter.as_mut().and_then(tap::Filter::next)
    }
}

impl Body for RelayBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = self.get_mut();
        loop {
            if let Some(bytes) = this.take_filtered() {
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
            match std::mem::replace(&mut this.stage, Stage::Ended) {
                Stage::Reading => this.stage = Stage::Reading,
                Stage::Emptying(trailers) => {
                    // Nobody asks again after the trailers.
                    this.complete();
                    return Poll::Ready(trailers.map(Ok));
                }
                Stage::Failing(error) => {
                    if this.outlet.poll_flushed(context).is_pending() {
                        this.stage = Stage::Failing(error);
                        return Poll::Pending;
                    }
                    this.outlet.end(End::Truncated, false);
                    return Poll::Ready(Some(Err(error)));
                }
                Stage::Ended => return Poll::Ready(None),
            }
            match ready!(Pin::new(&mut this.incoming).poll_frame(context)) {
                None => {
                    this.finish_reading(None);
                }
                Some(Err(error)) => {
                    // The connection is of no more use.
                    this.lease = None;
                    if let Some(filter) = &mut this.filter {
                        filter.end();
                    }
                    this.stage = Stage::Failing(error);
                }
                Some(Ok(frame)) => {
                    let frame = match frame.into_data() {
                        Ok(data) => {
                            this.outlet.passed(data.clone(), Instant::now());
                            let frame = match &mut this.filter {
                                Some(filter) => {
                                    filter.push(data);
                                    None
                                }
                                None => Some(Frame::data(data)),
                            };
                            // A body with a length is not asked again once hyper has counted its bytes.
                            if this.incoming.is_end_stream() {
                                this.finish_reading(None);
                            }
                            frame
                        }
                        Err(trailers) => this.finish_reading(Some(trailers)),
                    };
                    if let Some(frame) = frame {
                        return Poll::Ready(Some(Ok(frame)));
                    }
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.bodiless.is_none() && self.filter.is_none() && matches!(self.stage, Stage::Ended)
    }

    fn size_hint(&self) -> SizeHint {
        match (&self.filter, self.bodiless) {
            (Some(_), _) => SizeHint::default(),
            (None, Some(announced)) => SizeHint::with_exact(announced),
            (None, None) => self.incoming.size_hint(),
        }
    }
}

impl Drop for RelayBody {
    fn drop(&mut self) {
        match self.stage {
            Stage::Ended => {}
            Stage::Failing(_) => self.outlet.end(End::Truncated, false),
            Stage::Reading | Stage::Emptying(_) => self.outlet.end(End::Cancelled, false),
        }
    }
}
