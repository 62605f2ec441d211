//! One side of the comparison: where it listens, and a connection to it.

use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use super::VerifyError;

/// How long a connection may take to open.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// Where requests go.
pub(super) struct Address {
    /// The flag that named it.
    pub(super) flag: &'static str,
    host: String,
    port: u16,
}

impl Address {
    /// Reads `http://HOST[:PORT]`.
    pub(super) fn read(flag: &'static str, url: &str) -> Result<Self, VerifyError> {
        let wrong = || VerifyError::Flag {
            flag,
            value: url.to_owned(),
            problem: "write it like http://127.0.0.1:8000, without a path".to_owned(),
        };
        let uri: http::Uri = url.parse().map_err(|_| wrong())?;
        let authority = uri.authority().ok_or_else(wrong)?;
        let plain = uri.scheme_str() == Some("http")
            && uri.path() == "/"
            && uri.query().is_none()
            && !authority.as_str().contains('@')
            && (authority.port_u16().is_some() || authority.as_str() == authority.host());
        if !plain {
            return Err(wrong());
        }
        Ok(Self {
            flag,
            host: authority.host().to_owned(),
            port: authority.port_u16().unwrap_or(80),
        })
    }

    /// `host:port`, as a Host header says it.
    pub(super) fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// Opens a connection.
    pub(super) fn connect(&self) -> io::Result<TcpStream> {
        let host = self.host.trim_matches(['[', ']']);
        let mut error = io::Error::other("the name has no address");
        for address in (host, self.port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, CONNECT_LIMIT) {
                Ok(stream) => {
                    // Without it a pipelined request may wait for an acknowledgement.
                    stream.set_nodelay(true)?;
                    return Ok(stream);
                }
                Err(refused) => error = refused,
            }
        }
        Err(error)
    }

    /// What a failed exchange with this side means.
    pub(super) fn unreachable(&self, error: &io::Error) -> VerifyError {
        VerifyError::Unreachable {
            flag: self.flag,
            address: format!("http://{}", self.authority()),
            problem: error.to_string(),
        }
    }
}
