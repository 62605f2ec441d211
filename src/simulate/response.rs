//! The sending side of a simulated engine's connection: heads and chunks in the bytes that its HTTP server writes.

use std::io;
use std::time::SystemTime;

use tokio::io::AsyncWriteExt;
use tokio::net::tcp::OwnedWriteHalf;

use super::http::Request;
use super::settings::{EngineKind, Settings};

/// Which header lines a response has beyond those of its kind.
#[derive(Clone, Debug, Default)]
pub(super) struct Extra {
    /// Lines of the route, such as `allow`; they stand before those of the body.
    pub(super) route: Vec<(&'static str, String)>,
    /// Whether the response passed the layer that writes `vary: Origin`.
    pub(super) vary: bool,
    /// The value of `x-request-id`, where the engine sends one.
    pub(super) request_id: Option<String>,
}

/// The HTTP server that an engine is built on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Server {
    /// Of the engines in Python.
    Uvicorn,
    /// cpp-httplib, as llama.cpp sets it up.
    Httplib,
}

/// How long a body is.
enum Framing {
    Length(usize),
    Chunked,
}

/// The sending side of a connection.
pub(super) struct Responder {
    writer: OwnedWriteHalf,
    server: Server,
    close: bool,
    head_only: bool,
    /// Events of a stream that may still be sent before the connection is cut on purpose.
    left: Option<usize>,
    cut_after_events: Option<usize>,
}

impl Responder {
    pub(super) fn new(writer: OwnedWriteHalf, settings: &Settings) -> Self {
        Self {
            writer,
            server: match settings.engine {
                EngineKind::LlamaCpp => Server::Httplib,
                _ => Server::Uvicorn,
            },
            close: false,
            head_only: false,
            left: None,
            cut_after_events: settings.faults.cut_after_events,
        }
    }

    /// Gets ready to answer a request.
    pub(super) fn begin(&mut self, request: &Request) {
        self.close = request.close;
        self.head_only = request.method == "HEAD";
        self.left = self.cut_after_events;
    }

    /// Tells a client that waits for leave that it may send its body.
    pub(super) async fn go_on(&mut self) -> io::Result<()> {
        self.writer
            .write_all(b"HTTP/1.1 100 Continue\r\n\r\n")
            .await
    }

    /// Answers bytes that are no request, and ends the connection.
    pub(super) async fn refuse(&mut self) -> io::Result<()> {
        const BODY: &str = "Invalid HTTP request received.";
        let mut head = self.head_start("400 Bad Request");
        match self.server {
            Server::Uvicorn => {
                line(&mut head, "content-type", "text/plain; charset=utf-8");
                line(&mut head, "content-length", &BODY.len().to_string());
                line(&mut head, "connection", "close");
                head.push_str("\r\n");
                head.push_str(BODY);
            }
            Server::Httplib => {
                line(&mut head, "Connection", "close");
                line(&mut head, "Content-Length", "0");
                head.push_str("\r\n");
            }
        }
        self.writer.write_all(head.as_bytes()).await?;
        self.shutdown().await
    }

    /// Sends a whole response; without a content type the body is empty.
    pub(super) async fn reply(
        &mut self,
        status: &str,
        content_type: Option<&str>,
        extra: &Extra,
        body: &str,
    ) -> io::Result<()> {
        let mut head = self.head(status, content_type, extra, &Framing::Length(body.len()));
        if !self.head_only {
            head.push_str(body);
        }
        self.writer.write_all(head.as_bytes()).await
    }

    /// Sends the head of a stream of server-sent events.
    pub(super) async fn start_events(&mut self, extra: &Extra) -> io::Result<()> {
        let content_type = match self.server {
            Server::Uvicorn => "text/event-stream; charset=utf-8",
            Server::Httplib => "text/event-stream",
        };
        let head = self.head("200 OK", Some(content_type), extra, &Framing::Chunked);
        self.writer.write_all(head.as_bytes()).await
    }

    /// Sends one event, in one chunk by one write: `data: ` and a blank line around `data`.
    pub(super) async fn event(&mut self, data: &str) -> io::Result<()> {
        self.events(&[data]).await
    }

