//! A client that sends what it has to send and then waits, and a loop that runs its connection to the end.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The client's end of a connection: gives its pieces one by one, then nothing until it is told that this was all.
pub(super) struct Script {
    pieces: VecDeque<Vec<u8>>,
    is_over: Rc<Cell<bool>>,
}

impl Script {
    pub(super) fn new(pieces: Vec<&[u8]>) -> Self {
        Self {
            pieces: pieces.into_iter().map(<[u8]>::to_vec).collect(),
            is_over: Rc::default(),
        }
    }

    /// What tells the client to close.
    pub(super) fn end(&self) -> Rc<Cell<bool>> {
        Rc::clone(&self.is_over)
    }
}

impl AsyncRead for Script {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Some(mut piece) = self.pieces.pop_front() else {
            return if self.is_over.get() {
                Poll::Ready(Ok(()))
            } else {
                Poll::Pending
            };
        };
        let rest = piece.split_off(piece.len().min(buffer.remaining()));
        buffer.put_slice(&piece);
        if !rest.is_empty() {
            self.pieces.push_front(rest);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Script {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Whether anything asked to be run again.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs a connection until it is done. When nothing moves any more, the client closes.
pub(super) fn run(connection: impl Future<Output = ()>, end: &Cell<bool>) {
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let mut context = Context::from_waker(&waker);
    let mut connection = pin!(connection);
    while connection.as_mut().poll(&mut context).is_pending() {
        if !woken.0.swap(false, Ordering::Relaxed) {
            assert!(!end.replace(true), "the connection hangs");
        }
    }
}
