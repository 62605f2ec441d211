//! A connected socket, whatever is below HTTP: TCP or a Unix socket, in clear text or in TLS.
//!
//! An enum and no boxed trait: clear text pays one comparison per read and write.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsStream;

/// Idle time after which the system probes whether a peer is still there.
const PROBE_AFTER: Duration = Duration::from_secs(60);

/// A socket of the system.
pub(super) enum Plain {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// What HTTP is spoken on.
pub(super) enum Socket {
    Plain(Plain),
    /// The session is large and rare.
    Tls(Box<TlsStream<Plain>>),
}

impl Plain {
    /// A TCP connection: small writes leave at once, and a peer that vanished without a word is noticed. A socket that
    /// refuses either works all the same.
    pub(super) fn tcp(stream: TcpStream) -> Self {
        let _ = stream.set_nodelay(true);
        let keepalive = socket2::TcpKeepalive::new().with_time(PROBE_AFTER);
        let _ = socket2::SockRef::from(&stream).set_tcp_keepalive(&keepalive);
        Plain::Tcp(stream)
    }
}

impl Socket {
    /// Whether TLS agreed on HTTP/2.
    pub(super) fn agreed_on_http2(&self) -> bool {
        match self {
            Socket::Plain(_) => false,
            Socket::Tls(stream) => stream.get_ref().1.alpn_protocol() == Some(b"h2"),
        }
    }
}

/// Hands each call to what the socket is made of.
macro_rules! delegate {
    ($socket:ty, $($variant:path),+) => {
        impl AsyncRead for $socket {
            fn poll_read(
                self: Pin<&mut Self>,
                context: &mut Context<'_>,
                buffer: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                match self.get_mut() {
                    $($variant(inner) => Pin::new(inner).poll_read(context, buffer),)+
                }
            }
        }

        impl AsyncWrite for $socket {
            fn poll_write(
                self: Pin<&mut Self>,
                context: &mut Context<'_>,
                bytes: &[u8],
            ) -> Poll<io::Result<usize>> {
                match self.get_mut() {
                    $($variant(inner) => Pin::new(inner).poll_write(context, bytes),)+
                }
            }

            fn poll_write_vectored(
                self: Pin<&mut Self>,
                context: &mut Context<'_>,
                slices: &[io::IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                match self.get_mut() {
                    $($variant(inner) => Pin::new(inner).poll_write_vectored(context, slices),)+
                }
            }

            fn is_write_vectored(&self) -> bool {
                match self {
                    $($variant(inner) => inner.is_write_vectored(),)+
                }
            }

            fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
                match self.get_mut() {
                    $($variant(inner) => Pin::new(inner).poll_flush(context),)+
                }
            }

            fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
                match self.get_mut() {
                    $($variant(inner) => Pin::new(inner).poll_shutdown(context),)+
                }
            }
        }
    };
}

delegate!(Plain, Plain::Tcp, Plain::Unix);
delegate!(Socket, Socket::Plain, Socket::Tls);

/// Hands what is written to a socket that only listens in on what is read to its `inner` one.
macro_rules! writes_to_inner {
    ($wrapper:ident) => {
        impl<S: tokio::io::AsyncWrite + Unpin> tokio::io::AsyncWrite for $wrapper<S> {
            fn poll_write(
                mut self: std::pin::Pin<&mut Self>,
                context: &mut std::task::Context<'_>,
                bytes: &[u8],
            ) -> std::task::Poll<std::io::Result<usize>> {
                std::pin::Pin::new(&mut self.inner).poll_write(context, bytes)
            }

            fn poll_write_vectored(
                mut self: std::pin::Pin<&mut Self>,
                context: &mut std::task::Context<'_>,
                slices: &[std::io::IoSlice<'_>],
            ) -> std::task::Poll<std::io::Result<usize>> {
                std::pin::Pin::new(&mut self.inner).poll_write_vectored(context, slices)
            }

            fn is_write_vectored(&self) -> bool {
                self.inner.is_write_vectored()
            }

            fn poll_flush(
                mut self: std::pin::Pin<&mut Self>,
                context: &mut std::task::Context<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                std::pin::Pin::new(&mut self.inner).poll_flush(context)
            }

            fn poll_shutdown(
                mut self: std::pin::Pin<&mut Self>,
                context: &mut std::task::Context<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                std::pin::Pin::new(&mut self.inner).poll_shutdown(context)
            }
        }
    };
}

pub(super) use writes_to_inner;

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn small_writes_leave_at_once_and_silent_peers_are_probed() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap());
        let Plain::Tcp(stream) = Plain::tcp(stream.await.unwrap()) else {
            unreachable!()
        };
        assert!(stream.nodelay().unwrap());
        let socket = socket2::SockRef::from(&stream);
        assert!(socket.keepalive().unwrap());
        assert_eq!(socket.tcp_keepalive_time().unwrap(), PROBE_AFTER);
    }
}
