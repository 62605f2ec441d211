//! How long an HTTP/2 connection may stand open without a request. HTTP/1 connections have hyper's own limit on the time
//! for a head; HTTP/2 has none, and a client that never asks would keep its place for ever.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

/// Watches one connection.
pub(super) struct Idle {
    limit: Duration,
    alarm: Pin<Box<Sleep>>,
    /// Streams that had begun at the last look.
    begun: u64,
}

/// The streams of a connection.
pub(super) struct Streams {
    /// Those that are open.
    pub(super) open: usize,
    /// All so far.
    pub(super) begun: u64,
}

impl Idle {
    pub(super) fn new(limit: Duration) -> Self {
        Self {
            limit,
            alarm: Box::pin(sleep(limit)),
            begun: 0,
        }
    }

    /// Ready whenever no stream was open for the limit, and twice that at most.
    pub(super) fn poll(&mut self, streams: &Streams, context: &mut Context<'_>) -> Poll<()> {
        loop {
            ready!(self.alarm.as_mut().poll(context));
            self.alarm.as_mut().reset(Instant::now() + self.limit);
            let is_idle = streams.open == 0 && streams.begun == self.begun;
            self.begun = streams.begun;
            if is_idle {
                // The next look is asked for.
                let _ = self.alarm.as_mut().poll(context);
                return Poll::Ready(());
            }
        }
    }
}
