//! Which header fields pass from one hop to the next.
//!
//! The outgoing map is built by filtered copy: `HeaderMap::remove` is a swap-remove and would reorder what is left.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Version, request};

/// Fields that belong to one connection (RFC 9110 section 7.6.1), whatever `Connection` lists.
const HOP_BY_HOP: [HeaderName; 5] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::TE,
    header::UPGRADE,
];

/// Fields that a `Connection` header may not take away: they change what the message means or where it goes.
const NEVER_LISTED: [HeaderName; 6] = [
    header::HOST,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::CONTENT_TYPE,
    header::CONTENT_ENCODING,
    header::AUTHORIZATION,
];

/// What to do with one field besides the hop-by-hop rules.
pub(super) enum Field {
    /// Goes on as it is.
    Keep,
    /// Is left out.
    Drop,
}

/// Leaves the end-to-end fields in their order. `TE: trailers` is issued again, as trailers do pass; so is the pair of
/// `Connection: upgrade` and `Upgrade` where the protocol shall be switched. `Transfer-Encoding` stays where it stands,
/// since hyper frames by it.
pub(super) fn end_to_end(
    incoming: HeaderMap,
    switches: bool,
    decide: impl Fn(&HeaderName, &HeaderValue) -> Field,
) -> HeaderMap {
    let stays =
        |name, value| !HOP_BY_HOP.contains(name) && matches!(decide(name, value), Field::Keep);
    if incoming.iter().all(|(name, value)| stays(name, value)) {
        return incoming;
    }
    let listed = listed_by_connection(&incoming);
    let mut outgoing = HeaderMap::with_capacity(incoming.keys_len());
    for (name, value) in &incoming {
        let again = match *name {
            header::TE if lists(value, b"trailers") => HeaderValue::from_static("trailers"),
            header::CONNECTION if switches && lists(value, b"upgrade") => {
                HeaderValue::from_static("upgrade")
            }
            header::UPGRADE if switches => value.clone(),
            _ if HOP_BY_HOP.contains(name) || listed.contains(name) => continue,
            _ => value.clone(),
        };
        match decide(name, value) {
            Field::Keep => {
                outgoing.append(name.clone(), again);
            }
            Field::Drop => {}
        }
    }
    outgoing
}

/// Whether the message wants to switch to another protocol than HTTP (RFC 9110 section 7.8). HTTP/2 in clear text is
/// begun without asking (RFC 9113 section 3.1), so that `h2c` is not passed on.
pub(super) fn wants_switch(request: &request::Parts) -> bool {
    let headers = &request.headers;
    let mut connection = headers.get_all(header::CONNECTION).iter();
    request.version == Version::HTTP_11
        && connection.any(|value| lists(value, b"upgrade"))
        && headers
            .get(header::UPGRADE)
            .is_some_and(|protocol| !lists(protocol, b"h2c"))
}

/// Makes one field of the cookies that HTTP/2 may split (RFC 9113 section 8.2.3).
pub(super) fn join_cookies(headers: &mut HeaderMap) {
    let cookies = headers.get_all(header::COOKIE);
    if cookies.iter().nth(1).is_none() {
        return;
    }
    let pieces: Vec<&[u8]> = cookies.iter().map(HeaderValue::as_bytes).collect();
    if let Ok(joined) = HeaderValue::from_bytes(&pieces.join(&b"; "[..])) {
        headers.insert(header::COOKIE, joined);
    }
}

/// The names that `Connection` lists. Values are read as bytes: a value that is no text must not hurt anybody.
fn listed_by_connection(headers: &HeaderMap) -> Vec<HeaderName> {
    let mut names = Vec::new();
    for value in headers.get_all(header::CONNECTION) {
        for token in value.as_bytes().split(|&byte| byte == b',') {
            if let Ok(name) = HeaderName::from_bytes(token.trim_ascii())
                && !NEVER_LISTED.contains(&name)
            {
                names.push(name);
            }
        }
    }
    names
}

fn lists(value: &HeaderValue, wanted: &[u8]) -> bool {
    value.as_bytes().split(|&byte| byte == b',').any(|token| {
        let name = token.split(|&byte| byte == b';').next().unwrap_or_default();
        name.trim_ascii().eq_ignore_ascii_case(wanted)
    })
}

/// Whether the message's `Transfer-Encoding` is exactly `chunked`, once; `None` without the field.
pub(super) fn only_chunked(headers: &HeaderMap) -> Option<bool> {
    let mut values = headers.get_all(header::TRANSFER_ENCODING).iter();
    let first = values.next()?;
    Some(
        values.next().is_none()
            && first
                .as_bytes()
                .trim_ascii()
                .eq_ignore_ascii_case(b"chunked"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(fields: &[(&'static str, &'static [u8])]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, HeaderValue::from_bytes(value).unwrap());
        }
        headers
    }

    fn request(headers: HeaderMap) -> request::Parts {
        let (mut parts, ()) = http::Request::new(()).into_parts();
        parts.headers = headers;
        parts
    }

    fn names(headers: &HeaderMap) -> Vec<&str> {
        headers.iter().map(|(name, _)| name.as_str()).collect()
    }

    #[test]
    fn order_and_repeats_survive_the_removal_of_the_first_field() {
        let incoming = map(&[
            ("connection", b"x-hop"),
            ("b", b"1"),
            ("x-hop", b"2"),
            ("a", b"3"),
            ("b", b"4"),
        ]);
        assert_eq!(
            names(&end_to_end(incoming.clone(), false, |_, _| Field::Keep)),
            ["b", "b", "a"]
        );
    }

    #[test]
    fn connection_can_not_take_away_fields_that_change_meaning() {
        let incoming = map(&[
            ("host", b"h"),
            ("content-length", b"1"),
            ("connection", b"host, content-length, authorization"),
        ]);
        assert_eq!(
            names(&end_to_end(incoming.clone(), false, |_, _| Field::Keep)),
            ["host", "content-length"]
        );
    }

    #[test]
    fn a_connection_value_that_is_no_text_is_harmless() {
        let incoming = map(&[("connection", b"\xff\xfe, close"), ("a", b"1")]);
        assert_eq!(
            names(&end_to_end(incoming.clone(), false, |_, _| Field::Keep)),
            ["a"]
        );
    }

    #[test]
    fn a_switch_of_protocol_passes_as_a_pair_and_nothing_else_of_the_hop() {
        let incoming = map(&[
            ("upgrade", b"websocket"),
            ("connection", b"keep-alive, Upgrade, x-hop"),
            ("x-hop", b"1"),
            ("a", b"2"),
        ]);
        assert!(wants_switch(&request(incoming.clone())));
        let outgoing = end_to_end(incoming.clone(), true, |_, _| Field::Keep);
        assert_eq!(names(&outgoing), ["upgrade", "connection", "a"]);
        assert_eq!(outgoing["connection"], "upgrade");
        for lone in [
            map(&[("upgrade", b"websocket")]),
            map(&[("connection", b"upgrade")]),
            map(&[("connection", b"upgrade"), ("upgrade", b"h2c")]),
        ] {
            assert!(!wants_switch(&request(lone)));
        }
    }

    #[test]
    fn te_passes_as_trailers_only() {
        let incoming = map(&[("te", b"gzip, trailers;q=1"), ("connection", b"te")]);
        let outgoing = end_to_end(incoming.clone(), false, |_, _| Field::Keep);
        assert_eq!(outgoing["te"], "trailers");
        assert!(end_to_end(map(&[("te", b"gzip")]), false, |_, _| Field::Keep).is_empty());
    }
}
