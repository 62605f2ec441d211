//! What a request's head tells: its route, whether its body can be read, and the ids to keep.

use http::Method;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
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
        let fields = Fields::of(&parts.headers, &tag.header);
        let objection = fields.objection();
        Self {
            route,
            asks_models: parts.method == Method::GET && parts.uri.path().ends_with("/v1/models"),
            takes_stream_options: takes_stream_options(route, parts.uri.path()),
            is_readable: route.is_observed()
                && !matches!(objection, Some(Skip::NotJson | Skip::Encoding)),
            objection,
            takes_coding: fields.takes_coding,
            x_request_id: text(fields.x_request_id).map(cut_name),
            trace_id: text(fields.traceparent).and_then(trace_id),
            tag: text(fields.tag).and_then(tag::shown),
        }
    }
}

/// The fields that are looked at, found in one pass. Of several with one name the first counts.
#[derive(Default)]
struct Fields<'a> {
    content_type: Option<&'a HeaderValue>,
    has_coding: bool,
    takes_coding: bool,
    covers_body: bool,
    x_request_id: Option<&'a HeaderValue>,
    traceparent: Option<&'a HeaderValue>,
    tag: Option<&'a HeaderValue>,
}

impl<'a> Fields<'a> {
    fn of(headers: &'a HeaderMap, tag: &HeaderName) -> Self {
        let mut fields = Self::default();
        for (name, value) in headers {
            if name == tag {
                fields.tag.get_or_insert(value);
            }
            match name.as_str() {
                "content-type" => _ = fields.content_type.get_or_insert(value),
                "content-encoding" => fields.has_coding |= codings(value).next().is_some(),
                "accept-encoding" => fields.takes_coding |= codings(value).next().is_some(),
                "x-request-id" => _ = fields.x_request_id.get_or_insert(value),
                "traceparent" => _ = fields.traceparent.get_or_insert(value),
                name => fields.covers_body |= COVERS_BODY.contains(&name),
            }
        }
        fields
    }

    /// Why the body can't be altered.
    fn objection(&self) -> Option<Skip> {
        if self.has_coding {
            Some(Skip::Encoding)
        } else if !self.content_type.is_some_and(is_json_type) {
            Some(Skip::NotJson)
        } else if self.covers_body {
            Some(Skip::Signed)
        } else {
            None
        }
    }
}

fn text(value: Option<&HeaderValue>) -> Option<&str> {
    value?.to_str().ok()
}

/// The content codings in a field's value but for `identity`, as written.
fn codings(value: &HeaderValue) -> impl Iterator<Item = &[u8]> {
    let codings = value.as_bytes().split(|&byte| byte == b',');
    codings
        .map(<[u8]>::trim_ascii)
        .filter(|coding| !coding.is_empty() && !coding.eq_ignore_ascii_case(b"identity"))
}

/// The content codings of a body, as written; none if it has none.
pub(super) fn coding(headers: &HeaderMap) -> Option<String> {
    let values = headers.get_all(header::CONTENT_ENCODING);
    let codings: Vec<_> = values
        .into_iter()
        .flat_map(codings)
        .map(String::from_utf8_lossy)
        .collect();
    (!codings.is_empty()).then(|| codings.join(", "))
}

/// The media type of a message without its parameters, as written: its case means nothing.
pub(super) fn media_type(headers: &HeaderMap) -> Option<&str> {
    media_type_of(headers.get(header::CONTENT_TYPE)?)
}

fn media_type_of(content_type: &HeaderValue) -> Option<&str> {
    let value = content_type.to_str().ok()?;
    Some(value.split(';').next()?.trim())
}

/// Whether the message's body is JSON by its content type.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    headers.get(header::CONTENT_TYPE).is_some_and(is_json_type)
}

fn is_json_type(content_type: &HeaderValue) -> bool {
    let media = media_type_of(content_type).unwrap_or_default();
    let suffix = media.as_bytes().last_chunk::<5>();
    media.eq_ignore_ascii_case("application/json")
        || suffix.is_some_and(|suffix| suffix.eq_ignore_ascii_case(b"+json"))
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
