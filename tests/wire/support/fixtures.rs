//! Captured responses of a real vLLM, and sample requests.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use super::client::dechunk;

pub(crate) fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name)
}

/// A captured response.
pub(crate) struct Capture {
    /// Everything, as it came off the socket.
    pub(crate) raw: Vec<u8>,
    /// The body without chunk framing.
    pub(crate) body: Vec<u8>,
    /// The request's body; null for none.
    pub(crate) request: Value,
}

/// `name`: folder and case, like `ngram-summary/chat-nonstream`.
pub(crate) fn capture(name: &str) -> Capture {
    let base = path("captures/vllm-0.32.0");
    let raw = fs::read(base.join(format!("{name}.http")))
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    let at = memchr::memmem::find(&raw, b"\r\n\r\n").unwrap() + 4;
    let head = String::from_utf8_lossy(&raw[..at]);
    let body = if head.contains("transfer-encoding: chunked") {
        dechunk(&raw[at..])
    } else {
        raw[at..].to_vec()
    };
    let request = fs::read(base.join(format!("{name}.request.json"))).unwrap_or_default();
    Capture {
        body,
        request: serde_json::from_slice(&request).unwrap_or_default(),
        raw,
    }
}

/// The events of a stream, each with its blank line.
pub(crate) fn events(body: &[u8]) -> Vec<Vec<u8>> {
    let mut events = Vec::new();
    let mut rest = body;
    while let Some(at) = memchr::memmem::find(rest, b"\n\n") {
        events.push(rest[..at + 2].to_vec());
        rest = &rest[at + 2..];
    }
    if !rest.is_empty() {
        events.push(rest.to_vec());
    }
    events
}

/// Takes the values of `id`, `request_id` and `created` out, since they differ between captures.
pub(crate) fn masked(body: &[u8]) -> String {
    let mut text = String::from_utf8_lossy(body).into_owned();
    for (start, end) in [
        ("\"id\":\"", '"'),
        ("\"request_id\":\"", '"'),
        ("\"created\":", ','),
    ] {
        let mut masked = String::with_capacity(text.len());
        let mut rest = text.as_str();
        while let Some(at) = rest.find(start) {
            let value = at + start.len();
            masked.push_str(&rest[..value]);
            masked.push('*');
            rest = &rest[value..];
            rest = &rest[rest.find(end).unwrap_or(rest.len())..];
        }
        masked.push_str(rest);
        text = masked;
    }
    text
}
