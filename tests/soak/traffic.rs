//! A client that asks for all kinds of things and does not always stay for the answer.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use fastrand::Rng;
use serde_json::json;

use crate::support::DEADLINE;

/// The routes of each lane, in the order of the engines; those that are not observed last.
const ROUTES: [&[&str]; 4] = [
    &[
        "/v1/chat/completions",
        "/v1/completions",
        "/inference/v1/generate",
        "/v1/models",
    ],
    &["/v1/chat/completions", "/v1/completions", "/health"],
    &[
        "/v1/chat/completions",
        "/v1/completions",
        "/generate",
        "/health",
    ],
    &[
        "/v1/chat/completions",
        "/v1/completions",
        "/completion",
        "/props",
    ],
];

/// What a client has seen of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// A whole answer with this status.
    Whole(u16),
    /// The end of the connection, before the answer's end.
    Cut,
    /// Nothing more: the client left.
    Left,
}

#[derive(Debug)]
pub(crate) struct Sent {
    /// Its `X-Request-ID`.
    pub(crate) id: String,
    pub(crate) lane: usize,
    pub(crate) observed: bool,
    pub(crate) seen: Seen,
}

pub(crate) struct Client {
    lanes: Vec<SocketAddr>,
    kept: Vec<Option<TcpStream>>,
    rng: Rng,
}

impl Client {
    pub(crate) fn new(lanes: Vec<SocketAddr>, rng: Rng) -> Self {
        let kept = lanes.iter().map(|_| None).collect();
        Self { lanes, kept, rng }
    }

    /// Sends the request of this number, whole, and does with the answer what chance says.
    pub(crate) fn ask(&mut self, number: u64) -> Sent {
        let lane = self.rng.usize(..self.lanes.len());
        let path = *self.rng.choice(ROUTES[lane]).unwrap();
        let id = format!("soak-{number}");
        let observed = !["/v1/models", "/health", "/props"].contains(&path);
        let request = if observed {
            self.generation(path, &id)
        } else {
            format!("GET {path} HTTP/1.1\r\nHost: a\r\nX-Request-ID: {id}\r\n\r\n")
        };
        let kept = self.kept[lane].take().filter(|_| self.rng.u8(..4) > 0);
        let mut stream = kept.unwrap_or_else(|| TcpStream::connect(self.lanes[lane]).unwrap());
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        if self.rng.u8(..20) == 0 {
            for piece in request.as_bytes().chunks(40) {
                stream.write_all(piece).unwrap();
                // Pieces that arrive apart.
                std::thread::sleep(Duration::from_millis(1));
            }
        } else {
            stream.write_all(request.as_bytes()).unwrap();
        }
        let stays_for = match self.rng.u8(..10) {
            // Before the head, at a random point, or to the end.
            0 => {
                // It leaves at some point of the wait.
                std::thread::sleep(Duration::from_millis(self.rng.u64(2..12)));
                0
            }
            1 | 2 => self.rng.usize(..6000),
            _ => usize::MAX,
        };
        let reads_slowly = self.rng.u8(..20) == 0;
        let seen = if stays_for == 0 {
            Seen::Left
        } else {
            read(&mut stream, stays_for, reads_slowly)
        };
        if matches!(seen, Seen::Whole(status) if status < 400) {
            self.kept[lane] = Some(stream);
        }
        Sent {
            id,
            lane,
            observed,
            seen,
        }
    }

    fn generation(&mut self, path: &str, id: &str) -> String {
        let most = self.rng.u64(1..60);
        let text = "Why is the sky blue? ".repeat(self.rng.usize(1..30));
        let mut body = match path {
            "/v1/chat/completions" => {
                json!({"model": "m", "max_tokens": most, "messages": [{"role": "user", "content": text}]})
            }
            "/v1/completions" => json!({"model": "m", "max_tokens": most, "prompt": text}),
            "/inference/v1/generate" => {
                json!({"model": "m", "token_ids": [1, 2, 3], "sampling_params": {"max_tokens": most}})
            }
            "/generate" => json!({"text": text, "sampling_params": {"max_new_tokens": most}}),
            _ => json!({"prompt": text, "n_predict": most}),
        };
        if self.rng.u8(..10) < 7 {
            body["stream"] = true.into();
            if path.starts_with("/v1/") && self.rng.bool() {
                body["stream_options"] = json!({"include_usage": self.rng.bool()});
            }
        }
        if path.starts_with("/v1/") {
            match self.rng.u8(..20) {
                0 => body["n"] = 2.into(),
                1 => body["stop"] = json!(["the"]),
                _ => {}
            }
        }
        let body = body.to_string();
        format!(
            "POST {path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nX-Request-ID: {id}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
    }
}

/// Reads an answer up to so many bytes.
fn read(stream: &mut TcpStream, most: usize, slowly: bool) -> Seen {
    let mut got = Vec::new();
    let mut buffer = vec![0; if slowly { 200 } else { 16 << 10 }];
    loop {
        let count = match stream.read(&mut buffer) {
            Ok(count) => count,
            Err(error) if broke_off(&error) => 0,
            Err(error) => panic!("{error}; had {:?}", String::from_utf8_lossy(&got)),
        };
        got.extend_from_slice(&buffer[..count]);
        if let Some(status) = whole(&got, count == 0) {
            return Seen::Whole(status);
        }
        if count == 0 {
            return Seen::Cut;
        }
        if got.len() >= most {
            return Seen::Left;
        }
        if slowly {
            // A reader slower than the engine.
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn broke_off(error: &io::Error) -> bool {
    error.kind() == ErrorKind::ConnectionReset
}

/// The status, once the answer is whole.
fn whole(got: &[u8], is_over: bool) -> Option<u16> {
    let at = memchr::memmem::find(got, b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&got[..at]).to_ascii_lowercase();
    let body = &got[at..];
    let length = head.split("content-length: ").nth(1);
    let length = length.and_then(|rest| rest.split("\r\n").next()?.parse().ok());
    let is_whole = match length {
        Some(length) => body.len() >= length,
        None if head.contains("transfer-encoding: chunked") => body.ends_with(b"0\r\n\r\n"),
        None => is_over,
    };
    is_whole.then(|| head.split(' ').nth(1).unwrap().parse().unwrap())
}
