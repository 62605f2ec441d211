//! How often a server was heard. A request may go out again only while no byte of an answer has come, and hyper does
//! not tell an answer that broke off in its head from none at all. And frames that came in one read came at one time.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};

use super::socket::writes_to_inner;
use super::turn::Bell;

/// A socket to a server that counts the reads.
pub(super) struct HeardSocket<S> {
    inner: S,
    bell: Arc<Bell>,
}

impl<S> HeardSocket<S> {
    pub(super) fn new(inner: S, bell: Arc<Bell>) -> Self {
        Self { inner, bell }
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
            self.bell.note_read();
        }
        result
    }
}

writes_to_inner!(HeardSocket);
