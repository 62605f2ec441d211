//! One client: which HTTP it speaks, and the life of its connection.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use super::exchange::Hop;
use super::idle::Idle;
use super::limits::Seat;
use super::outlet::{MarkedSocket, Outlet, Waiting};

/// Most header fields of one request. hyper's own limit is 100; a real vLLM takes 2,000. Above 100 hyper makes room for
/// all of them anew for each head, which costs 64 bytes each.
const MOST_HEADERS: usize = 2048;

/// Largest head, and largest write buffer, of one connection in bytes.
pub(super) const LARGEST_HEAD: usize = 1 << 20;

/// Most requests that run at the same time on one HTTP/2 connection.
const MOST_STREAMS: u32 = 1024;

/// What an HTTP/2 connection begins with (RFC 9113 section 3.4).
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// First pause between two looks at a beginning that is too short to tell; each is twice as long as the one before.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// How HTTP is spoken with clients.
pub(super) struct Server {
    http1: http1::Builder,
    http2: http2::Builder<TokioExecutor>,
    /// How long a client may take for a request's head.
    head_limit: Duration,
}

/// How HTTP/1 is spoken.
pub(super) fn http1() -> http1::Builder {
    let mut server = http1::Builder::new();
    server
        .preserve_header_case(true)
        .auto_date_header(false)
        .half_close(false)
        .max_headers(MOST_HEADERS)
        .max_buf_size(LARGEST_HEAD);
    server
}

impl Server {
    pub(super) fn new(head_limit: Duration) -> Self {
        let mut http1 = http1();
        http1
            .timer(TokioTimer::new())
            .header_read_timeout(head_limit);
        let mut http2 = http2::Builder::new(TokioExecutor::new());
        http2
            .auto_date_header(false)
            .max_concurrent_streams(MOST_STREAMS)
            .max_header_list_size(LARGEST_HEAD as u32)
            .timer(TokioTimer::new());
        Self {
            http1,
            http2,
            head_limit,
        }
    }
}

/// Serves one client until it leaves. When the drain begins, it may finish what it has asked for.
pub(super) async fn serve(
    server: Arc<Server>,
    stream: TcpStream,
    seat: Seat,
    hop: Arc<Hop>,
    drain: CancellationToken,
) {
    let begins = tokio::select! {
        begins = tokio::time::timeout(server.head_limit, speaks_http2(&stream)) => begins,
        () = drain.cancelled() => return,
    };
    match begins {
        Ok(Ok(false)) => serve_http1(&server, stream, seat, hop, drain).await,
        // Rare, and larger: no room is kept for it in each client's task.
        Ok(Ok(true)) => Box::pin(serve_http2(&server, stream, seat, hop, drain)).await,
        // It left, or said nothing.
        Ok(Err(_)) | Err(_) => {}
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

async fn serve_http1(
    server: &Server,
    stream: TcpStream,
    seat: Seat,
    hop: Arc<Hop>,
    drain: CancellationToken,
) {
    let outlet = Arc::new(Outlet::default());
    let socket = MarkedSocket::new(TokioIo::new(stream), seat, Arc::clone(&outlet));
    let service = service_fn(move |request| {
        let (hop, outlet) = (Arc::clone(&hop), Arc::clone(&outlet));
        let arrived = hop.arrive(request);
        // hyper keeps room for this future as long as the client stays; what is needed up to the head alone is large.
        let exchange = Box::pin(async move { hop.exchange(arrived, outlet).await });
        async move { Ok::<_, Infallible>(exchange.await) }
    });
    let connection = server.http1.serve_connection(socket, service);
    let mut connection = pin!(connection.with_upgrades());
    // Its error is the client's own doing, or the cut that the client was meant to see.
    tokio::select! {
        biased;
        _ = connection.as_mut() => return,
        () = drain.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

async fn serve_http2(
    server: &Server,
    stream: TcpStream,
    seat: Seat,
    hop: Arc<Hop>,
    drain: CancellationToken,
) {
    let waiting = Arc::new(Waiting::default());
    let socket = MarkedSocket::new(TokioIo::new(stream), seat, Arc::clone(&waiting));
    let list = Arc::clone(&waiting);
    let service = service_fn(move |request| {
        let hop = Arc::clone(&hop);
        let outlet = Arc::new(Outlet::listed(Arc::clone(&list)));
        let arrived = hop.arrive(request);
        async move { Ok::<_, Infallible>(hop.exchange(arrived, outlet).await) }
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
