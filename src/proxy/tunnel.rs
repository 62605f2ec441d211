//! What becomes of a connection that switches to another protocol, a WebSocket for one: bytes go both ways as they come,
//! and nobody looks at them.

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, copy_bidirectional};

use super::pool::Lease;
use crate::tap::{self, End};

/// The server's side of it, with the exchange, which lasts as long.
pub(super) struct Tunnel {
    server: Lease,
    exchange: Box<tap::Exchange>,
}

impl Tunnel {
    pub(super) fn new(server: Lease, exchange: Box<tap::Exchange>) -> Self {
        Self { server, exchange }
    }

    /// Joins client and server until both sides have closed. The client knows of the switch.
    pub(super) async fn join(self, mut client: impl AsyncRead + AsyncWrite + Unpin) {
        let Some((mut server, read_ahead, _counted)) = self.server.switched().await else {
            self.exchange.finish(End::Cancelled);
            return;
        };
        let tunnel = async {
            client.write_all(&read_ahead).await?;
            copy_bidirectional(&mut client, &mut server).await
        };
        let end = match tunnel.await {
            Ok(_) => End::Complete,
            // One side broke off.
            Err(_) => End::Cancelled,
        };
        self.exchange.finish(end);
    }
}
