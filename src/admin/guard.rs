//! Who may read what.
//!
//! - Bound to loopback: no token is needed, but the Host header must be a loopback name or an IP literal and an Origin
//!   must be our own. A page that a browser was lured to could otherwise reach the port under a name of its own that it
//!   points at 127.0.0.1 (DNS rebinding), or send requests across origins.
//! - Bound to another address without a token: only `/metrics`, `/livez` and `/readyz` answer.
//! - With a token: everything but those and the page's files, which hold no data, asks for it, and `/metrics` does too
//!   if it is protected.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, HOST, ORIGIN, WWW_AUTHENTICATE};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, Version};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::answer::{ApiError, shown};

/// The rules of one admin port.
pub struct Access {
    bound_to_loopback: bool,
    token: Option<String>,
    protect_metrics: bool,
}

impl Access {
    /// The rules for a port bound to `bound`, with the token that the protected paths ask for and whether `/metrics` is
    /// among them. An empty token admits nobody; with `protect_metrics` and no token nobody reads `/metrics`.
    pub fn new(bound: SocketAddr, token: Option<String>, protect_metrics: bool) -> Self {
        Self {
            bound_to_loopback: bound.ip().to_canonical().is_loopback(),
            token,
            protect_metrics,
        }
    }

    fn admit(&self, request: &Request) -> Result<(), ApiError> {
        if self.bound_to_loopback {
            check_host_and_origin(request)?;
        }
        let open = match request.uri().path() {
            "/livez" | "/readyz" => true,
            "/metrics" => !self.protect_metrics,
            // The page asks for the token by itself.
            path if self.token.is_some() && is_of_the_page(path) => true,
            _ => self.bound_to_loopback && self.token.is_none(),
        };
        if open {
            return Ok(());
        }
        match &self.token {
            None => Err(ApiError::forbidden(
                "token_required",
                "this admin port is not bound to loopback, so it answers only /metrics, /livez and /readyz; \
                 start spectap with --admin-token-file to open the rest to those who hold the token",
            )),
            Some(token) if bearer(request.headers()).is_some_and(|it| same(token, it)) => Ok(()),
            Some(_) => Err(ApiError::unauthorized(
                "this needs the header 'Authorization: Bearer <token>' with the token of --admin-token-file",
            )),
        }
    }
}

/// Lets a request through or answers why not.
pub(super) async fn check(
    State(access): State<Arc<Access>>,
    request: Request,
    next: Next,
) -> Response {
    match access.admit(&request) {
        Ok(()) => next.run(request).await,
        Err(error) => {
            let challenge = error.status == StatusCode::UNAUTHORIZED;
            let mut response = error.into_response();
            if challenge {
                response
                    .headers_mut()
                    .insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            response
        }
    }
}

fn is_of_the_page(path: &str) -> bool {
    path == "/" || path.starts_with("/page/")
}

fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(AUTHORIZATION)?.as_bytes();
    let (scheme, token) = value.split_at_checked(b"Bearer ".len())?;
    scheme
        .eq_ignore_ascii_case(b"Bearer ")
        .then(|| token.trim_ascii())
}

/// Compares in a time that tells nothing about where the two differ.
fn same(token: &str, given: &[u8]) -> bool {
    let token = token.as_bytes();
    if token.is_empty() || token.len() != given.len() {
        return false;
    }
    let difference = token
        .iter()
        .zip(given)
        .fold(0, |difference, (ours, theirs)| difference | (ours ^ theirs));
    std::hint::black_box(difference) == 0
}

fn check_host_and_origin(request: &Request) -> Result<(), ApiError> {
    let mut hosts = request.headers().get_all(HOST).iter();
    let host = match (hosts.next(), hosts.next()) {
        (Some(host), None) => Some(authority(host)?),
        (Some(_), Some(_)) => return Err(ApiError::bad_request("there are two Host headers")),
        // No browser leaves it out.
        (None, _) if request.version() == Version::HTTP_10 => None,
        (None, _) => return Err(ApiError::bad_request("the Host header is missing")),
    };
    for named in [host.as_ref(), request.uri().authority()]
        .into_iter()
        .flatten()
    {
        if !is_loopback_name_or_literal(named.host()) {
            return Err(ApiError::forbidden(
                "host_refused",
                format!(
                    "this admin port is bound to loopback and does not answer under the name '{}'; \
                     use localhost or an IP address",
                    shown(named.host())
                ),
            ));
        }
    }
    match request.headers().get(ORIGIN) {
        Some(origin) if !is_same_origin(origin, host.as_ref()) => Err(ApiError::forbidden(
            "origin_refused",
            format!(
                "requests from pages of another origin ('{}') are refused",
                shown(&String::from_utf8_lossy(origin.as_bytes()))
            ),
        )),
        _ => Ok(()),
    }
}

fn authority(host: &HeaderValue) -> Result<Authority, ApiError> {
    Authority::try_from(host.as_bytes())
        .ok()
        .filter(|authority| !authority.as_str().contains('@'))
        .ok_or_else(|| ApiError::bad_request("the Host header is not a host and a port"))
}

fn is_loopback_name_or_literal(host: &str) -> bool {
    let name = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    let literal = name
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(&name);
    // RFC 6761 section 6.3: every name under localhost is loopback.
    name == "localhost" || name.ends_with(".localhost") || literal.parse::<IpAddr>().is_ok()
}

fn is_same_origin(origin: &HeaderValue, host: Option<&Authority>) -> bool {
    let (Ok(origin), Some(host)) = (Uri::try_from(origin.as_bytes()), host) else {
        return false;
    };
    let default_port = match origin.scheme_str() {
        Some("http") => 80,
        Some("https") => 443,
        _ => return false,
    };
    origin.authority().is_some_and(|origin| {
        origin.host().eq_ignore_ascii_case(host.host())
            && origin.port_u16().unwrap_or(default_port) == host.port_u16().unwrap_or(default_port)
    })
}

#[cfg(test)]
mod tests {
    use super::same;

    #[test]
    fn only_the_whole_token_is_the_token_and_an_empty_one_is_none() {
        assert!(same("s3cret", b"s3cret"));
        for wrong in ["s3cre", "s3cret2", "S3cret", "", "t3cret"] {
            assert!(!same("s3cret", wrong.as_bytes()), "{wrong}");
        }
        assert!(!same("", b""));
    }
}
