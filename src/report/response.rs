//! Captured HTTP responses: heads and bodies as they came over the wire, one behind the other.

use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, TRANSFER_ENCODING};

/// Most header lines of a response that is read.
const MOST_HEADERS: usize = 128;

/// One response.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Response {
    pub(super) status: u16,
    /// Whether the content type says that it is a stream.
    pub(super) is_stream: bool,
    pub(super) coding: Option<String>,
    /// Without its transfer coding.
    pub(super) body: Vec<u8>,
    /// Whether the body came to its end.
    pub(super) is_whole: bool,
}

/// The final responses in these bytes; those of 1xx are passed over.
///
/// # Errors
///
/// What is wrong with the first that can't be read, in a few words.
pub(super) fn responses(mut bytes: &[u8]) -> Result<Vec<Response>, String> {
    let mut responses = Vec::new();
    while !bytes.trim_ascii().is_empty() {
        let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut head = httparse::Response::new(&mut headers);
        let length = match head.parse(bytes) {
            Ok(httparse::Status::Complete(length)) => length,
            Ok(httparse::Status::Partial) => return Err("its head has no end".to_owned()),
            Err(error) => return Err(format!("no HTTP response: {error}")),
        };
        let status = head.code.unwrap_or(0);
        bytes = &bytes[length..];
        if (100..200).contains(&status) {
            continue;
        }
        let value = |name: HeaderName| {
            head.headers
                .iter()
                .find(|header| header.name.eq_ignore_ascii_case(name.as_str()))
                .and_then(|header| std::str::from_utf8(header.value).ok())
                .map(|value| value.trim().to_ascii_lowercase())
        };
        let is_chunked = value(TRANSFER_ENCODING).is_some_and(|value| value.ends_with("chunked"));
        let content_length = value(CONTENT_LENGTH).and_then(|value| value.parse().ok());
        let (body, used, is_whole) = match (is_chunked, content_length) {
            (true, _) => chunked(bytes),
            (false, Some(length)) => {
                let end = bytes.len().min(length);
                (bytes[..end].to_vec(), end, end == length)
            }
            (false, None) => (bytes.to_vec(), bytes.len(), true),
        };
        bytes = &bytes[used..];
        responses.push(Response {
            status,
            is_stream: value(CONTENT_TYPE)
                .is_some_and(|value| value.starts_with("text/event-stream")),
            coding: value(CONTENT_ENCODING).filter(|coding| coding != "identity"),
            body,
            is_whole,
        });
    }
    Ok(responses)
}

/// The body without its chunks, how many bytes it took, and whether its last chunk came.
fn chunked(bytes: &[u8]) -> (Vec<u8>, usize, bool) {
    let mut body = Vec::new();
    let mut at = 0;
    loop {
        let Ok(httparse::Status::Complete((line, size))) = httparse::parse_chunk_size(&bytes[at..])
        else {
            return (body, bytes.len(), false);
        };
        at += line;
        if size == 0 {
            return (body, after_trailers(bytes, at), true);
        }
        let end = usize::try_from(size)
            .ok()
            .and_then(|size| at.checked_add(size))
            .filter(|end| *end <= bytes.len());
        let Some(end) = end else {
            body.extend_from_slice(&bytes[at..]);
            return (body, bytes.len(), false);
        };
        body.extend_from_slice(&bytes[at..end]);
        at = bytes.len().min(end + 2);
    }
}

/// Where the next response begins: behind the blank line that ends the trailers.
fn after_trailers(bytes: &[u8], mut at: usize) -> usize {
    while let Some(length) = memchr::memchr(b'\n', &bytes[at..]) {
        let line = bytes[at..at + length].trim_ascii();
        at += length + 1;
        if line.is_empty() {
            break;
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_stand_one_behind_the_other_and_informational_ones_are_passed_over() {
        let bytes = b"HTTP/1.1 100 Continue\r\n\r\n\
            HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n\
            3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nTrailer: t\r\n\r\n\
            HTTP/1.1 429 Too Many\r\nContent-Length: 2\r\n\r\nnoHTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\nrest";
        let all = responses(bytes).unwrap();
        let seen: Vec<_> = all
            .iter()
            .map(|it| (it.status, it.is_stream, it.body.as_slice(), it.is_whole))
            .collect();
        assert_eq!(
            seen,
            [
                (200, true, &b"abcde"[..], true),
                (429, false, b"no", true),
                (200, false, b"rest", true)
            ]
        );
        assert_eq!(all[2].coding.as_deref(), Some("gzip"));
    }

    #[test]
    fn a_body_that_was_cut_is_kept_and_marked() {
        for (head, body) in [
            ("Content-Length: 9", "abc"),
            ("Transfer-Encoding: chunked", "9\r\nabc"),
        ] {
            let bytes = format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n{body}");
            let all = responses(bytes.as_bytes()).unwrap();
            assert_eq!(
                (all[0].body.as_slice(), all[0].is_whole),
                (&b"abc"[..], false)
            );
        }
    }

    #[test]
    fn what_is_no_response_is_said() {
        assert!(responses(b"GET / HTTP/1.1\r\n\r\n").is_err());
        assert!(responses(b"HTTP/1.1 200 OK\r\nA: b").is_err());
        assert_eq!(responses(b" \r\n").unwrap(), []);
    }
}
