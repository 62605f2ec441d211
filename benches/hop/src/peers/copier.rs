//! The least that a hop can do: bytes copied both ways, nothing read.

use std::net::SocketAddr;

use anyhow::Result;
use tokio::net::{TcpListener, TcpStream};

/// Serves until the process ends.
///
/// # Errors
///
/// The address can't be had.
pub async fn serve(listen: SocketAddr, upstream: SocketAddr) -> Result<()> {
    let listener = TcpListener::bind(listen).await?;
    loop {
        let Ok((mut client, _)) = listener.accept().await else {
            continue;
        };
        tokio::spawn(async move {
            let mut engine = TcpStream::connect(upstream).await?;
            client.set_nodelay(true)?;
            engine.set_nodelay(true)?;
            tokio::io::copy_bidirectional(&mut client, &mut engine).await
        });
    }
}
