//! One answer as it came off a socket, read by its own framing.

use std::io::{self, Read};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Longest time between two reads. A long prefill is no fault.
const LONGEST_SILENCE: Duration = Duration::from_secs(120);

/// Largest head that is read.
const LARGEST_HEAD: usize = 4 << 20;

/// Most header lines that are read.
const MOST_FIELDS: usize = 4096;

/// How an answer's body is delimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub(super) enum Framing {
    /// There is no body.
    None,
    /// By a length.
    Length,
    /// In chunks.
    Chunked,
    /// By the end of the connection.
    Close,
}

/// One answer.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    /// Statuses of the interim answers before it.
    pub(super) interim: Vec<u16>,
    /// HTTP's minor version.
    pub(super) version: u8,
    pub(super) status: u16,
    pub(super) reason: String,
    /// Name and value of each header line, as sent.
    pub(super) fields: Vec<(String, Vec<u8>)>,
    pub(super) framing: Framing,
    /// The body without chunk framing.
    pub(super) body: Vec<u8>,
    pub(super) trailers: Vec<u8>,
    /// The connection ended before the framing says so.
    pub(super) is_cut: bool,
    /// From the request's end to the head, to the first byte of the body, and to its last.
    pub(super) head_after: Duration,
    pub(super) first_after: Duration,
    pub(super) last_after: Duration,
}

impl Answer {
    /// The values of a header.
    pub(super) fn values(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        let lines = self.fields.iter();
        lines
            .filter(move |(it, _)| it.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_slice())
    }
}

/// The receiving side of a connection.
pub(super) struct Reader<'a> {
    stream: &'a TcpStream,
    unread: Vec<u8>,
    /// When the last bytes came.
    read_at: Instant,
}

impl<'a> Reader<'a> {
    pub(super) fn new(stream: &'a TcpStream) -> Self {
        Self {
            stream,
            unread: Vec::new(),
            read_at: Instant::now(),
        }
    }

