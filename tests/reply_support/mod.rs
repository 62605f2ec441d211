//! Feeds stored responses to the reply observer, cut in several ways.

#![allow(
    dead_code,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "each test binary uses its own part of this module, and a test may panic anywhere"
)]

use std::path::{Path, PathBuf};
use std::time::Instant;

use spectap::tap::reply::{Reply, ReplyObserver};

/// Where the fixtures are.
pub(crate) fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// Reads a fixture.
pub(crate) fn fixture(path: impl AsRef<Path>) -> Vec<u8> {
    let path = fixtures().join(path);
    std::fs::read(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
}

/// How a body is framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Server-sent events.
    Stream,
    /// One JSON text.
    Json,
}

/// Lets an observer see the chunks.
pub(crate) fn observe<'a>(kind: Kind, chunks: impl IntoIterator<Item = &'a [u8]>) -> Reply {
    observe_with(observer(kind), chunks)
}

/// An observer of a body of this kind.
pub(crate) fn observer(kind: Kind) -> ReplyObserver {
    match kind {
        Kind::Stream => ReplyObserver::new_stream(),
        Kind::Json => ReplyObserver::new_json(),
    }
}

/// Lets this observer see the chunks.
pub(crate) fn observe_with<'a>(
    mut observer: ReplyObserver,
    chunks: impl IntoIterator<Item = &'a [u8]>,
) -> Reply {
    let at = Instant::now();
    for chunk in chunks {
        observer.see(chunk, at);
    }
    observer.finish()
}

/// A reply in comparable form: all but the clock's values.
pub(crate) fn without_times(mut reply: Reply) -> String {
    reply.first_content = None;
    reply.last_content = None;
    format!("{reply:#?}")
}

/// The body cut whole, byte by byte, behind each blank line, at random, and inside each event.
pub(crate) fn chunkings(body: &[u8]) -> Vec<(&'static str, Vec<&[u8]>)> {
    let mut blank_lines = Vec::new();
    for at in 1..body.len() {
        if body[at] == b'\n' && matches!(body[at - 1], b'\n' | b'\r') {
            blank_lines.push(at + 1);
        }
    }
    let mut random = fastrand::Rng::with_seed(7);
    let random_cuts = (0..body.len() / 40 + 3)
        .map(|_| random.usize(0..=body.len()))
        .collect();
    let mid_event = blank_lines
        .iter()
        .map(|cut| (cut + 9).min(body.len()))
        .collect();
    vec![
        ("whole", vec![body]),
        ("one byte", body.chunks(1).collect()),
        ("per event", cut(body, blank_lines)),
        ("random", cut(body, random_cuts)),
        ("mid event", cut(body, mid_event)),
    ]
}

/// Cuts a body at these offsets.
pub(crate) fn cut(body: &[u8], mut at: Vec<usize>) -> Vec<&[u8]> {
    at.extend([0, body.len()]);
    at.sort_unstable();
    at.windows(2).map(|pair| &body[pair[0]..pair[1]]).collect()
}

/// Status, content type and body of the first final response in these bytes, without its chunk framing.
pub(crate) fn first_response(mut bytes: &[u8]) -> (u16, String, Vec<u8>) {
    loop {
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut response = httparse::Response::new(&mut headers);
        let head = response.parse(bytes).expect("a response head").unwrap();
        let status = response.code.expect("a status");
        let value = |name: &str| {
            response
                .headers
                .iter()
                .find(|header| header.name.eq_ignore_ascii_case(name))
                .map(|header| String::from_utf8_lossy(header.value).into_owned())
        };
        let rest = &bytes[head..];
        if status < 200 {
            bytes = rest;
            continue;
        }
        let body = if value("transfer-encoding").as_deref() == Some("chunked") {
            dechunk(rest)
        } else {
            let length = value("content-length").and_then(|length| length.parse().ok());
            rest[..length.unwrap_or(rest.len()).min(rest.len())].to_vec()
        };
        return (status, value("content-type").unwrap_or_default(), body);
    }
}

/// Takes off the chunk framing; a body that is cut in the middle gives what there is.
fn dechunk(mut bytes: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Ok(httparse::Status::Complete((start, size))) = httparse::parse_chunk_size(bytes) {
        let size = usize::try_from(size).expect("a small chunk");
        let data = &bytes[start..];
        if size == 0 || data.is_empty() {
            break;
        }
        body.extend_from_slice(&data[..size.min(data.len())]);
        bytes = data.get(size + 2..).unwrap_or_default();
    }
    body
}
