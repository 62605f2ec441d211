//! The data port: accepts clients, and stops in order.

use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::client::{self, Server};
use super::exchange::Hop;
use super::limits::Door;
use super::tls::PortTls;
use super::worker::Stop;

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
    mut door: Door,
    tls: Option<PortTls>,
    hop: Arc<Hop>,
    stop: Stop,
) -> Stopped {
    let server = Arc::new(Server::new(hop.timeouts().head, tls.as_ref()));
    // Clients look at it often: those of one worker share no memory with those of another.
    let drain = stop.drain.child_token();
    let mut clients = JoinSet::new();
    loop {
        let (stream, seat) = tokio::select! {
            () = drain.cancelled() => break,
            Some(_) = clients.join_next() => continue,
            accepted = door.next(&listener) => accepted,
        };
        clients.spawn(client::serve(
            Arc::clone(&server),
            stream,
            seat,
            Arc::clone(&hop),
            drain.clone(),
        ));
    }
    drop(listener);
    let ended = async { while clients.join_next().await.is_some() {} };
    // Those that are left are cut with the end of their set.
    tokio::select! {
        () = ended => Stopped::Drained,
        () = tokio::time::sleep(stop.grace) => Stopped::Cut,
        () = stop.cut.cancelled() => Stopped::Cut,
    }
}
