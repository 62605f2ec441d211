//! Serves the admin router on a bound listener until it is told to stop.
//!
//! hyper's own connections instead of axum's `serve`: that one neither limits how long a client may take over a request's
//! head nor ends while a connection is open, and a forgotten admin client must not hold the drain.

use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// Connections at once; one more is closed at once, so that nobody can eat the data port's file descriptors here.
const MOST_CONNECTIONS: usize = 256;

/// Pause after a failed accept: out of file descriptors, the next one would fail at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How long clients may take.
#[derive(Clone, Copy)]
struct Patience {
    /// For a request's head; it bounds idle connections too.
    head: Duration,
    /// For answers under way when the end comes.
    grace: Duration,
}

/// Serves until `shutdown` is done; then answers under way get one second, and idle or slow clients are cut. A client
/// has ten seconds for the head of a request.
pub async fn serve(listener: TcpListener, router: Router, shutdown: impl Future<Output = ()>) {
    let patience = Patience {
        head: Duration::from_secs(10),
        grace: Duration::from_secs(1),
    };
    serve_with(patience, listener, router, shutdown).await;
}

async fn serve_with(
    patience: Patience,
    listener: TcpListener,
    router: Router,
    shutdown: impl Future<Output = ()>,
) {
    let service = TowerToHyperService::new(router);
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(patience.head);
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            accepted = listener.accept() => match accepted {
                Ok(_) if connections.len() >= MOST_CONNECTIONS => {
                    tracing::debug!("too many admin connections; the newest is closed");
                }
                Ok((stream, _)) => {
                    // Without it a small answer may wait for the client's delayed acknowledgement.
                    let _ = stream.set_nodelay(true);
                    let connection = builder.serve_connection(TokioIo::new(stream), service.clone());
                    let connection = graceful.watch(connection);
                    connections.spawn(async move {
                        if let Err(error) = connection.await {
                            tracing::debug!(%error, "admin connection ended early");
                        }
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "the admin port could not accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            // Ended connections leave the set.
            Some(_) = connections.join_next() => {}
        }
    }
    drop(listener);
    let _ = tokio::time::timeout(patience.grace, graceful.shutdown()).await;
    connections.shutdown().await;
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use tokio::sync::oneshot;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    async fn start(
        patience: Patience,
        router: Router,
    ) -> (TcpStream, oneshot::Sender<()>, JoinSet<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let mut server = JoinSet::new();
        server.spawn(serve_with(patience, listener, router, async {
            let _ = stopped.await;
        }));
        (client, stop, server)
    }

    #[tokio::test]
    async fn a_client_that_never_finishes_its_head_is_cut() {
        let patience = Patience {
            head: Duration::from_millis(50),
            grace: LONG,
        };
        let (mut client, _stop, _server) = start(patience, Router::new()).await;
        client
            .write_all(b"GET / HTTP/1.1\r\nHost: lo")
            .await
            .unwrap();
        let mut rest = Vec::new();
        let closed = tokio::time::timeout(LONG, client.read_to_end(&mut rest)).await;
        assert!(closed.is_ok(), "still open");
    }

    #[tokio::test]
    async fn beyond_the_most_connections_the_newest_is_closed_and_the_others_are_served() {
        let patience = Patience {
            head: LONG,
            grace: LONG,
        };
        let router = Router::new().route("/", get(|| async { "served" }));
        let (mut first, _stop, _server) = start(patience, router).await;
        let address = first.peer_addr().unwrap();
        let mut others = Vec::new();
        for _ in 1..MOST_CONNECTIONS {
            others.push(TcpStream::connect(address).await.unwrap());
        }
        let mut newest = TcpStream::connect(address).await.unwrap();
        let closed = tokio::time::timeout(LONG, newest.read_to_end(&mut Vec::new())).await;
        assert!(closed.is_ok(), "still open");
        first
            .write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            .await
            .unwrap();
        let mut answer = String::new();
        let read = tokio::time::timeout(LONG, first.read_to_string(&mut answer)).await;
        assert!(read.is_ok() && answer.ends_with("served"), "{answer}");
    }

    #[tokio::test]
    async fn an_answer_under_way_is_finished_within_the_grace_and_cut_after_it() {
        for (grace, answered) in [(LONG, true), (Duration::from_millis(50), false)] {
            let (arrived, mut arrival) = tokio::sync::mpsc::channel::<()>(1);
            let go = std::sync::Arc::new(tokio::sync::Notify::new());
            let wait = go.clone();
            let router = Router::new().route(
                "/",
                get(move || async move {
                    arrived.send(()).await.unwrap();
                    wait.notified().await;
                    "done"
                }),
            );
            let (mut client, stop, mut server) =
                start(Patience { head: LONG, grace }, router).await;
            client
                .write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
                .await
                .unwrap();
            arrival.recv().await.unwrap();
            stop.send(()).unwrap();
            if answered {
                go.notify_one();
            }
            let mut answer = String::new();
            let read = tokio::time::timeout(LONG, client.read_to_string(&mut answer)).await;
            assert!(read.is_ok(), "still open");
            assert_eq!(answer.ends_with("done"), answered, "{answer}");
            server.join_next().await.unwrap().unwrap();
        }
    }
}
