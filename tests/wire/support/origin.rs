//! An engine made of raw bytes: keeps what it is sent, answers what the test says.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use super::{DEADLINE, until};

/// What happens to a request: given its number (from 0), its bytes, and the connection.
pub(crate) type Handler = dyn Fn(usize, &RawRequest, &mut TcpStream) -> Then + Send + Sync;

/// What becomes of the connection after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    KeepAlive,
    Close,
}

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct RawRequest {
    /// Number of the connection it came on.
    pub(crate) connection: usize,
    pub(crate) head: String,
    /// The body as on the wire.
    pub(crate) raw_body: Vec<u8>,
}

impl RawRequest {
    pub(crate) fn body(&self) -> String {
        let chunked = self
            .head
            .to_ascii_lowercase()
            .contains("transfer-encoding: chunked");
        let body = if chunked {
            super::client::dechunk(&self.raw_body)
        } else {
            self.raw_body.clone()
        };
        String::from_utf8(body).unwrap()
    }
}

pub(crate) struct Origin {
    pub(crate) address: SocketAddr,
    requests: Arc<Mutex<Vec<RawRequest>>>,
    closed: Arc<Mutex<Vec<usize>>>,
}

impl Origin {
    /// An engine with an own handler.
    pub(crate) fn start(
        handler: impl Fn(usize, &RawRequest, &mut TcpStream) -> Then + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let origin = Self {
            address: listener.local_addr().unwrap(),
            requests: Arc::default(),
            closed: Arc::default(),
        };
        let (requests, closed) = (Arc::clone(&origin.requests), Arc::clone(&origin.closed));
        let handler: Arc<Handler> = Arc::new(handler);
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let (requests, closed, handler) = (
                    Arc::clone(&requests),
                    Arc::clone(&closed),
                    Arc::clone(&handler),
                );
                std::thread::spawn(move || {
                    let stream = stream.unwrap();
                    stream.set_nodelay(true).unwrap();
                    connection(number, stream, &requests, &*handler);
                    closed.lock().unwrap().push(number);
                });
            }
        });
        origin
    }

    /// An engine that answers the first request with the first answer, and so on; the last one repeats.
    pub(crate) fn answering(answers: Vec<Vec<u8>>) -> Self {
        Self::start(move |number, _, stream| {
            let answer = &answers[number.min(answers.len() - 1)];
            let _ = stream.write_all(answer);
            let head = String::from_utf8_lossy(answer).to_ascii_lowercase();
            let head = head.split("\r\n\r\n").next().unwrap_or_default();
            let framed = head.contains("content-length:") || head.contains("transfer-encoding:");
            let bodiless = [" 204 ", " 304 "]
                .iter()
                .any(|status| head.contains(status));
            if head.contains("connection: close") || !(framed || bodiless) {
                Then::Close
            } else {
                Then::KeepAlive
            }
        })
    }

    pub(crate) fn requests(&self) -> Vec<RawRequest> {
        self.requests.lock().unwrap().clone()
    }

    /// The bodies of all requests, as on the wire.
    pub(crate) fn raw_bodies(&self) -> Vec<Vec<u8>> {
        let requests = self.requests();
        requests.into_iter().map(|r| r.raw_body).collect()
    }

    /// The request of this number, once it is there.
    pub(crate) fn request(&self, number: usize) -> RawRequest {
        until("a request at the engine", || {
            self.requests().get(number).cloned()
        })
    }

    /// Waits until the peer has closed this connection.
    pub(crate) fn wait_closed(&self, connection: usize) {
        until("the engine's connection closed", || {
            self.closed
                .lock()
                .unwrap()
                .contains(&connection)
                .then_some(())
        });
    }
}

fn connection(
    number: usize,
    mut stream: TcpStream,
    requests: &Mutex<Vec<RawRequest>>,
    handler: &Handler,
) {
    let mut unread = Vec::new();
    while let Some(request) = read_request(number, &mut stream, &mut unread) {
        let index = {
            let mut requests = requests.lock().unwrap();
            requests.push(request.clone());
            requests.len() - 1
        };
        if handler(index, &request, &mut stream) == Then::Close {
            return;
        }
    }
}

fn read_request(
    connection: usize,
    stream: &mut TcpStream,
    unread: &mut Vec<u8>,
) -> Option<RawRequest> {
    let head_end = fill(stream, unread, |bytes| {
        memchr::memmem::find(bytes, b"\r\n\r\n").map(|at| at + 4)
    })?;
    let head = String::from_utf8_lossy(&unread[..head_end]).into_owned();
    unread.drain(..head_end);
    let lower = head.to_ascii_lowercase();
    let length = lower
        .split("content-length: ")
        .nth(1)
        .map(|rest| rest.split("\r\n").next().unwrap());
    let raw_body = if lower.contains("transfer-encoding: chunked") {
        let end = fill(stream, unread, |bytes| {
            // Only the end is looked at: a large body comes in many reads.
            let is_whole = bytes == b"0\r\n\r\n" || bytes.ends_with(b"\r\n0\r\n\r\n");
            is_whole.then_some(bytes.len())
        })?;
        unread.drain(..end).collect()
    } else {
        let length: usize = length.map_or(0, |length| length.parse().unwrap());
        fill(stream, unread, |bytes| {
            (bytes.len() >= length).then_some(length)
        })?;
        unread.drain(..length).collect()
    };
    Some(RawRequest {
        connection,
        head,
        raw_body,
    })
}

/// Reads until `found` finds what it wants; none when the peer closes first.
fn fill(
    stream: &mut TcpStream,
    unread: &mut Vec<u8>,
    found: impl Fn(&[u8]) -> Option<usize>,
) -> Option<usize> {
    let mut buffer = [0; 65536];
    loop {
        if let Some(found) = found(unread) {
            return Some(found);
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return None,
            Ok(count) => unread.extend_from_slice(&buffer[..count]),
        }
    }
}

/// Waits until the peer closes or resets the connection.
pub(crate) fn wait_for_close(stream: &mut TcpStream) {
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    let mut buffer = [0; 1024];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return,
            Err(error) => panic!("the connection was never closed: {error}"),
        }
    }
}

/// A JSON answer.
pub(crate) fn json(status: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nserver: engine\r\ncontent-length: {length}\r\ncontent-type: application/json\r\n\r\n{body}")
        .into_bytes()
}

/// An event stream, one chunk for each piece.
pub(crate) fn stream<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut answer = b"HTTP/1.1 200 OK\r\nserver: engine\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    for piece in pieces {
        answer.extend_from_slice(&chunk(piece));
    }
    answer.extend_from_slice(b"0\r\n\r\n");
    answer
}

/// One chunk of a chunked body.
pub(crate) fn chunk(data: &[u8]) -> Vec<u8> {
    let mut chunk = format!("{:x}\r\n", data.len()).into_bytes();
    chunk.extend_from_slice(data);
    chunk.extend_from_slice(b"\r\n");
    chunk
}
