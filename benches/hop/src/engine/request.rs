//! Requests as the engine double reads them: no more than it must know.

use memchr::memmem;

use crate::order::{HEADER, Order};

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// A chat completion.
    Completion {
        /// What to do.
        order: Order,
        /// Whether `stream_options.include_usage` is true.
        include_usage: bool,
    },
    /// The engine's own counts.
    Counts,
    /// Anything else that is well formed: a probe.
    Other,
}

/// What the bytes of a connection hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// A request, and how many bytes it took.
    Request(Asked, usize),
    /// The beginning of one.
    Incomplete,
    /// No request that the double takes.
    Refused,
}

/// Reads the first request of `bytes`.
pub fn read(bytes: &[u8]) -> Read {
    let Some(end) = memmem::find(bytes, b"\r\n\r\n") else {
        return Read::Incomplete;
    };
    let (head, body) = (&bytes[..end], &bytes[end + 4..]);
    let mut lines = Lines(head);
    let first = lines.next().unwrap_or_default();
    let (mut length, mut chunked, mut order) = (0, false, None);
    for line in lines {
        if let Some(value) = value(line, b"content-length") {
            match value.parse() {
                Ok(value) => length = value,
                Err(_) => return Read::Refused,
            }
        } else if let Some(value) = value(line, b"transfer-encoding") {
            chunked = value.eq_ignore_ascii_case("chunked");
        } else if let Some(value) = value(line, HEADER.as_bytes()) {
            match value.parse() {
                Ok(value) => order = Some(value),
                Err(_) => return Read::Refused,
            }
        }
    }
    if chunked {
        // No body that is sent here holds these bytes itself.
        length = match memmem::find(body, b"0\r\n\r\n") {
            Some(at) => at + 5,
            None => return Read::Incomplete,
        };
    }
    if body.len() < length {
        return Read::Incomplete;
    }
    let asked = if first.starts_with(b"POST /v1/chat/completions ") {
        let Some(order) = order else {
            return Read::Refused;
        };
        Asked::Completion {
            order,
            include_usage: asks_for_usage(&body[..length]),
        }
    } else if first.starts_with(b"GET /bench/counts ") {
        Asked::Counts
    } else {
        Asked::Other
    };
    Read::Request(asked, end + 4 + length)
}

/// The lines of a head.
struct Lines<'a>(&'a [u8]);

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.0.is_empty() {
            return None;
        }
        match memchr::memchr(b'\n', self.0) {
            Some(at) => {
                let line = self.0[..at].strip_suffix(b"\r").unwrap_or(&self.0[..at]);
                self.0 = &self.0[at + 1..];
                Some(line)
            }
            None => Some(std::mem::take(&mut self.0)),
        }
    }
}

/// The value of a header line, if it is of that name.
fn value<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a str> {
    if *line.get(name.len())? != b':' || !line[..name.len()].eq_ignore_ascii_case(name) {
        return None;
    }
    std::str::from_utf8(&line[name.len() + 1..])
        .ok()
        .map(str::trim)
}

fn asks_for_usage(body: &[u8]) -> bool {
    const MEMBER: &[u8] = b"\"include_usage\"";
    memmem::find(body, MEMBER).is_some_and(|at| {
        let rest = body[at + MEMBER.len()..].trim_ascii_start();
        rest.strip_prefix(b":")
            .is_some_and(|value| value.trim_ascii_start().starts_with(b"true"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDER: Order = Order::Unary { size: 2048 };

    fn completion(include_usage: bool) -> Asked {
        Asked::Completion {
            order: ORDER,
            include_usage,
        }
    }

    #[test]
    fn a_request_is_read_once_it_is_whole_and_only_as_far_as_it_goes() {
        let whole = b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nX-Bench: unary 2048\r\nContent-Length: 2\r\n\r\n{}";
        for end in 0..whole.len() {
            assert_eq!(read(&whole[..end]), Read::Incomplete, "{end}");
        }
        let two = [&whole[..], whole].concat();
        assert_eq!(read(&two), Read::Request(completion(false), whole.len()));
    }

    #[test]
    fn usage_is_asked_for_by_true_alone() {
        for (body, asked) in [
            (r#"{"stream_options":{"include_usage":true}}"#, true),
            (r#"{"stream_options":{"include_usage" : true}}"#, true),
            (r#"{"stream_options":{"include_usage":false}}"#, false),
            (r#"{"stream_options":{}}"#, false),
        ] {
            assert_eq!(asks_for_usage(body.as_bytes()), asked, "{body}");
        }
    }

    #[test]
    fn a_body_in_chunks_and_a_head_in_lower_case_are_read_too() {
        let request = b"POST /v1/chat/completions HTTP/1.1\r\nx-bench: unary 2048\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n";
        assert_eq!(
            read(request),
            Read::Request(completion(false), request.len())
        );
    }

    #[test]
    fn a_completion_without_an_order_is_refused() {
        let request = b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\n\r\n";
        assert_eq!(read(request), Read::Refused);
        let request = b"POST /v1/chat/completions HTTP/1.1\r\nx-bench: unary x\r\n\r\n";
        assert_eq!(read(request), Read::Refused);
        assert_eq!(
            read(b"GET /health HTTP/1.1\r\n\r\n"),
            Read::Request(Asked::Other, 24)
        );
    }
}
