//! Where the server behind the tap is, as a person writes it: `http://HOST[:PORT]`, `https://HOST[:PORT]` or
//! `unix:PATH`.

use std::fmt;
use std::path::{Path, PathBuf};

use http::uri::Authority;

/// Longest path of a Unix socket in bytes, as Linux has room for it (unix(7)).
const LONGEST_SOCKET_PATH: usize = 107;

/// Where the server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamAddress {
    place: Place,
    tls: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Network { host: String, port: u16 },
    Unix(PathBuf),
}

/// What is wrong with an upstream URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UpstreamAddressError {
    /// It can't be parsed at all.
    #[error(
        "is not a URL; write it like http://127.0.0.1:8000, https://engine.example:8443 or unix:/run/engine.sock"
    )]
    NotUrl,
    /// Another scheme than `http`, `https` and `unix`.
    #[error("has the scheme '{0}'; only http://, https:// and unix: are served")]
    Scheme(String),
    /// A path, query or user name, which could not be kept.
    #[error(
        "has more than a host and a port; paths pass through as the client sends them, so write only http://HOST:PORT"
    )]
    MoreThanAuthority,
    /// A socket's path that depends on where spectap was started.
    #[error("has no absolute path; write it like unix:/run/engine.sock")]
    SocketPath,
    /// The certificate of a host whose name no certificate can hold can't be checked.
    #[error(
        "has the host '{0}', which no certificate can name; say with --upstream-server-name what its certificate names"
    )]
    ServerName(String),
    /// TLS is asked for, and nothing says whom to trust.
    #[error("asks for TLS, and no settings of TLS are given")]
    NoTls,
}

impl UpstreamAddress {
    /// Reads `http://HOST[:PORT]`, `https://HOST[:PORT]` or `unix:PATH`.
    ///
    /// # Errors
    ///
    /// When it is anything else; the error says what would be right.
    pub fn parse(url: &str) -> Result<Self, UpstreamAddressError> {
        if let Some(path) = url.strip_prefix("unix:") {
            let path = PathBuf::from(path.strip_prefix("//").unwrap_or(path));
            let bytes = path.as_os_str().as_encoded_bytes();
            if !path.is_absolute() || bytes.contains(&0) || bytes.len() > LONGEST_SOCKET_PATH {
                return Err(UpstreamAddressError::SocketPath);
            }
            return Ok(Self {
                place: Place::Unix(path),
                tls: false,
            });
        }
        let uri: http::Uri = url.parse().map_err(|_| UpstreamAddressError::NotUrl)?;
        let scheme = uri.scheme_str().ok_or(UpstreamAddressError::NotUrl)?;
        let tls = match scheme {
            "http" => false,
            "https" => true,
            _ => return Err(UpstreamAddressError::Scheme(scheme.to_owned())),
        };
        let authority = uri.authority().ok_or(UpstreamAddressError::NotUrl)?;
        let is_more = authority.as_str().contains('@') || url.contains('#');
        if is_more || uri.path() != "/" || uri.query().is_some() {
            return Err(UpstreamAddressError::MoreThanAuthority);
        }
        let port = match authority.port() {
            Some(port) => port
                .as_str()
                .parse()
                .map_err(|_| UpstreamAddressError::NotUrl)?,
            // One is written, and is none: above 65535, or empty.
            None if authority.as_str() != authority.host() => {
                return Err(UpstreamAddressError::NotUrl);
            }
            None if tls => 443,
            None => 80,
        };
        let host = authority
            .host()
            .trim_start_matches('[')
            .trim_end_matches(']');
        if host.is_empty() || port == 0 {
            return Err(UpstreamAddressError::NotUrl);
        }
        Ok(Self {
            place: Place::Network {
                host: host.to_owned(),
                port,
            },
            tls,
        })
    }

    /// Host name or address, and port; none for a Unix socket.
    pub fn host_and_port(&self) -> Option<(&str, u16)> {
        match &self.place {
            Place::Network { host, port } => Some((host, *port)),
            Place::Unix(_) => None,
        }
    }

    /// What a request that names no host is for.
    pub(super) fn authority(&self) -> Option<Authority> {
        match &self.place {
            Place::Network { .. } => self.to_string().parse().ok(),
            Place::Unix(_) => Some(Authority::from_static("localhost")),
        }
    }

    /// The path of a Unix socket.
    pub fn socket_path(&self) -> Option<&Path> {
        match &self.place {
            Place::Network { .. } => None,
            Place::Unix(path) => Some(path),
        }
    }

    /// Whether the server is spoken to in TLS.
    pub fn is_tls(&self) -> bool {
        self.tls
    }

    /// The address as a person writes it, with its scheme.
    pub fn url(&self) -> String {
        match (&self.place, self.tls) {
            (Place::Unix(_), _) => self.to_string(),
            (Place::Network { .. }, true) => format!("https://{self}"),
            (Place::Network { .. }, false) => format!("http://{self}"),
        }
    }
}

/// `HOST:PORT`, or `unix:PATH`.
impl fmt::Display for UpstreamAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Network { host, port } if host.contains(':') => {
                write!(formatter, "[{host}]:{port}")
            }
            Place::Network { host, port } => write!(formatter, "{host}:{port}"),
            Place::Unix(path) => write!(formatter, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_comes_back_as_it_was_written() {
        for url in [
            "http://h:1",
            "https://h:1",
            "http://[::1]:8000",
            "unix:/a/b.sock",
        ] {
            assert_eq!(UpstreamAddress::parse(url).unwrap().url(), url);
        }
        let ports = [
            ("http://h", "http://h:80"),
            ("https://h", "https://h:443"),
            ("unix:///a", "unix:/a"),
            ("http://[::1]", "http://[::1]:80"),
        ];
        for (url, whole) in ports {
            assert_eq!(UpstreamAddress::parse(url).unwrap().url(), whole);
        }
    }

    #[test]
    fn what_is_no_address_says_what_would_be_right() {
        for url in [
            "ftp://h",
            "h:80",
            "https://h/v1",
            "https://",
            "https://h:0",
            "http://h:99999",
            "http://[::1]:70000",
            "http://h:",
            "http://h:80#f",
            "unix:a.sock",
            &format!("unix:/{}", "a".repeat(107)),
            "unix:",
        ] {
            let error = UpstreamAddress::parse(url).unwrap_err().to_string();
            assert!(
                error.contains("http") || error.contains("unix:"),
                "{url}: {error}"
            );
        }
    }
}
