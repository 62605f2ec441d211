//! What a request's head tells: its route, whether its body can be read, and the ids to keep.

use http::Method;
use http::header::{self, HeaderMap, HeaderName};
use http::request::Parts;

use super::route::{route, takes_stream_options};
use super::skip::Skip;
use super::tag::{self, TagSource};
use crate::observation::{Route, cut_name};

/// Fields that cover the body with a digest or signature: after a splice it would be wrong.
const COVERS_BODY: [&str; 5] = [
    "content-digest",
    "digest",
    "content-md5",
    "x-amz-content-sha256",
    "signature-input",
];

/// The head of a request, as far as the tap needs it.
#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) route: Route,
    pub(super) takes_stream_options: bool,
    /// The list of models is asked for; it names the engine.
    pub(super) asks_models: bool,
    /// The body is plain JSON, so that it can be read.
    pub(super) is_readable: bool,
    /// Why the body can't be altered.
    pub(super) objection: Option<Skip>,
    /// The client takes an answer with a content coding.
    pub(super) takes_coding: bool,
    pub(super) x_request_id: Option<String>,
    pub(super) trace_id: Option<String>,
    pub(super) tag: Option<String>,
}

impl Arrival {
    pub(super) fn read(parts: &Parts, tag: &TagSource) -> Self {
        let route = route(&parts.method, parts.uri.path());
        let headers = &parts.headers;
        let objection = objection(headers);
        Self {
            route,
            asks_models: parts.method == Method::GET && parts.uri.path().ends_with("/v1/models"),
            takes_stream_options: takes_stream_options(route, parts.uri.path()),
            is_readable: route.is_observed()
                && !matches!(objection, Some(Skip::NotJson | Skip::Encoding)),
            objection,
            takes_coding: takes_coding(headers),
            x_request_id: text(headers, "x-request-id").map(cut_name),
            trace_id: text(headers, "traceparent").and_then(trace_id),
            tag: tag::read(headers, tag),
        }
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &'static str) -> Option<&'a str> {
    headers.get(HeaderName::from_static(name))?.to_str().ok()
}

fn objection(headers: &HeaderMap) -> Option<Skip> {
    if coding(headers).is_some() {
        Some(Skip::Encoding)
    } else if !is_json(headers) {
        Some(Skip::NotJson)
    } else if COVERS_BODY.iter().any(|name| headers.contains_key(*name)) {
        Some(Skip::Signed)
    } else {
        None
    }
}

/// The content codings of a body, as written; none if it has none.
pub(super) fn coding(headers: &HeaderMap) -> Option<String> {
    let mut codings = Vec::new();
    for value in headers.get_all(header::CONTENT_ENCODING) {
        for coding in value
            .as_bytes()
            .split(|&byte| byte == b',')
            .map(<[u8]>::trim_ascii)
        {
            if !coding.is_empty() && !coding.eq_ignore_ascii_case(b"identity") {
                codings.push(String::from_utf8_lossy(coding).into_owned());
            }
        }
    }
    (!codings.is_empty()).then(|| codings.join(", "))
}

/// The media type of a message without its parameters, in lower case.
pub(super) fn media_type(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    Some(value.split(';').next()?.trim().to_ascii_lowercase())
}

/// Whether the message's body is JSON by its content type.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    media_type(headers).is_some_and(|media| media == "application/json" || media.ends_with("+json"))
}

fn takes_coding(headers: &HeaderMap) -> bool {
    headers
        .get_all(header::ACCEPT_ENCODING)
        .iter()
        .any(|value| {
            let tokens = value.as_bytes().split(|&byte| byte == b',');
            tokens
                .map(<[u8]>::trim_ascii)
                .any(|token| !token.is_empty() && !token.eq_ignore_ascii_case(b"identity"))
        })
}

/// The trace id of a W3C `traceparent`: version, 32 hexadecimal digits, span, flags.
fn trace_id(traceparent: &str) -> Option<String> {
    let id = traceparent.split('-').nth(1)?;
    (id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit())).then(|| id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(fields: &[(&str, &str)]) -> Arrival {
        let mut request = http::Request::post("/v1/chat/completions");
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        Arrival::read(
            &request.body(()).unwrap().into_parts().0,
            &TagSource::default(),
        )
    }

    #[test]
    fn only_plain_json_is_read() {
        assert!(arrival(&[("content-type", "Application/JSON; charset=utf-8")]).is_readable);
        assert!(!arrival(&[]).is_readable);
        assert!(!arrival(&[("content-type", "text/plain")]).is_readable);
        let gzip = arrival(&[
            ("content-type", "application/json"),
            ("content-encoding", "gzip"),
        ]);
        assert_eq!(
            (gzip.is_readable, gzip.objection),
            (false, Some(Skip::Encoding))
        );
    }

    #[test]
    fn a_covered_body_is_read_and_never_altered() {
        for name in COVERS_BODY {
            let covered = arrival(&[("content-type", "application/json"), (name, "x")]);
            assert_eq!(
                (covered.is_readable, covered.objection),
                (true, Some(Skip::Signed)),
                "{name}"
            );
        }
    }

    #[test]
    fn ids_are_kept_short() {
        let long = "a".repeat(500);
        let seen = arrival(&[
            ("x-request-id", &long),
            (
                "traceparent",
                "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            ),
        ]);
        assert_eq!(seen.x_request_id.unwrap().len(), 128);
        assert_eq!(seen.trace_id.unwrap(), "0af7651916cd43dd8448eb211c80319c");
        assert_eq!(
            arrival(&[("traceparent", "junk-with-dashes")]).trace_id,
            None
        );
    }
}
