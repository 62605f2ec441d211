//! One client that speaks HTTP/1, until it leaves or has switched to another protocol.

use std::convert::Infallible;
use std::error::Error;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::{HttpService, service_fn};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use super::client::LARGEST_HEAD;
use super::exchange::Hop;
use super::head_room::{HeadSocket, HeadTimer};
use super::outlet::{MarkedSocket, Outlet};
use super::socket::Socket;

/// Most header fields of one request. hyper's own limit is 100; a real vLLM takes 2,000.
const MOST_HEADERS: usize = 2048;

/// How HTTP/1 is spoken, with room for as many fields as hyper has by itself.
fn small() -> http1::Builder {
    let mut server = http1::Builder::new();
    server
        .preserve_header_case(true)
        .auto_date_header(false)
        .half_close(false)
        .max_buf_size(LARGEST_HEAD);
    server
}

/// The same, with room for all fields that a request may have.
pub(super) fn roomy() -> http1::Builder {
    let mut server = small();
    server.max_headers(MOST_HEADERS);
    server
}

/// Serves one client until it leaves. When the drain begins, it may finish what it has asked for. `head_limit`: how long
/// it may take for a request's head.
pub(super) async fn serve(
    stream: Socket,
    head_limit: Duration,
    hop: Arc<Hop>,
    drain: CancellationToken,
) {
    let outlet = Arc::new(Outlet::default());
    let of_exchanges = Arc::clone(&outlet);
    let service = service_fn(move |request| {
        let (hop, outlet) = (Arc::clone(&hop), Arc::clone(&of_exchanges));
        let arrived = hop.arrive(request);
        // hyper keeps room for this future as long as the client stays; what is needed up to the head alone is large.
        let exchange = Box::pin(async move { hop.exchange(arrived, outlet).await });
        async move { Ok::<_, Infallible>(exchange.await) }
    });
    converse(stream, service, outlet, head_limit, drain).await;
}

/// Speaks HTTP/1 on a socket. `head_limit`: how long the client may take for a request's head.
async fn converse<T, S, B>(
    stream: T,
    service: S,
    outlet: Arc<Outlet>,
    head_limit: Duration,
    drain: CancellationToken,
) where
    T: AsyncRead + AsyncWrite + Unpin,
    S: HttpService<Incoming, ResBody = B>,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    B: Body + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let begin = |mut http1: http1::Builder, socket: HeadSocket<T>, service: S| {
        http1
            .timer(HeadTimer(Arc::clone(&outlet)))
            .header_read_timeout(head_limit);
        let socket = MarkedSocket::new(TokioIo::new(socket), Arc::clone(&outlet));
        http1.serve_connection(socket, service)
    };
    let socket = HeadSocket::new(stream, Arc::clone(&outlet));
    let mut connection = begin(small(), socket, service);
    let mut late = pin!(tokio::time::sleep(head_limit));
    let mut drained = pin!(drain.cancelled());
    let mut woken_by_drain: Option<Waker> = None;
    let mut knows_of_drain = false;
    loop {
        let ended = poll_fn(|context| {
            loop {
                outlet.head().begin_poll();
                if let Poll::Ready(ended) = Pin::new(&mut connection).poll(context) {
                    return Poll::Ready(Some(ended));
                }
                // Asked once, it wakes the task; to ask it again with each event would cost much more than this look.
                let is_asked = woken_by_drain
                    .as_ref()
                    .is_some_and(|waker| waker.will_wake(context.waker()));
                let has_begun = if is_asked {
                    drain.is_cancelled()
                } else {
                    woken_by_drain = Some(context.waker().clone());
                    drained.as_mut().poll(context).is_ready()
                };
                if has_begun && !knows_of_drain {
                    knows_of_drain = true;
                    Pin::new(&mut connection).graceful_shutdown();
                    continue;
                }
                if !outlet.head().is_reading() {
                    return Poll::Pending;
                }
                if outlet.head().wants_room() {
                    return Poll::Ready(None);
                }
                if late.as_mut().poll(context).is_pending() {
                    return Poll::Pending;
                }
                match outlet.head().limit_at(Instant::now()) {
                    Some(limit) => late.as_mut().reset(limit.into()),
                    None => return Pin::new(&mut connection).poll(context).map(Some),
                }
            }
        })
        .await;
        match ended {
            None => {
                let parts = connection.into_parts();
                let socket = parts.io.into_inner().into_inner();
                connection = begin(roomy(), socket.with_room(&parts.read_buf), parts.service);
                // It would close at once before it has seen any of the request that has begun.
                knows_of_drain = false;
            }
            Some(Ok(())) => {
                if let Some(tunnel) = outlet.take_tunnel() {
                    let parts = connection.into_parts();
                    let socket = parts.io.into_inner().into_inner();
                    // Rare, and large: no room is kept for it in each client's task.
                    Box::pin(tunnel.join(socket.with_room(&parts.read_buf))).await;
                }
                return;
            }
            // The client's own doing, or the cut that the client was meant to see.
            Some(Err(_)) => return,
        }
    }
}

#[cfg(test)]
mod tests;
