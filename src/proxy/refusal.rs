//! Answers that spectap gives itself, when the server behind it can't: always told apart from relayed ones by the header
//! `x-spectap-error`, with a JSON body in the shape that OpenAI clients understand.

use std::error::Error;
use std::io::{self, ErrorKind};

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::Full;

use super::timeouts::Late;
use super::tls::TlsFault;

/// The header that only spectap's own errors carry.
pub(super) const ERROR_HEADER: &str = "x-spectap-error";

/// How a socket fails whose other side is gone.
const LEFT: [ErrorKind; 4] = [
    ErrorKind::UnexpectedEof,
    ErrorKind::ConnectionReset,
    ErrorKind::ConnectionAborted,
    ErrorKind::BrokenPipe,
];

/// Why a request gets no answer from upstream. The kind is also a metric's label.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    #[error("HTTP/1.1 requests need exactly one Host header")]
    Host,
    #[error("CONNECT is not served here: this is a reverse proxy in front of one server")]
    Connect,
    #[error("only the transfer coding 'chunked' is served here")]
    TransferCoding,
    #[error(
        "the request target can not be passed on: it must be a path, an absolute URL, or '*' with OPTIONS"
    )]
    Target,
    #[error("the request's body can not be read")]
    RequestBody,
    #[error("the request's body ended before it was complete")]
    ClientLeft,
    #[error("no server answers at {0}: is it running?")]
    ConnectRefused(String),
    #[error("{0} did not accept a connection in time")]
    ConnectTimeout(String),
    #[error("can not connect to {0}: {1}")]
    ConnectFailed(String, String),
    #[error("{0} closed the connection before it answered")]
    Closed(String),
    #[error("the answer of {0} is not HTTP/1.1: {1}")]
    NotHttp(String, String),
    #[error("the request's body was not here within --total-timeout")]
    RequestTimeout,
    #[error("{0} {1}")]
    Late(String, Late),
    #[error("{0} does not speak HTTP/2: {1}")]
    NotHttp2(String, String),
    #[error("can not speak TLS with {0}: {1}")]
    Tls(String, TlsFault),
    #[error("{0} reset the request: {1}")]
    Reset(String, h2::Reason),
}

/// In the extensions of an answer that a client which speaks HTTP/2 gets as a reset of its stream, since that is what
/// the server said.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResetInstead(pub(super) h2::Reason);

impl Refusal {
    /// For a request's body that failed: a client that left is no client that sent nonsense, and sees no answer.
    pub(super) fn of_request_body(error: &(dyn Error + 'static)) -> Self {
        let mut cause = Some(error);
        while let Some(error) = cause {
            if let Some(error) = error.downcast_ref::<io::Error>()
                && LEFT.contains(&error.kind())
            {
                return Refusal::ClientLeft;
            }
            cause = error.source();
        }
        Refusal::RequestBody
    }

    /// For a request that got no answer over a connection that was open.
    pub(super) fn of_send(address: String, error: &hyper::Error) -> Self {
        if error.is_parse() {
            return Refusal::NotHttp(address, error.to_string());
        }
        if error.is_user() {
            return Self::of_request_body(error);
        }
        if let Some(error) = http2_error(error) {
            return Self::of_http2(address, error);
        }
        match TlsFault::of(error) {
            Some(fault) => Refusal::Tls(address, fault),
            None => Refusal::Closed(address),
        }
    }

    fn of_http2(address: String, error: &h2::Error) -> Self {
        let reason = error.reason().unwrap_or(h2::Reason::INTERNAL_ERROR);
        if let Some(error) = error.get_io() {
            return match TlsFault::of(error) {
                Some(fault) => Refusal::Tls(address, fault),
                None => Refusal::Closed(address),
            };
        }
        if error.is_library() {
            return Refusal::NotHttp2(address, error.to_string());
        }
        if error.is_remote() && error.is_go_away() {
            // The server took this request not up (RFC 9113 section 6.8): the client may send it again.
            return Refusal::Reset(address, h2::Reason::REFUSED_STREAM);
        }
        if error.is_remote() {
            return Refusal::Reset(address, reason);
        }
        // We have reset it ourselves, since the client's body broke off.
        Refusal::ClientLeft
    }

    /// The closed list of kinds: value of the header and of the label `kind`.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Refusal::Host => "bad-host",
            Refusal::Connect => "connect-method",
            Refusal::TransferCoding => "transfer-coding",
            Refusal::Target => "bad-target",
            Refusal::RequestBody => "request-body",
            Refusal::ClientLeft => "client-left",
            Refusal::ConnectRefused(_) => "connect-refused",
            Refusal::ConnectTimeout(_) => "connect-timeout",
            Refusal::ConnectFailed(..) => "connect-failed",
            Refusal::Closed(_) => "closed-early",
            Refusal::NotHttp(..) | Refusal::NotHttp2(..) => "not-http",
            Refusal::RequestTimeout => "request-timeout",
            Refusal::Late(_, late) => late.kind(),
            Refusal::Tls(_, fault) => fault.kind(),
            Refusal::Reset(..) => "reset",
        }
    }

    /// Whether the server's side is at fault, so that it counts as an upstream error.
    pub(super) fn is_upstream(&self) -> bool {
        self.status().is_server_error() && *self != Refusal::TransferCoding
    }

    fn status(&self) -> StatusCode {
        match self {
            Refusal::Host | Refusal::Target | Refusal::RequestBody | Refusal::ClientLeft => {
                StatusCode::BAD_REQUEST
            }
            Refusal::Connect => StatusCode::METHOD_NOT_ALLOWED,
            Refusal::TransferCoding => StatusCode::NOT_IMPLEMENTED,
            Refusal::RequestTimeout => StatusCode::REQUEST_TIMEOUT,
            Refusal::ConnectTimeout(_) | Refusal::Late(..) => StatusCode::GATEWAY_TIMEOUT,
            _ => StatusCode::BAD_GATEWAY,
        }
    }

    /// The answer. It ends the connection when the fault is the client's.
    pub(super) fn response(&self) -> Response<Full<Bytes>> {
        let status = self.status();
        let body = serde_json::json!({"error": {
            "message": format!("spectap: {self}"), "type": "spectap_error", "param": null, "code": status.as_u16(),
        }});
        let mut response = Response::new(Full::new(Bytes::from(body.to_string())));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        );
        headers.insert(ERROR_HEADER, HeaderValue::from_static(self.kind()));
        if !self.is_upstream() {
            // What follows on this connection may be a body that was never read.
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        if let Refusal::Reset(_, reason) = self {
            response.extensions_mut().insert(ResetInstead(*reason));
        }
        let headers = response.headers_mut();
        if status == StatusCode::METHOD_NOT_ALLOWED {
            headers.insert(
                header::ALLOW,
                HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"),
            );
        }
        response
    }
}

/// What HTTP/2 had to do with it.
pub(super) fn http2_error(error: &hyper::Error) -> Option<&h2::Error> {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref() {
            return Some(error);
        }
        cause = error.source();
    }
    None
}
