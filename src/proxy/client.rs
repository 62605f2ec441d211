//! One client: which HTTP it speaks, and the life of its connection.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::client_http1;
use super::exchange::Hop;
use super::idle::Idle;
use super::limits::Seat;
use super::outlet::{MarkedSocket, Outlet, Waiting};
use super::refusal::ResetInstead;
use super::socket::{Plain, Socket};
use super::tls::PortTls;

/// Largest head, and largest write buffer, of one connection in bytes.
pub(super) const LARGEST_HEAD: usize = 1 << 20;

/// How long a client may take to agree on TLS.
const TLS_LIMIT: Duration = Duration::from_secs(10);

/// Most requests that run at the same time on one HTTP/2 connection.
const MOST_STREAMS: u32 = 1024;

/// What an HTTP/2 connection begins with (RFC 9113 section 3.4).
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// First pause between two looks at a beginning that is too short to tell; each is twice as long as the one before.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// How HTTP/2 is spoken with clients.
pub(super) struct Server {
    http2: http2::Builder<TokioExecutor>,
    /// How long a client may take for a request's head.
    head_limit: Duration,
    tls: Option<TlsAcceptor>,
}

impl Server {
    /// `tls`: how TLS is spoken below HTTP, if at all.
    pub(super) fn new(head_limit: Duration, tls: Option<&PortTls>) -> Self {
        let mut http2 = http2::Builder::new(TokioExecutor::new());
        http2
            .auto_date_header(false)
            .max_concurrent_streams(MOST_STREAMS)
            .max_header_list_size(LARGEST_HEAD as u32)
            .timer(TokioTimer::new());
        Self {
            http2,
            head_limit,
            tls: tls.map(PortTls::acceptor),
        }
    }

    /// Learns what a client speaks: whether it is HTTP/2. None if it left, or did not say in time.
    async fn greet(&self, stream: TcpStream) -> Option<(Socket, bool)> {
        match &self.tls {
            None => {
                let begins = tokio::time::timeout(self.head_limit, speaks_http2(&stream)).await;
                let http2 = begins.ok()?.ok()?;
                Some((Socket::Plain(Plain::tcp(stream)), http2))
            }
            // Large: no room is kept for it where clients speak in clear text.
            Some(tls) => Box::pin(agree(tls, Plain::tcp(stream), TLS_LIMIT)).await,
        }
    }
}

/// Serves one client until it leaves, and keeps its seat so long. When the drain begins, it may finish what it has asked
/// for.
pub(super) async fn serve(
    server: Arc<Server>,
    stream: TcpStream,
    _seat: Seat,
    hop: Arc<Hop>,
    drain: CancellationToken,
) {
    let greeted = tokio::select! {
        greeted = server.greet(stream) => greeted,
        () = drain.cancelled() => return,
    };
    match greeted {
        Some((socket, false)) => client_http1::serve(socket, server.head_limit, hop, drain).await,
        // Rare, and larger: no room is kept for it in each client's task.
        Some((socket, true)) => Box::pin(serve_http2(&server, socket, hop, drain)).await,
        None => {}
    }
}

/// Agrees with a client on TLS, and on what is spoken in it.
async fn agree(tls: &TlsAcceptor, stream: Plain, limit: Duration) -> Option<(Socket, bool)> {
    match tokio::time::timeout(limit, tls.accept(stream)).await {
        Ok(Ok(stream)) => {
            let socket = Socket::Tls(Box::new(stream.into()));
            let http2 = socket.agreed_on_http2();
            Some((socket, http2))
        }
        Ok(Err(error)) => {
            tracing::debug!(%error, "a client did not agree on TLS");
            None
        }
        Err(_) => None,
    }
}

/// Whether a client that was told nothing begins with HTTP/2.
async fn speaks_http2(stream: &TcpStream) -> io::Result<bool> {
    let mut beginning = [0; PREFACE.len()];
    let mut pause = LOOK_AGAIN;
    loop {
        let length = stream.peek(&mut beginning).await?;
        if length == 0 || !PREFACE.starts_with(&beginning[..length]) {
            return Ok(false);
        }
        if length == PREFACE.len() {
            return Ok(true);
        }
        tokio::time::sleep(pause).await;
        pause *= 2;
    }
}

async fn serve_http2(server: &Server, stream: Socket, hop: Arc<Hop>, drain: CancellationToken) {
    let waiting = Arc::new(Waiting::default());
    let socket = MarkedSocket::new(TokioIo::new(stream), Arc::clone(&waiting));
    let list = Arc::clone(&waiting);
    let service = service_fn(move |request| {
        let hop = Arc::clone(&hop);
        let outlet = Arc::new(Outlet::listed(Arc::clone(&list)));
        let arrived = hop.arrive(request);
        async move {
            let answer = hop.exchange(arrived, outlet).await;
            match answer.extensions().get() {
                Some(ResetInstead(reason)) => Err(h2::Error::from(*reason)),
                None => Ok(answer),
            }
        }
    });
    let mut connection = pin!(server.http2.serve_connection(socket, service));
    let mut drained = pin!(drain.cancelled());
    let mut is_draining = false;
    let mut idle = Idle::new(server.head_limit);
    let mut was_idle = false;
    poll_fn(|context| {
        if !is_draining && drained.as_mut().poll(context).is_ready() {
            is_draining = true;
            connection.as_mut().graceful_shutdown();
        }
        if idle.poll(&waiting.streams(), context).is_ready() {
            if was_idle {
                // It does not even answer the goodbye.
                return Poll::Ready(());
            }
            was_idle = true;
            connection.as_mut().graceful_shutdown();
        }
        let polled = connection.as_mut().poll(context);
        waiting.polled();
        polled.map(drop)
    })
    .await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_client_that_does_not_agree_on_tls_in_time_is_let_go() {
        let folder = tempfile::tempdir().unwrap();
        let (certificate, key) = (folder.path().join("cert"), folder.path().join("key"));
        let secret = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new(Vec::new()).unwrap();
        std::fs::write(&certificate, params.self_signed(&secret).unwrap().pem()).unwrap();
        std::fs::write(&key, secret.serialize_pem()).unwrap();
        let tls = PortTls::load(certificate, key).unwrap().acceptor();

        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let silent = TcpStream::connect(listener.local_addr().unwrap());
        let (silent, accepted) = tokio::join!(silent, listener.accept());
        let stream = Plain::tcp(accepted.unwrap().0);
        let agreed = agree(&tls, stream, Duration::from_millis(20));
        let agreed = tokio::time::timeout(Duration::from_secs(20), agreed).await;
        assert!(agreed.unwrap().is_none());
        drop(silent);
    }
}
