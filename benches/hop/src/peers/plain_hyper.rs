//! A plain pass-through made of hyper: requests and responses go on as they come, nothing is looked at.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

/// The connection to the engine that belongs to one client's connection, while no request uses it.
type Kept = Arc<Mutex<Option<SendRequest<Incoming>>>>;

/// Serves until the process ends.
///
/// # Errors
///
/// The address can't be had.
pub async fn serve(listen: SocketAddr, upstream: SocketAddr) -> Result<()> {
    let listener = TcpListener::bind(listen).await?;
    loop {
        let Ok((client, _)) = listener.accept().await else {
            continue;
        };
        tokio::spawn(async move {
            client.set_nodelay(true)?;
            let kept = Kept::default();
            let service = service_fn(|request| pass(request, upstream, Arc::clone(&kept)));
            hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(client), service)
                .await?;
            anyhow::Ok(())
        });
    }
}

async fn pass(
    request: Request<Incoming>,
    upstream: SocketAddr,
    kept: Kept,
) -> Result<Response<Incoming>> {
    let free = kept.lock().unwrap_or_else(PoisonError::into_inner).take();
    let mut engine = match free {
        Some(engine) => engine,
        None => connect(upstream).await?,
    };
    if engine.ready().await.is_err() {
        engine = connect(upstream).await?;
    }
    let response = engine.send_request(request).await?;
    *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(engine);
    Ok(response)
}

async fn connect(upstream: SocketAddr) -> Result<SendRequest<Incoming>> {
    let engine = TcpStream::connect(upstream).await?;
    engine.set_nodelay(true)?;
    let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(engine)).await?;
    tokio::spawn(connection);
    Ok(sender)
}
