//! One request on a connection of its own, for what is not measured.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::load::reply::Reply;
use crate::load::request;
use crate::order::Order;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The body that a path gives.
///
/// # Errors
///
/// No connection, no answer, or one that is not 200.
pub fn get(address: SocketAddr, path: &str) -> Result<Vec<u8>> {
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nAccept: */*\r\nConnection: close\r\n\r\n"
    );
    send(address, request.as_bytes()).with_context(|| format!("http://{address}{path}"))
}

/// The body that a chat completion gives.
///
/// # Errors
///
/// As [`get`].
pub fn completion(address: SocketAddr, order: Order) -> Result<Vec<u8>> {
    send(address, &request(address, order))
}

fn send(address: SocketAddr, request: &[u8]) -> Result<Vec<u8>> {
    let mut socket = TcpStream::connect(address)?;
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.write_all(request)?;
    let (mut reply, mut body) = (Reply::default(), Vec::new());
    let mut buffer = vec![0; 64 << 10];
    while !reply.is_complete() {
        let read = socket.read(&mut buffer)?;
        ensure!(read > 0, "closed in the middle of an answer");
        reply.feed(&buffer[..read], |data| {
            body.extend_from_slice(data);
            Ok(())
        })?;
    }
    Ok(body)
}
