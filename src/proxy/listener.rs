//! The data port: accepts clients, speaks HTTP/1.1 with them, and stops in order.

use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use super::exchange::Hop;
use super::outlet::{MarkedSocket, Outlet};
use super::worker::Stop;

/// Most header fields of one request. hyper's own limit is 100; a real vLLM takes 2,000. Above 100 hyper makes room for
/// all of them anew for each head, which costs 64 bytes each.
const MOST_HEADERS: usize = 2048;

/// Largest head, and largest write buffer, of one connection in bytes.
pub(super) const LARGEST_HEAD: usize = 1 << 20;

/// How long a client may take for a request's head. It also closes idle client connections.
const HEAD_LIMIT: Duration = Duration::from_secs(30);

/// Pause after an accept that failed for want of file descriptors, so that the loop does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Idle time after which the system probes whether a peer is still there.
const PROBE_AFTER: Duration = Duration::from_secs(60);

/// How serving ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// Every stream came to its end.
    Drained,
    /// Streams were cut when the grace was over.
    Cut,
}

/// How HTTP is spoken with clients.
pub(super) fn server() -> http1::Builder {
    let mut server = http1::Builder::new();
    server
        .preserve_header_case(true)
        .auto_date_header(false)
        .half_close(false)
        .max_headers(MOST_HEADERS)
        .max_buf_size(LARGEST_HEAD);
    server
}

/// Serves clients until the drain begins, then lets running exchanges finish.
pub(super) async fn serve(listener: TcpListener, hop: Arc<Hop>, stop: Stop) -> Stopped {
    let mut server = server();
    server
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_LIMIT);
    loop {
        let stream = tokio::select! {
            () = stop.drain.cancelled() => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    rest_after(&error).await;
                    continue;
                }
            },
        };
        let client = serve_client(&server, stream, Arc::clone(&hop), stop.drain.clone());
        hop.clients().spawn(client);
    }
    drop(listener);
    let stopped = tokio::select! {
        () = hop.clients().ended() => Stopped::Drained,
        () = tokio::time::sleep(stop.grace) => Stopped::Cut,
        () = stop.cut.cancelled() => Stopped::Cut,
    };
    hop.clients().cut();
    stopped
}

/// Serves one client until it leaves. When the drain begins, it may finish what it has asked for.
fn serve_client(
    server: &http1::Builder,
    stream: TcpStream,
    hop: Arc<Hop>,
    drain: CancellationToken,
) -> impl Future<Output = ()> + use<> {
    prepare_socket(&stream);
    let outlet = Arc::new(Outlet::default());
    let socket = MarkedSocket::new(TokioIo::new(stream), Arc::clone(&outlet));
    let service = service_fn(move |request| {
        let (hop, outlet) = (Arc::clone(&hop), Arc::clone(&outlet));
        // hyper keeps room for this future as long as the client stays; what is needed up to the head alone is large.
        let exchange = Box::pin(async move { hop.exchange(request, outlet).await });
        async move { Ok::<_, Infallible>(exchange.await) }
    });
    let connection = server.serve_connection(socket, service).with_upgrades();
    async move {
        let mut connection = pin!(connection);
        // Its error is the client's own doing, or the cut that the client was meant to see.
        tokio::select! {
            biased;
            _ = connection.as_mut() => return,
            () = drain.cancelled() => connection.as_mut().graceful_shutdown(),
        }
        let _ = connection.await;
    }
}

async fn rest_after(error: &io::Error) {
    let client_left = matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset
    );
    if !client_left {
        tracing::warn!(%error, "can not accept a connection");
        tokio::time::sleep(ACCEPT_PAUSE).await;
    }
}

/// Small writes leave at once, and a peer that vanished without a word is noticed. A socket that refuses either works
/// all the same.
pub(super) fn prepare_socket(stream: &TcpStream) {
    let _ = stream.set_nodelay(true);
    let keepalive = socket2::TcpKeepalive::new().with_time(PROBE_AFTER);
    let _ = socket2::SockRef::from(stream).set_tcp_keepalive(&keepalive);
}