    /// Sends several events in one chunk by one write.
    pub(super) async fn events(&mut self, list: &[impl AsRef<str>]) -> io::Result<()> {
        let most = self.left.map_or(list.len(), |left| left.min(list.len()));
        let mut text = String::new();
        for data in list.iter().take(most) {
            text.push_str("data: ");
            text.push_str(data.as_ref());
            text.push_str("\n\n");
        }
        if !text.is_empty() {
            self.chunk(&text).await?;
        }
        if let Some(left) = &mut self.left {
            *left -= most;
            if most < list.len() {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
        }
        Ok(())
    }

    /// Sends the comment that keeps an idle stream open.
    pub(super) async fn comment(&mut self, text: &str) -> io::Result<()> {
        self.chunk(&format!("{text}\n\n")).await
    }

    /// Ends a stream: the sentinel, then the end of the chunks.
    pub(super) async fn end_events(&mut self) -> io::Result<()> {
        self.event("[DONE]").await?;
        self.end_chunks().await
    }

    /// Ends a stream without the sentinel.
    pub(super) async fn end_chunks(&mut self) -> io::Result<()> {
        self.writer.write_all(b"0\r\n\r\n").await
    }

    /// Tells the client that no more is to come.
    pub(super) async fn shutdown(&mut self) -> io::Result<()> {
        self.writer.shutdown().await
    }

    async fn chunk(&mut self, bytes: &str) -> io::Result<()> {
        self.writer
            .write_all(format!("{:x}\r\n{bytes}\r\n", bytes.len()).as_bytes())
            .await
    }

    fn head_start(&self, status: &str) -> String {
        match self.server {
            Server::Uvicorn => {
                let date = httpdate::fmt_http_date(SystemTime::now());
                format!("HTTP/1.1 {status}\r\ndate: {date}\r\nserver: uvicorn\r\n")
            }
            Server::Httplib => format!("HTTP/1.1 {status}\r\nServer: llama.cpp\r\n"),
        }
    }

    fn head(
        &self,
        status: &str,
        content_type: Option<&str>,
        extra: &Extra,
        framing: &Framing,
    ) -> String {
        let mut head = self.head_start(status);
        match self.server {
            Server::Uvicorn => self.uvicorn_lines(&mut head, content_type, extra, framing),
            Server::Httplib => self.httplib_lines(&mut head, content_type, extra, framing),
        }
        head.push_str("\r\n");
        head
    }

    fn uvicorn_lines(
        &self,
        head: &mut String,
        content_type: Option<&str>,
        extra: &Extra,
        framing: &Framing,
    ) {
        for (name, value) in &extra.route {
            line(head, name, value);
        }
        if let Framing::Length(length) = framing {
            line(head, "content-length", &length.to_string());
        }
        if let Some(content_type) = content_type {
            line(head, "content-type", content_type);
        }
        if extra.vary {
            line(head, "vary", "Origin");
        }
        if let Some(id) = &extra.request_id {
            line(head, "x-request-id", id);
        }
        if self.close {
            line(head, "connection", "close");
        }
        if let Framing::Chunked = framing {
            line(head, "transfer-encoding", "chunked");
        }
    }

    fn httplib_lines(
        &self,
        head: &mut String,
        content_type: Option<&str>,
        extra: &Extra,
        framing: &Framing,
    ) {
        // The origin that the request does not have, echoed.
        line(head, "Access-Control-Allow-Origin", "");
        for (name, value) in &extra.route {
            line(head, name, value);
        }
        if let Some(content_type) = content_type {
            line(head, "Content-Type", content_type);
        }
        let connection = |head: &mut String| {
            if self.close {
                line(head, "Connection", "close");
            } else {
                line(head, "Keep-Alive", "timeout=5, max=100");
            }
        };
        match framing {
            Framing::Length(0) => {
                connection(head);
                line(head, "Content-Length", "0");
            }
            Framing::Length(length) => {
                line(head, "Content-Length", &length.to_string());
                connection(head);
            }
            Framing::Chunked => {
                line(head, "Transfer-Encoding", "chunked");
                connection(head);
            }
        }
        if self.head_only {
            line(head, "Accept-Ranges", "bytes");
        }
    }
}

fn line(head: &mut String, name: &str, value: &str) {
    head.push_str(name);
    head.push_str(": ");
    head.push_str(value);
    head.push_str("\r\n");
}
