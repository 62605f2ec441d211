//! Opens a socket to the server: its name is resolved anew, its addresses are tried one after the other, and TLS is
//! spoken where its address says so.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpStream, UnixStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::refusal::Refusal;
use super::socket::{Plain, Socket};
use super::tls::TlsFault;
use super::upstream::Upstream;

/// How long an address has to itself before the next one is tried beside it (RFC 8305 section 5).
const NEXT_AFTER: Duration = Duration::from_millis(250);

/// A socket to the server, ready for HTTP.
pub(super) async fn dial(upstream: &Upstream) -> Result<Socket, Refusal> {
    let address = || upstream.address().to_string();
    let plain = match timeout(upstream.connect_limit(), connect(upstream)).await {
        Ok(Ok(plain)) => plain,
        Ok(Err(error)) if nobody_listens(upstream, &error) => {
            return Err(Refusal::ConnectRefused(address()));
        }
        Ok(Err(error)) => return Err(Refusal::ConnectFailed(address(), error.to_string())),
        Err(_) => return Err(Refusal::ConnectTimeout(address())),
    };
    let Some((tls, name)) = upstream.secure() else {
        return Ok(Socket::Plain(plain));
    };
    // Large: no room is kept for it in the requests of other servers.
    let handshake = Box::pin(tls.connector().connect(name.clone(), plain));
    match timeout(upstream.connect_limit(), handshake).await {
        Ok(Ok(stream)) => Ok(Socket::Tls(Box::new(stream.into()))),
        Ok(Err(error)) => Err(Refusal::Tls(address(), TlsFault::of_handshake(&error))),
        Err(_) => Err(Refusal::ConnectTimeout(address())),
    }
}

/// Whether the server just isn't there. A Unix socket that does not exist is a server that has not started.
fn nobody_listens(upstream: &Upstream, error: &io::Error) -> bool {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => true,
        io::ErrorKind::NotFound => upstream.address().socket_path().is_some(),
        _ => false,
    }
}

async fn connect(upstream: &Upstream) -> io::Result<Plain> {
    let address = upstream.address();
    if let Some(path) = address.socket_path() {
        return UnixStream::connect(path).await.map(Plain::Unix);
    }
    let Some((host, port)) = address.host_and_port() else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let found = upstream.resolver().resolve(host, port).await?;
    let stream = match found[..] {
        [only] => TcpStream::connect(only).await?,
        _ => first_of(found).await?,
    };
    Ok(Plain::tcp(stream))
}

/// The first connection that comes about: the next address is tried when one fails or has had its time.
async fn first_of(addresses: Vec<SocketAddr>) -> io::Result<TcpStream> {
    let mut left = addresses.into_iter();
    let mut tries = JoinSet::new();
    let mut failure = io::Error::from(io::ErrorKind::NotFound);
    loop {
        if let Some(next) = left.next() {
            tries.spawn(TcpStream::connect(next));
        }
        tokio::select! {
            Some(tried) = tries.join_next() => match tried? {
                Ok(stream) => return Ok(stream),
                Err(error) => failure = error,
            },
            () = tokio::time::sleep(NEXT_AFTER), if left.len() > 0 => {}
            else => return Err(failure),
        }
    }
}
