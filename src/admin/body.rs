//! Reads the body of a request that changes something.

use std::time::Duration;

use axum::body::Bytes;
use axum::extract::Request;
use axum::http::header::CONTENT_TYPE;
use http_body_util::{BodyExt, LengthLimitError, Limited};

use super::answer::{ApiError, shown};

/// Largest body taken, in bytes.
const LARGEST_BODY: usize = 64 * 1024;

/// Longest time that a client may take to send it.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// The body of a request that says it is JSON.
///
/// The type is demanded because a page of another origin can send a form or plain text without asking, but JSON only
/// after a preflight that nobody here answers: this closes the door to cross-site requests.
///
/// # Errors
///
/// Another type, a body above 64 KiB, one that is broken off, one that takes more than 10 s.
pub(super) async fn json_body(request: Request) -> Result<Bytes, ApiError> {
    let sent = request
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or("");
    let media_type = sent.split(';').next().unwrap_or("").trim();
    if !media_type.eq_ignore_ascii_case("application/json") {
        return Err(ApiError::unsupported_media_type(format!(
            "the header Content-Type must be application/json, not '{}'",
            shown(sent)
        )));
    }
    let body = Limited::new(request.into_body(), LARGEST_BODY);
    match tokio::time::timeout(LONGEST_WAIT, body.collect()).await {
        Err(_) => Err(ApiError::timeout(format!(
            "the body did not arrive within {} s",
            LONGEST_WAIT.as_secs()
        ))),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(ApiError::too_large(format!(
            "the body must not be larger than {LARGEST_BODY} bytes"
        ))),
        Ok(Err(_)) => Err(ApiError::bad_request("the body was broken off")),
        Ok(Ok(body)) => Ok(body.to_bytes()),
    }
}
