//! Where the server behind the tap is, as a person writes it: `http://HOST[:PORT]`.

use std::fmt;

/// Where the server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamAddress {
    host: String,
    port: u16,
}

/// What is wrong with an upstream URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UpstreamAddressError {
    /// It can't be parsed at all.
    #[error("is not a URL; write it like http://127.0.0.1:8000")]
    NotUrl,
    /// Another scheme than `http`.
    #[error("has the scheme '{0}'; only http:// is served so far")]
    Scheme(String),
    /// A path, query or user name, which could not be kept.
    #[error(
        "has more than a host and a port; paths pass through as the client sends them, so write only http://HOST:PORT"
    )]
    MoreThanAuthority,
}

impl UpstreamAddress {
    /// Reads `http://HOST[:PORT]`.
    ///
    /// # Errors
    ///
    /// When it is anything else; the error says what would be right.
    pub fn parse(url: &str) -> Result<Self, UpstreamAddressError> {
        let uri: http::Uri = url.parse().map_err(|_| UpstreamAddressError::NotUrl)?;
        let scheme = uri.scheme_str().ok_or(UpstreamAddressError::NotUrl)?;
        if scheme != "http" {
            return Err(UpstreamAddressError::Scheme(scheme.to_owned()));
        }
        let authority = uri.authority().ok_or(UpstreamAddressError::NotUrl)?;
        if authority.as_str().contains('@') || uri.path() != "/" || uri.query().is_some() {
            return Err(UpstreamAddressError::MoreThanAuthority);
        }
        let port = match authority.port() {
            Some(port) => port
                .as_str()
                .parse()
                .map_err(|_| UpstreamAddressError::NotUrl)?,
            None if authority.as_str().ends_with(':') => return Err(UpstreamAddressError::NotUrl),
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
            host: host.to_owned(),
            port,
        })
    }

    /// Host name or address, and port.
    pub fn host_and_port(&self) -> (&str, u16) {
        (&self.host, self.port)
    }
}

impl fmt::Display for UpstreamAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(formatter, "[{}]:{}", self.host, self.port)
        } else {
            write!(formatter, "{}:{}", self.host, self.port)
        }
    }
}
