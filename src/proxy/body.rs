//! The response's body on its way to the client: each frame goes on as it came, or through the tap's filter where the
//! tap caused something that must go. It ends in exactly one of complete, trailers, truncated, or cancelled (dropped
//! before its end).

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::held_reply::Rest;
use super::outlet::Outlet;
use super::reply::Reply;
use super::timeouts::BrokenOff;
use crate::tap::{self, End, Pushed};

/// The body of a relayed response.
pub(super) struct RelayBody {
    reply: Reply,
    outlet: Arc<Outlet>,
    filter: Option<tap::Filter>,
    stage: Stage,
    bodiless: Option<u64>,
    /// Read ahead of the head, and gone on with it.
    read_ahead: VecDeque<Bytes>,
    /// hyper has a frame that may still wait for the client's window, over HTTP/2.
    in_hand: bool,
}

enum Stage {
    /// Frames are still to come from the server.
    Reading,
    /// The server is through; what the filter held still goes out, and trailers behind it.
    Emptying(Option<Frame<Bytes>>),
    /// The server broke off; the error comes out once everything before it has left.
    Failing(BrokenOff),
    /// Over.
    Ended,
}

impl RelayBody {
    /// `bodiless`: the length that the head announces for a body that is not sent (304), or is empty. hyper leaves the
    /// field where it stands only for a body that it has yet to ask.
    pub(super) fn new(
        reply: Reply,
        outlet: Arc<Outlet>,
        filter: Option<tap::Filter>,
        bodiless: Option<u64>,
    ) -> Self {
        let mut body = Self {
            reply,
            outlet,
            filter,
            stage: Stage::Reading,
            bodiless,
            read_ahead: VecDeque::new(),
            in_hand: false,
        };
        if body.reply.is_end_stream() {
            body.complete(End::Complete);
        }
        body
    }

    /// The body begins with bytes that were read before, and that the tap has seen; `rest` is how it goes on.
    pub(super) fn behind(mut self, read_ahead: VecDeque<Bytes>, rest: Rest) -> Self {
        self.read_ahead = read_ahead;
        match rest {
            // A body with a length is over already, see `new`.
            Rest::Reading | Rest::Ended(None) => {}
            Rest::Ended(trailers) => self.stage = Stage::Emptying(trailers),
            Rest::Broken(error) => {
                self.reply.close();
                self.stage = Stage::Failing(error);
            }
        }
        self
    }

    fn complete(&mut self, end: End) {
        self.stage = Stage::Ended;
        self.reply.give_back();
        self.outlet.end(end, true);
    }

    /// The server is through: what the filter holds goes out first.
    fn finish_reading(&mut self, trailers: Option<Frame<Bytes>>) {
        if let Some(filter) = &mut self.filter {
            filter.end();
        }
        self.stage = Stage::Emptying(trailers);
    }

    /// Passes data on: as it is, or into the filter.
    fn relay(&mut self, data: Bytes) -> Option<Frame<Bytes>> {
        let at = self.reply.read_at();
        // A body with a length is not asked again once hyper has counted its bytes.
        let is_last = self.reply.is_end_stream();
        let Some(filter) = &mut self.filter else {
            self.outlet.passed(data.clone(), None, at);
            if is_last {
                self.complete(End::Complete);
            }
            return Some(self.frame(data));
        };
        let (content, next) = match filter.push(data.clone()) {
            Pushed::Content(next, content) => (Some(content), Some(next)),
            Pushed::Queued => (None, None),
        };
        self.outlet.passed(data, content, at);
        if is_last {
            self.finish_reading(None);
        }
        next.map(|next| self.frame(next))
    }

    /// A frame of data. Over HTTP/2 its last byte comes by itself: hyper asks for a frame although the one before still
    /// waits for the client's window, but for the first byte of a frame it does wait, so that whoever is asked again
    /// after a frame of one byte knows that nothing waits any more. A reset would throw it away.
    fn frame(&mut self, mut data: Bytes) -> Frame<Bytes> {
        self.in_hand = self.outlet.is_listed();
        if self.in_hand && data.len() > 1 {
            self.read_ahead.push_front(data.split_off(data.len() - 1));
        }
        Frame::data(data)
    }

    fn take_filtered(&mut self) -> Option<Bytes> {
        self.filter.as_mut().and_then(tap::Filter::next)
    }
}

impl Body for RelayBody {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let this = self.get_mut();
        if std::mem::take(&mut this.in_hand) {
            // Only now is the last frame on its way: a flush before was none of it.
            this.outlet.handed_over();
        }
        loop {
            let next = this.read_ahead.pop_front();
            if let Some(bytes) = next.or_else(|| this.take_filtered()) {
                // What was held since it was read: another flush may have come and gone.
                this.outlet.handed_over();
                return Poll::Ready(Some(Ok(this.frame(bytes))));
            }
            match std::mem::replace(&mut this.stage, Stage::Ended) {
                Stage::Reading => this.stage = Stage::Reading,
                Stage::Emptying(Some(trailers)) => {
                    this.complete(End::Trailers);
                    return Poll::Ready(Some(Ok(trailers)));
                }
                Stage::Emptying(None) => {
                    this.complete(End::Complete);
                    return Poll::Ready(None);
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
            match ready!(Pin::new(&mut this.reply).poll_frame(context)) {
                None => this.finish_reading(None),
                Some(Err(error)) => {
                    // The connection is of no more use.
                    this.reply.close();
                    if let Some(filter) = &mut this.filter {
                        filter.end();
                    }
                    this.stage = Stage::Failing(error);
                }
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => {
                        if let Some(frame) = this.relay(data) {
                            return Poll::Ready(Some(Ok(frame)));
                        }
                    }
                    Err(trailers) => this.finish_reading(Some(trailers)),
                },
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        let emptied = self.filter.is_none() && self.read_ahead.is_empty();
        self.bodiless.is_none() && emptied && matches!(self.stage, Stage::Ended)
    }

    fn size_hint(&self) -> SizeHint {
        match (&self.filter, self.bodiless) {
            (Some(_), _) => SizeHint::default(),
            (None, Some(announced)) => SizeHint::with_exact(announced),
            (None, None) => {
                let ahead: usize = self.read_ahead.iter().map(Bytes::len).sum();
                let mut hint = self.reply.size_hint();
                if let Some(rest) = hint.exact() {
                    hint.set_exact(rest + ahead as u64);
                }
                hint
            }
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
