//! The seam between a client's socket and the response body that is being written to it.
//!
//! Two things must happen when bytes have really left, and only the socket knows that moment:
//!
//! - the tap looks at them (bytes first, numbers second: see [`Outlet::passed`]);
//! - an error that the body holds back may come out. hyper drops what it has buffered, the head included, as soon as a
//!   body fails; so the body waits until hyper has flushed everything (see [`Outlet::poll_flushed`]). hyper calls
//!   `poll_flush` of the socket only when its own buffer is empty, which is the mark.
//!
//! An HTTP/1 connection carries one response at a time and has one outlet for all of them. Over HTTP/2 each response has its
//! own, and those that wait for the next flush stand in the connection's list ([`Waiting`]).

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Instant;

use bytes::Bytes;
use hyper::rt::{Read, ReadBufCursor, Write};
use smallvec::SmallVec;

use super::head_room::HeadPhase;
use super::idle::Streams;
use super::tunnel::Tunnel;
use crate::tap::{self, Content};

/// Reads that wait for their look at most; more than hyper ever buffers of small reads.
const MOST_WAITING: usize = 64;

/// What a connection's socket and the body on it tell each other. One response at a time.
#[derive(Default)]
pub(super) struct Outlet {
    state: Mutex<State>,
    /// The list of a connection that carries several responses.
    list: Option<Arc<Waiting>>,
    head: HeadPhase,
}

/// The outlets of one connection that want to hear of its next flush. h2 flushes its socket also between two frames, so
/// that a flush counts only when it is the last thing that a poll of the connection did ([`Waiting::polled`]).
#[derive(Default)]
pub(super) struct Waiting {
    outlets: Mutex<Vec<Arc<Outlet>>>,
    is_clean: AtomicBool,
    /// Outlets that live, and all so far.
    open: AtomicUsize,
    begun: AtomicU64,
}

#[derive(Default)]
struct State {
    /// Something was handed over since the last flush.
    is_unflushed: bool,
    exchange: Option<Box<tap::Exchange>>,
    /// One at a time, nearly always.
    waiting: SmallVec<[(Bytes, Option<Content>, Instant); 1]>,
    end: Option<tap::End>,
    /// What the connection becomes once the client knows of the switch.
    tunnel: Option<Box<Tunnel>>,
    /// Who waits for the next flush.
    flush: Option<Waker>,
}

impl Outlet {
    /// One of several on a connection.
    pub(super) fn listed(list: Arc<Waiting>) -> Self {
        list.open.fetch_add(1, Ordering::Relaxed);
        list.begun.fetch_add(1, Ordering::Relaxed);
        Self {
            state: Mutex::default(),
            head: HeadPhase::default(),
            list: Some(list),
        }
    }

    /// How far hyper is with the request's head.
    pub(super) fn head(&self) -> &HeadPhase {
        &self.head
    }

    /// The response switches to another protocol.
    pub(super) fn switch(&self, tunnel: Tunnel) {
        self.state().tunnel = Some(Box::new(tunnel));
    }

    /// What the connection has become, now that HTTP is over on it.
    pub(super) fn take_tunnel(&self) -> Option<Box<Tunnel>> {
        self.state().tunnel.take()
    }

