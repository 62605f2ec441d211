//! The simulated engine's own HTTP/1.1 server: reads requests off a socket as uvicorn with httptools does.
//!
//! It is written by hand because a general server would not let us write heads and chunks byte by byte as a real engine
//! sends them.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;
use tokio_util::sync::CancellationToken;

use super::response::Responder;
use super::state::State;

/// Longest request head; a real vLLM takes heads of 5 MB.
const MAX_HEAD: usize = 5 << 20;
/// Longest request body.
const MAX_BODY: usize = 256 << 20;
/// Most header lines of a request.
const MAX_HEADERS: usize = 2_048;
/// Bytes of a pipelined request that are taken in while a response is on its way.
const READ_AHEAD: usize = 1 << 20;

/// A request, read whole.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) method: String,
    /// The path without the query.
    pub(super) path: String,
    pub(super) headers: Vec<(String, Vec<u8>)>,
    pub(super) body: Bytes,
    /// Whether the connection ends with the response.
    pub(super) close: bool,
}

impl Request {
    /// The first value of a header, `name` in lower case; `None` also when it is not UTF-8.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let found = self
            .headers
            .iter()
            .find(|(n, _)| n.eq_ignore_ascii_case(name));
        found.and_then(|(_, value)| std::str::from_utf8(value).ok())
    }
}

/// Why no request came of a connection's bytes.
enum NoRequest {
    /// The client closed, or was idle for too long: nothing to say.
    Over,
    /// The bytes are no HTTP/1 request.
    Invalid,
    Io(io::Error),
}

impl From<io::Error> for NoRequest {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// The receiving side of a connection.
struct Inbox {
    reader: OwnedReadHalf,
    buffer: BytesMut,
}

/// Answers requests on one connection, one after the other, until either side is done with it.
///
/// `stop` ends it between two requests. A client that closes, even only its sending half, ends the request that is being
/// answered: a real vLLM aborts then too.
pub(super) async fn serve(
    stream: TcpStream,
    state: &Arc<State>,
    stop: CancellationToken,
) -> io::Result<()> {
    let keep_alive = state.settings.keep_alive;
    stream.set_nodelay(true)?;
    let (reader, writer) = stream.into_split();
    let mut inbox = Inbox {
        reader,
        buffer: BytesMut::new(),
    };
    let mut responder = Responder::new(writer, &state.settings);
    let mut first = true;
    loop {
        let idle = (!first).then_some(keep_alive);
        first = false;
        let request = tokio::select! {
            request = inbox.request(&mut responder, idle) => request,
            () = stop.cancelled(), if inbox.buffer.is_empty() => return Ok(()),
        };
        let request = match request {
            Ok(request) => request,
            Err(NoRequest::Over) => return Ok(()),
            Err(NoRequest::Io(error)) => return Err(error),
            Err(NoRequest::Invalid) => return responder.refuse().await,
        };
        let close = request.close;
        responder.begin(&request);
        tokio::select! {
            result = super::answer(state, request, &mut responder) => result?,
            () = inbox.client_gone() => return Ok(()),
        }
        if close {
            return responder.shutdown().await;
        }
    }
}

impl Inbox {
    /// Reads more bytes; `false` when there will be none.
    async fn more(&mut self) -> io::Result<bool> {
        Ok(self.reader.read_buf(&mut self.buffer).await? > 0)
    }

    /// Waits until the client has closed, taking in what it sends meanwhile.
    async fn client_gone(&mut self) {
        while self.buffer.len() < READ_AHEAD {
            if !matches!(self.more().await, Ok(true)) {
                return;
            }
        }
        std::future::pending::<()>().await;
    }

