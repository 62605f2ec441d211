//! A client that sends exactly the bytes it is told and keeps exactly the bytes it gets.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use super::DEADLINE;

/// An open connection.
pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    unread: Vec<u8>,
}

/// One response, split where its head ends.
#[derive(Debug)]
pub(crate) struct RawResponse {
    pub(crate) head: String,
    /// The body as on the wire, chunk framing included.
    pub(crate) raw_body: Vec<u8>,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream,
            unread: Vec::new(),
        }
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).unwrap();
    }

    /// Reads until `end` stands in what was read, and takes everything up to it.
    pub(crate) fn read_until(&mut self, end: &[u8]) -> Vec<u8> {
        let mut buffer = [0; 65536];
        loop {
            if let Some(at) = memchr::memmem::find(&self.unread, end) {
                return self.unread.drain(..at + end.len()).collect();
            }
            let count = self.stream.read(&mut buffer).unwrap();
            let so_far = String::from_utf8_lossy(&self.unread);
            assert!(
                count > 0,
                "closed before {:?}; had {so_far:?}",
                String::from_utf8_lossy(end)
            );
            self.unread.extend_from_slice(&buffer[..count]);
        }
    }

    /// Reads to the end of the connection; a reset ends it as well.
    pub(crate) fn read_to_end(&mut self) -> Vec<u8> {
        let mut all = std::mem::take(&mut self.unread);
        let mut buffer = [0; 65536];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return all,
                Ok(count) => all.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return all,
                Err(error) => panic!("{error}; had {:?}", String::from_utf8_lossy(&all)),
            }
        }
    }

    /// Reads one response, by its own framing; without framing, to the end of the connection.
    pub(crate) fn response(&mut self) -> RawResponse {
        let head = String::from_utf8_lossy(&self.read_until(b"\r\n\r\n")).into_owned();
        let lower = head.to_ascii_lowercase();
        let length = lower
            .split("content-length: ")
            .nth(1)
            .and_then(|rest| rest.split("\r\n").next());
        let raw_body = if lower.contains("transfer-encoding: chunked") {
            let mut body = Vec::new();
            loop {
                let size = self.read_until(b"\r\n");
                let text = String::from_utf8_lossy(&size);
                let length = usize::from_str_radix(text.trim_end(), 16).expect("a chunk size");
                body.extend_from_slice(&size);
                body.extend(self.read_exactly(length + 2));
                if length == 0 {
                    break body;
                }
            }
        } else if let Some(length) = length {
            self.read_exactly(length.parse().unwrap())
        } else {
            self.read_to_end()
        };
        RawResponse { head, raw_body }
    }

    fn read_exactly(&mut self, length: usize) -> Vec<u8> {
        let mut buffer = [0; 65536];
        while self.unread.len() < length {
            let count = self.stream.read(&mut buffer).unwrap();
            assert!(count > 0, "closed within a body");
            self.unread.extend_from_slice(&buffer[..count]);
        }
        self.unread.drain(..length).collect()
    }
}

impl RawResponse {
    pub(crate) fn status(&self) -> u16 {
        self.head.split(' ').nth(1).unwrap().parse().unwrap()
    }

    /// The body without chunk framing.
    pub(crate) fn body(&self) -> Vec<u8> {
        if self
            .head
            .to_ascii_lowercase()
            .contains("transfer-encoding: chunked")
        {
            dechunk(&self.raw_body)
        } else {
            self.raw_body.clone()
        }
    }
}

/// Takes chunk framing away; stops where it breaks off.
pub(crate) fn dechunk(mut raw: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(at) = memchr::memmem::find(raw, b"\r\n") {
        let size = std::str::from_utf8(&raw[..at])
            .unwrap()
            .split(';')
            .next()
            .unwrap();
        let length = usize::from_str_radix(size.trim(), 16).unwrap();
        if length == 0 {
            break;
        }
        let data = &raw[at + 2..];
        body.extend_from_slice(&data[..length.min(data.len())]);
        raw = data.get(length + 2..).unwrap_or_default();
    }
    body
}

/// Sends one request on its own connection and reads everything until the server closes.
pub(crate) fn exchange(address: SocketAddr, request: impl AsRef<[u8]>) -> Vec<u8> {
    let mut client = Client::connect(address);
    client.send(request);
    client.read_to_end()
}

/// A POST of JSON, with `Connection: close` unless `extra` says otherwise.
pub(crate) fn post(path: &str, body: &str, extra: &str) -> String {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nHost: engine.example\r\nContent-Type: application/json\r\n{extra}Content-Length: {length}\r\n\r\n{body}"
    )
}
