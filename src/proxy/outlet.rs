//! The seam between a client's socket and the response body that is being written to it.
//!
//! Two things must happen when bytes have really left, and only the socket knows that moment:
//!
//! - the tap looks at them (bytes first, numbers second: see [`Outlet::passed`]);
//! - an error that the body holds back may come out. hyper drops what it has buffered, the head included, as soon as a
//!   body fails; so the body waits until hyper has flushed everything (see [`Outlet::poll_flushed`]). hyper calls
//!   `poll_flush` of the socket only when its own buffer is empty, which is the mark.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Instant;

use bytes::Bytes;
use hyper::rt::{Read, ReadBufCursor, Write};

use crate::tap;

/// Reads that wait for their look at most; more than hyper ever buffers of small reads.
const MOST_WAITING: usize = 64;

/// What a connection's socket and the body on it tell each other. One response at a time.
#[derive(Default)]
pub(super) struct Outlet(Mutex<State>);

#[derive(Default)]
struct State {
    exchange: Option<tap::Exchange>,
    waiting: Vec<(Bytes, Instant)>,
    end: Option<tap::End>,
    flush: Flush,
}

#[derive(Default)]
enum Flush {
    #[default]
    Idle,
    Awaited(Waker),
    Done,
}

impl Outlet {
    fn state(&self) -> MutexGuard<'_, State> {
        // The tap catches its own panics, so that a poisoned lock can only come from a bug here; the bytes go on.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A response begins: `exchange` wants to see its bytes.
    pub(super) fn begin(&self, exchange: tap::Exchange) {
        let mut state = self.state();
        state.settle();
        state.exchange = Some(exchange);
        state.flush = Flush::Idle;
    }

    /// Bytes were read at `at` and are on their way to the client; the tap sees them once they are out.
    pub(super) fn passed(&self, bytes: Bytes, at: Instant) {
        let mut state = self.state();
        if state.exchange.is_some() {
            state.waiting.push((bytes, at));
            if state.waiting.len() > MOST_WAITING {
                state.look();
            }
        }
    }

    /// The response is over. The tap is told after the last flush, or at once when there will be none.
    pub(super) fn end(&self, end: tap::End, flush_follows: bool) {
        let mut state = self.state();
        state.end.get_or_insert(end);
        if !flush_follows {
            state.settle();
        }
    }

    /// Ready once everything that hyper had buffered is in the socket.
    pub(super) fn poll_flushed(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state();
        if matches!(state.flush, Flush::Done) {
            state.flush = Flush::Idle;
            return Poll::Ready(());
        }
        state.flush = Flush::Awaited(context.waker().clone());
        Poll::Pending
    }

    fn flushed(&self) {
        let mut state = self.state();
        state.settle();
        match std::mem::take(&mut state.flush) {
            Flush::Awaited(waker) => {
                state.flush = Flush::Done;
                drop(state);
                waker.wake();
            }
            other => state.flush = other,
        }
    }
}

impl State {
    fn look(&mut self) {
        if let Some(exchange) = &mut self.exchange {
            for (bytes, at) in self.waiting.drain(..) {
                exchange.see(&bytes, at);
            }
        }
    }

    fn settle(&mut self) {
        self.look();
        if let Some(end) = self.end.take()
            && let Some(exchange) = self.exchange.take()
        {
            exchange.finish(end);
        }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        self.settle();
    }
}

/// The client's socket as hyper sees it, with the outlet's mark in its flush.
pub(super) struct MarkedSocket<S> {
    inner: S,
    outlet: Arc<Outlet>,
}

impl<S> MarkedSocket<S> {
    pub(super) fn new(inner: S, outlet: Arc<Outlet>) -> Self {
        Self { inner, outlet }
    }
}

impl<S: Read + Unpin> Read for MarkedSocket<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl<S: Write + Unpin> Write for MarkedSocket<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = ready!(Pin::new(&mut self.inner).poll_flush(context));
        if result.is_ok() {
            self.outlet.flushed();
        }
        Poll::Ready(result)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests;