    /// Reads once; `false` at the end of the connection, and a reset is one.
    fn fill(&mut self, patience: Duration) -> io::Result<bool> {
        self.stream.set_read_timeout(Some(patience))?;
        let mut buffer = [0; 65536];
        let mut stream = self.stream;
        match stream.read(&mut buffer) {
            Ok(0) => Ok(false),
            Ok(count) => {
                self.unread.extend_from_slice(&buffer[..count]);
                self.read_at = Instant::now();
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Whether the server says, within `patience`, that it wants the body, or already answers.
    pub(super) fn is_told_to_go_on(&mut self, patience: Duration) -> io::Result<bool> {
        match self.fill(patience) {
            Ok(more) => Ok(more),
            Err(error) if is_timeout(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Reads the next answer, to a request that was sent at `sent`.
    pub(super) fn answer(&mut self, is_head: bool, sent: Instant) -> io::Result<Answer> {
        let mut interim = Vec::new();
        let mut answer = loop {
            let answer = self.head(sent)?;
            if (100..200).contains(&answer.status) && answer.status != 101 {
                interim.push(answer.status);
                continue;
            }
            break answer;
        };
        answer.interim = interim;
        answer.framing = framing(&answer, is_head);
        let has_body = match answer.framing {
            Framing::None => false,
            Framing::Length => length(&answer) != Some(0),
            Framing::Chunked | Framing::Close => true,
        };
        if has_body && self.unread.is_empty() {
            self.fill(LONGEST_SILENCE)?;
        }
        answer.first_after = self.read_at.saturating_duration_since(sent);
        self.body(&mut answer)?;
        answer.last_after = self.read_at.saturating_duration_since(sent);
        Ok(answer)
    }

    fn head(&mut self, sent: Instant) -> io::Result<Answer> {
        loop {
            let mut fields = vec![httparse::EMPTY_HEADER; MOST_FIELDS];
            let mut head = httparse::Response::new(&mut fields);
            let parsed = head
                .parse(&self.unread)
                .map_err(|error| io::Error::other(format!("the answer is no HTTP/1: {error}")))?;
            if let httparse::Status::Complete(length) = parsed {
                let answer = Answer {
                    interim: Vec::new(),
                    version: head.version.unwrap_or_default(),
                    status: head.code.unwrap_or_default(),
                    reason: head.reason.unwrap_or_default().to_owned(),
                    fields: head
                        .headers
                        .iter()
                        .map(|field| (field.name.to_owned(), field.value.to_vec()))
                        .collect(),
                    framing: Framing::None,
                    body: Vec::new(),
                    trailers: Vec::new(),
                    is_cut: false,
                    head_after: self.read_at.saturating_duration_since(sent),
                    first_after: Duration::ZERO,
                    last_after: Duration::ZERO,
                };
                self.unread.drain(..length);
                return Ok(answer);
            }
            if self.unread.len() > LARGEST_HEAD {
                return Err(io::Error::other("the answer's head does not end"));
            }
            if !self.fill(LONGEST_SILENCE)? {
                return Err(io::Error::other("the connection ended without an answer"));
            }
        }
    }

    fn body(&mut self, answer: &mut Answer) -> io::Result<()> {
        match answer.framing {
            Framing::None => {}
            Framing::Length => {
                let length = length(answer).unwrap_or_default();
                answer.is_cut = !self.take(length, &mut answer.body)?;
            }
            Framing::Close => {
                while self.fill(LONGEST_SILENCE)? {}
                answer.body = std::mem::take(&mut self.unread);
            }
            Framing::Chunked => answer.is_cut = !self.chunks(answer)?,
        }
        Ok(())
    }

    /// Reads chunks to the last one; `false` when the connection ends before.
    fn chunks(&mut self, answer: &mut Answer) -> io::Result<bool> {
        loop {
            let Some(line) = self.line()? else {
                return Ok(false);
            };
            let size = line.split(|&byte| byte == b';').next().unwrap_or_default();
            let size = std::str::from_utf8(size)
                .ok()
                .and_then(|size| usize::from_str_radix(size.trim(), 16).ok())
                .ok_or_else(|| io::Error::other("a chunk has no size"))?;
            if size == 0 {
                break;
            }
            if !self.take(size, &mut answer.body)? || self.line()?.is_none() {
                return Ok(false);
            }
        }
        loop {
            match self.line()? {
                None => return Ok(false),
                Some(line) if line.is_empty() => return Ok(true),
                Some(line) => {
                    answer.trailers.extend_from_slice(&line);
                    answer.trailers.push(b'\n');
                }
            }
        }
    }

    /// Moves so many bytes into `body`; `false` when the connection ends before, after what did come.
    fn take(&mut self, length: usize, body: &mut Vec<u8>) -> io::Result<bool> {
        while self.unread.len() < length {
            if !self.fill(LONGEST_SILENCE)? {
                body.append(&mut self.unread);
                return Ok(false);
            }
        }
        body.extend(self.unread.drain(..length));
        Ok(true)
    }

    fn line(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(at) = memchr::memmem::find(&self.unread, b"\r\n") {
                let line = self.unread[..at].to_vec();
                self.unread.drain(..at + 2);
                return Ok(Some(line));
            }
            if !self.fill(LONGEST_SILENCE)? {
                return Ok(None);
            }
        }
    }

    /// What comes behind the last answer within `patience`: the end of the connection, or bytes that nobody asked for.
    pub(super) fn rest(&mut self, patience: Duration) -> io::Result<(bool, usize)> {
        let is_closed = loop {
            match self.fill(patience) {
                Ok(true) => {}
                Ok(false) => break true,
                Err(error) if is_timeout(&error) => break false,
                Err(error) => return Err(error),
            }
        };
        Ok((is_closed, self.unread.len()))
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

fn length(answer: &Answer) -> Option<usize> {
    let value = answer.values("content-length").next()?;
    std::str::from_utf8(value).ok()?.trim().parse().ok()
}

/// RFC 9112 section 6.3.
fn framing(answer: &Answer, is_head: bool) -> Framing {
    if is_head || matches!(answer.status, 101 | 204 | 304) {
        return Framing::None;
    }
    let chunked = answer
        .values("transfer-encoding")
        .any(|value| value.to_ascii_lowercase().ends_with(b"chunked"));
    match (chunked, length(answer)) {
        (true, _) => Framing::Chunked,
        (false, Some(_)) => Framing::Length,
        (false, None) => Framing::Close,
    }
}
