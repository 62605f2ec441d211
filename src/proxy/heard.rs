//! Whether a server has said anything yet. A request may go out again only while no byte of an answer has come, and
//! hyper does not tell an answer that broke off in its head from none at all.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The mark that one connection's socket sets. Clones share it.
#[derive(Clone, Default)]
pub(super) struct Heard(Arc<AtomicBool>);

impl Heard {
    /// A request begins: what was heard before is not its answer.
    pub(super) fn forget(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Whether any byte came since.
    pub(super) fn anything(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A socket to a server that sets the mark when bytes come.
pub(super) struct HeardSocket<S> {
    inner: S,
    heard: Heard,
}

impl<S> HeardSocket<S> {
    pub(super) fn new(inner: S, heard: Heard) -> Self {
        Self { inner, heard }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for HeardSocket<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let result = Pin::new(&mut self.inner).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.heard.0.store(true, Ordering::Relaxed);
        }
        result
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for HeardSocket<S> {
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
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}