    /// Whether it is one of several on a connection.
    pub(super) fn is_listed(&self) -> bool {
        self.list.is_some()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The tap catches its own panics, so that a poisoned lock can only come from a bug here; the bytes go on.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something is on its way to the socket: its flush concerns this response.
    fn await_flush(self: &Arc<Self>, state: &mut State) {
        let again = std::mem::replace(&mut state.is_unflushed, true);
        if let (false, Some(list)) = (again, &self.list) {
            list.list().push(Arc::clone(self));
        }
    }

    /// A response begins: `exchange` wants to see its bytes.
    pub(super) fn begin(self: &Arc<Self>, exchange: Box<tap::Exchange>) {
        let mut state = self.state();
        state.settle();
        state.exchange = Some(exchange);
        state.flush = None;
        self.await_flush(&mut state);
    }

    /// Bytes were read at `at` and are on their way to the client; the tap sees them once they are out. `content`: what its
    /// filter said of them.
    pub(super) fn passed(self: &Arc<Self>, bytes: Bytes, content: Option<Content>, at: Instant) {
        let mut state = self.state();
        self.await_flush(&mut state);
        if state.exchange.is_some() {
            state.waiting.push((bytes, content, at));
            if state.waiting.len() > MOST_WAITING {
                state.look();
            }
        }
    }

    /// Bytes that were told of before are on their way only now.
    pub(super) fn handed_over(self: &Arc<Self>) {
        let mut state = self.state();
        self.await_flush(&mut state);
    }

    /// The response is over. The tap is told after the last flush, or at once when there will be none.
    pub(super) fn end(self: &Arc<Self>, end: tap::End, flush_follows: bool) {
        let mut state = self.state();
        state.end.get_or_insert(end);
        if flush_follows {
            self.await_flush(&mut state);
        } else {
            state.settle();
        }
    }

    /// Ready once everything that was handed over is in the socket.
    pub(super) fn poll_flushed(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state();
        if !state.is_unflushed {
            return Poll::Ready(());
        }
        state.flush = Some(context.waker().clone());
        Poll::Pending
    }

    fn flushed(&self) {
        let mut state = self.state();
        state.is_unflushed = false;
        state.settle();
        if let Some(waker) = state.flush.take() {
            drop(state);
            waker.wake();
        }
    }
}

impl State {
    fn look(&mut self) {
        if let Some(exchange) = &mut self.exchange {
            for (bytes, content, at) in self.waiting.drain(..) {
                exchange.see(&bytes, content, at);
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

impl Drop for Outlet {
    fn drop(&mut self) {
        if let Some(list) = &self.list {
            list.open.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Waiting {
    /// How many responses are on their way.
    pub(super) fn streams(&self) -> Streams {
        Streams {
            open: self.open.load(Ordering::Relaxed),
            begun: self.begun.load(Ordering::Relaxed),
        }
    }

    fn list(&self) -> MutexGuard<'_, Vec<Arc<Outlet>>> {
        self.outlets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection was polled and has no more to do.
    pub(super) fn polled(&self) {
        if self.is_clean.load(Ordering::Relaxed) {
            let waiting = std::mem::take(&mut *self.list());
            for outlet in waiting {
                outlet.flushed();
            }
        }
    }
}

/// What wants to hear of flushes.
pub(super) trait Flushes {
    /// Bytes were given to the socket.
    fn written(&self) {}

    /// Everything that was buffered is in the socket.
    fn flushed(&self);
}

impl Flushes for Outlet {
    fn written(&self) {
        self.head.note_unflushed(true);
    }

    fn flushed(&self) {
        self.head.note_unflushed(false);
        Outlet::flushed(self);
    }
}

impl Flushes for Waiting {
    fn written(&self) {
        self.is_clean.store(false, Ordering::Relaxed);
    }

    fn flushed(&self) {
        self.is_clean.store(true, Ordering::Relaxed);
    }
}

/// The client's socket as hyper sees it, with a mark in its flush.
pub(super) struct MarkedSocket<S, F> {
    inner: S,
    flushes: Arc<F>,
}

impl<S, F> MarkedSocket<S, F> {
    pub(super) fn new(inner: S, flushes: Arc<F>) -> Self {
        Self { inner, flushes }
    }

    pub(super) fn into_inner(self) -> S {
        self.inner
    }
}

impl<S: Read + Unpin, F> Read for MarkedSocket<S, F> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl<S: Write + Unpin, F: Flushes> Write for MarkedSocket<S, F> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.flushes.written();
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.flushes.written();
        Pin::new(&mut self.inner).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = ready!(Pin::new(&mut self.inner).poll_flush(context));
        if result.is_ok() {
            self.flushes.flushed();
        }
        Poll::Ready(result)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests;
