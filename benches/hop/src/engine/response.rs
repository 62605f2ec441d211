//! A response on its way out of the engine double, one write's worth at a time.

use std::time::Duration;

use crate::clock;
use crate::engine::counts::Counts;
use crate::shape::{self, Text};

const STREAM_HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\ndate: Tue, 01 Dec 2026 01:10:09 GMT\r\nserver: uvicorn\r\n\
content-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n";

/// A stream of which something is still to be sent.
#[derive(Debug)]
pub struct Stream {
    id: u64,
    text: Text,
    /// A token event with its chunk framing; the event begins at `event_at`.
    framed: Vec<u8>,
    event_at: usize,
    next: u32,
    events: u32,
    batch: u32,
    with_usage: bool,
    /// Time between writes.
    pub interval: Duration,
}

impl Stream {
    /// A stream of `events` token events in writes of `batch`.
    pub fn new(id: u64, events: u32, batch: u32, interval: Duration, with_usage: bool) -> Self {
        let event = shape::content_event(id);
        let mut framed = Vec::new();
        chunk(&mut framed, &event);
        let event_at = framed.len() - event.len() - 2;
        Self {
            id,
            text: Text::new(),
            framed,
            event_at,
            next: 0,
            events,
            batch,
            with_usage,
            interval,
        }
    }

    /// Head and first event.
    pub fn begin(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(STREAM_HEAD);
        chunk(out, &shape::role_event(self.id));
    }

    /// Appends the next write; `false` once that was the last one.
    pub fn next_write(&mut self, out: &mut Vec<u8>, counts: &mut Counts) -> bool {
        let now = clock::now();
        for _ in 0..self.batch {
            let number = self.next;
            self.next += 1;
            counts.events += 1;
            if self.next == self.events {
                let mut event = shape::finish_event(self.id, self.with_usage);
                self.text.fill(&mut event, number, now);
                chunk(out, &event);
                self.end(out);
                counts.stream_ended(self.events.into(), self.with_usage);
                return false;
            }
            let framed = &mut self.framed;
            self.text.fill(&mut framed[self.event_at..], number, now);
            out.extend_from_slice(framed);
        }
        true
    }

    fn end(&self, out: &mut Vec<u8>) {
        if self.with_usage {
            chunk(out, &shape::usage_event(self.id, self.events.into()));
        }
        chunk(out, shape::DONE);
        out.extend_from_slice(b"0\r\n\r\n");
    }
}

/// Appends one chunk.
fn chunk(out: &mut Vec<u8>, data: &[u8]) {
    out.extend_from_slice(format!("{:x}\r\n", data.len()).as_bytes());
    out.extend_from_slice(data);
    out.extend_from_slice(b"\r\n");
}

/// Appends a response with a body of known length.
pub fn whole(out: &mut Vec<u8>, status: &str, kind: &str, body: &[u8]) {
    let head = format!(
        "HTTP/1.1 {status}\r\ndate: Tue, 01 Dec 2026 01:10:09 GMT\r\nserver: uvicorn\r\n\
content-length: {}\r\ncontent-type: {kind}\r\n\r\n",
        body.len()
    );
    out.extend_from_slice(head.as_bytes());
    out.extend_from_slice(body);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The events of a body in chunks.
    fn events(mut body: &[u8]) -> Vec<Vec<u8>> {
        let mut events = Vec::new();
        loop {
            let line = memchr::memmem::find(body, b"\r\n").unwrap();
            let size = usize::from_str_radix(std::str::from_utf8(&body[..line]).unwrap(), 16);
            let size = size.unwrap();
            let data = &body[line + 2..][..size];
            assert_eq!(&body[line + 2 + size..][..2], b"\r\n");
            body = &body[line + 4 + size..];
            if size == 0 {
                assert_eq!(body, b"");
                return events;
            }
            events.push(data.to_vec());
        }
    }

    #[test]
    fn a_stream_is_one_chunk_per_event_in_writes_of_the_size_asked_for() {
        let (mut out, mut counts, mut writes) = (Vec::new(), Counts::default(), 1);
        let mut stream = Stream::new(5, 70, 32, Duration::ZERO, true);
        stream.begin(&mut out);
        while stream.next_write(&mut out, &mut counts) {
            writes += 1;
        }
        assert_eq!(writes, 3);
        let body = out.strip_prefix(STREAM_HEAD).unwrap();
        let events = events(body);
        assert!(shape::is_role_event(&events[0]));
        let text = Text::new();
        let numbers: Vec<u32> = events
            .iter()
            .filter_map(|event| Some(text.read(event)?.0))
            .collect();
        assert_eq!(numbers, (0..70).collect::<Vec<_>>());
        assert_eq!(events[71], shape::usage_event(5, 70));
        assert_eq!(events[72], shape::DONE);
        assert_eq!(counts.events, 70);
        assert_eq!((counts.streams, counts.records, counts.steps), (1, 1, 70));
    }
}