    async fn request(
        &mut self,
        responder: &mut Responder,
        idle: Option<Duration>,
    ) -> Result<Request, NoRequest> {
        if let Some(idle) = idle.filter(|_| self.buffer.is_empty()) {
            match tokio::time::timeout(idle, self.more()).await {
                Ok(Ok(true)) => {}
                Ok(Err(error)) => return Err(error.into()),
                Ok(Ok(false)) | Err(_) => return Err(NoRequest::Over),
            }
        }
        let mut request = self.head().await?;
        let chunked = request
            .header("transfer-encoding")
            .is_some_and(|coding| coding.to_ascii_lowercase().contains("chunked"));
        let length = match request.header("content-length") {
            Some(text) if !chunked => text
                .trim()
                .parse::<usize>()
                .map_err(|_| NoRequest::Invalid)?,
            _ => 0,
        };
        let waits = request
            .header("expect")
            .is_some_and(|value| value.eq_ignore_ascii_case("100-continue"));
        if waits && self.buffer.is_empty() && (chunked || length > 0) {
            responder.go_on().await?;
        }
        request.body = if chunked {
            self.chunked_body().await?
        } else {
            self.body(length).await?
        };
        Ok(request)
    }

    async fn head(&mut self) -> Result<Request, NoRequest> {
        loop {
            if let Some((length, request)) = parse_head(&self.buffer)? {
                self.buffer.advance(length);
                return Ok(request);
            }
            if self.buffer.len() > MAX_HEAD {
                return Err(NoRequest::Invalid);
            }
            if !self.more().await? {
                return Err(NoRequest::Over);
            }
        }
    }

    async fn body(&mut self, length: usize) -> Result<Bytes, NoRequest> {
        if length > MAX_BODY {
            return Err(NoRequest::Invalid);
        }
        while self.buffer.len() < length {
            if !self.more().await? {
                return Err(NoRequest::Over);
            }
        }
        Ok(self.buffer.split_to(length).freeze())
    }

    async fn chunked_body(&mut self) -> Result<Bytes, NoRequest> {
        let mut body = BytesMut::new();
        loop {
            let line = self.line().await?;
            let size = line.split(|byte| *byte == b';').next().unwrap_or_default();
            let size = std::str::from_utf8(size)
                .ok()
                .and_then(|text| usize::from_str_radix(text.trim(), 16).ok());
            let size = size
                .filter(|size| size.saturating_add(body.len()) <= MAX_BODY)
                .ok_or(NoRequest::Invalid)?;
            if size == 0 {
                while !self.line().await?.is_empty() {}
                return Ok(body.freeze());
            }
            body.extend_from_slice(&self.body(size).await?);
            if !self.line().await?.is_empty() {
                return Err(NoRequest::Invalid);
            }
        }
    }

    /// A line of the chunk framing, without its end.
    async fn line(&mut self) -> Result<Bytes, NoRequest> {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|pair| pair == b"\r\n") {
                let line = self.buffer.split_to(end).freeze();
                self.buffer.advance(2);
                return Ok(line);
            }
            if self.buffer.len() > MAX_HEAD {
                return Err(NoRequest::Invalid);
            }
            if !self.more().await? {
                return Err(NoRequest::Over);
            }
        }
    }
}

/// The length of the head at the start of `bytes` and what it says; `None` while it is unfinished.
fn parse_head(bytes: &[u8]) -> Result<Option<(usize, Request)>, NoRequest> {
    let mut headers = vec![httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut head = httparse::Request::new(&mut headers);
    let length = match head.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(_) => return Err(NoRequest::Invalid),
    };
    let target = head.path.unwrap_or_default();
    let mut request = Request {
        method: head.method.unwrap_or_default().to_owned(),
        path: target.split('?').next().unwrap_or_default().to_owned(),
        headers: head
            .headers
            .iter()
            .map(|header| (header.name.to_owned(), header.value.to_vec()))
            .collect(),
        body: Bytes::new(),
        close: false,
    };
    let connection = request
        .header("connection")
        .unwrap_or_default()
        .to_ascii_lowercase();
    let http10 = head.version == Some(0);
    request.close = connection.contains("close") || (http10 && !connection.contains("keep-alive"));
    Ok(Some((length, request)))
}
