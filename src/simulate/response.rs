//! The sending side of a simulated engine's connection: heads and chunks in the bytes that uvicorn writes.

use std::io;
use std::time::SystemTime;

use tokio::io::AsyncWriteExt;
use tokio::net::tcp::OwnedWriteHalf;

use super::http::Request;

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

/// The sending side of a connection.
pub(super) struct Responder {
    writer: OwnedWriteHalf,
    close: bool,
    head_only: bool,
}

impl Responder {
    pub(super) fn new(writer: OwnedWriteHalf) -> Self {
        Self {
            writer,
            close: false,
            head_only: false,
        }
    }

    /// Gets ready to answer a request.
    pub(super) fn begin(&mut self, request: &Request) {
        self.close = request.close;
        self.head_only = request.method == "HEAD";
    }

    /// Tells a client that waits for leave that it may send its body.
    pub(super) async fn go_on(&mut self) -> io::Result<()> {
        self.writer
            .write_all(b"HTTP/1.1 100 Continue\r\n\r\n")
            .await
    }

    /// Answers bytes that are no request, as uvicorn does, and ends the connection.
    pub(super) async fn refuse(&mut self) -> io::Result<()> {
        const BODY: &str = "Invalid HTTP request received.";
        let head = head_start("400 Bad Request");
        let head = format!(
            "{head}content-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{BODY}",
            BODY.len()
        );
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
        let mut head = head_start(status);
        for (name, value) in &extra.route {
            line(&mut head, name, value);
        }
        line(&mut head, "content-length", &body.len().to_string());
        if let Some(content_type) = content_type {
            line(&mut head, "content-type", content_type);
        }
        self.finish_head(&mut head, extra);
        head.push_str("\r\n");
        if !self.head_only {
            head.push_str(body);
        }
        self.writer.write_all(head.as_bytes()).await
    }

    /// Sends the head of a stream of server-sent events.
    pub(super) async fn start_events(&mut self, extra: &Extra) -> io::Result<()> {
        let mut head = head_start("200 OK");
        for (name, value) in &extra.route {
            line(&mut head, name, value);
        }
        line(
            &mut head,
            "content-type",
            "text/event-stream; charset=utf-8",
        );
        self.finish_head(&mut head, extra);
        line(&mut head, "transfer-encoding", "chunked");
        head.push_str("\r\n");
        self.writer.write_all(head.as_bytes()).await
    }

    /// Sends one event, in one chunk by one write: `data: ` and a blank line around `data`.
    pub(super) async fn event(&mut self, data: &str) -> io::Result<()> {
        self.chunk(&format!("data: {data}\n\n")).await
    }

    /// Sends the comment that keeps an idle stream open.
    pub(super) async fn comment(&mut self) -> io::Result<()> {
        self.chunk(": keep-alive\n\n").await
    }

    /// Ends a stream: the sentinel, then the end of the chunks.
    pub(super) async fn end_events(&mut self) -> io::Result<()> {
        self.event("[DONE]").await?;
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

    fn finish_head(&self, head: &mut String, extra: &Extra) {
        if extra.vary {
            line(head, "vary", "Origin");
        }
        if let Some(id) = &extra.request_id {
            line(head, "x-request-id", id);
        }
        if self.close {
            line(head, "connection", "close");
        }
    }
}

fn head_start(status: &str) -> String {
    let date = httpdate::fmt_http_date(SystemTime::now());
    format!("HTTP/1.1 {status}\r\ndate: {date}\r\nserver: uvicorn\r\n")
}

fn line(head: &mut String, name: &str, value: &str) {
    head.push_str(name);
    head.push_str(": ");
    head.push_str(value);
    head.push_str("\r\n");
}
