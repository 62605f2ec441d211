//! The data port: accepts clients, and stops in order.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;

use super::client::{self, Server};
use super::exchange::Hop;
use super::tls::PortTls;
use super::worker::Stop;

/// Pause after an accept that failed for want of file descriptors, so that the loop does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How serving ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// Every stream came to its end.
    Drained,
    /// Streams were cut when the grace was over.
    Cut,
}

/// Serves clients until the drain begins, then lets running exchanges finish.
pub(super) async fn serve(
    listener: TcpListener,
    tls: Option<PortTls>,
    hop: Arc<Hop>,
    stop: Stop,
) -> Stopped {
    let server = Arc::new(Server::new(tls.as_ref()));
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
        let client = client::serve(
            Arc::clone(&server),
            stream,
            Arc::clone(&hop),
            stop.drain.clone(),
        );
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
