//! What becomes of a connection that switches to another protocol, a WebSocket for one: bytes go both ways as they come,
//! and nobody looks at them.

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncWriteExt, copy_bidirectional};

use super::pool::Lease;
use crate::tap::{self, End};

/// Joins client and server until both sides have closed, once the client knows of the switch. The exchange lasts as long.
pub(super) async fn join(client: OnUpgrade, server: Lease, exchange: tap::Exchange) {
    let Some((mut server, read_ahead, _counted)) = server.switched().await else {
        exchange.finish(End::Cancelled);
        return;
    };
    let tunnel = async {
        let mut client = TokioIo::new(client.await.ok()?);
        client.write_all(&read_ahead).await.ok()?;
        copy_bidirectional(&mut client, &mut server).await.ok()
    };
    let end = match tunnel.await {
        Some(_) => End::Complete,
        // One side broke off.
        None => End::Cancelled,
    };
    exchange.finish(end);
}
