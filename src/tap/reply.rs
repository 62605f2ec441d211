//! Observes one response as its bytes pass and gives what it said: names, usage, content times, payloads.
//!
//! The observer never fails: what it can't read it counts, and it holds little, whatever comes. Until the first content
//! every event is parsed; afterwards only those that the byte search of [`needle`](super::needle) picks.

mod facts;
mod json;
mod stream;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::engines::Payloads;
use crate::observation::{Reason, Usage};

use json::JsonObserver;
use stream::StreamObserver;

/// The observer of one response body.
#[derive(Debug)]
pub enum ReplyObserver {
    /// Of a stream of server-sent events.
    Stream(Box<StreamObserver>),
    /// Of a JSON body.
    Json(Box<JsonObserver>),
}

/// What a response said.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    /// The engine's id of the response: `id`, else `request_id`; the last one seen.
    pub response_id: Option<String>,
    /// The model's name, the last one seen.
    pub model: Option<String>,
    /// The engine's fingerprint, the last one that is not null.
    pub system_fingerprint: Option<String>,
    /// Token counts; usage is cumulative, the last value of each member holds.
    pub usage: Usage,
    /// Whether a usage object came at all.
    pub usage_seen: bool,
    /// Stream: whether an event came that has a usage object and no choices, as `include_usage` causes.
    pub usage_event_seen: bool,
    /// Stream: whether the first event that is a JSON object already has a usage object.
    pub first_event_has_usage: bool,
    /// Finish reasons in the order of the choices.
    pub finish_reasons: Vec<String>,
    /// Whether some choice names the stop string that ended it.
    pub stop_reason_is_string: bool,
    /// Stream: whether an event said that the engine failed.
    pub error_event: bool,
    /// Stream: whether `[DONE]` came.
    pub done_seen: bool,
    /// Stream: events with data, `[DONE]` included.
    pub events: u64,
    /// Stream: events that are neither a JSON object nor `[DONE]`.
    pub unreadable_events: u64,
    /// Events with text, reasoning or a tool call; 1 for a JSON body that has any.
    pub content_chunks: u64,
    /// When the first content came; a JSON body has its content when it is whole.
    pub first_content: Option<Instant>,
    /// When the last content came.
    pub last_content: Option<Instant>,
    /// The engine's own timing members of `metrics`, as sent.
    pub engine_metrics: BTreeMap<String, f64>,
    /// Why not all of the response could be looked at.
    pub fault: Option<Reason>,
    /// What came of acceptance payloads; read them with [`engines::read`](crate::engines::read).
    pub payloads: Payloads,
}

impl ReplyObserver {
    /// Observes server-sent events.
    pub fn new_stream() -> Self {
        Self::Stream(Box::default())
    }

    /// Observes a JSON body.
    pub fn new_json() -> Self {
        Self::Json(Box::default())
    }

    /// Looks at the next bytes of the body, cut anywhere; `at` is when they were read.
    pub fn see(&mut self, bytes: &[u8], at: Instant) {
        match self {
            Self::Stream(observer) => observer.see(bytes, at),
            Self::Json(observer) => observer.see(bytes, at),
        }
    }

    /// The body is over, whole or cut: what it said.
    pub fn finish(self) -> Reply {
        match self {
            Self::Stream(observer) => observer.finish(),
            Self::Json(observer) => observer.finish(),
        }
    }
}

impl Reply {
    /// Mean gap between content chunks; none below two chunks.
    pub fn mean_content_gap(&self) -> Option<Duration> {
        let gaps = self
            .content_chunks
            .checked_sub(1)
            .filter(|gaps| *gaps > 0)?;
        let stretch = self
            .last_content?
            .checked_duration_since(self.first_content?)?;
        Some(stretch.div_f64(gaps as f64))
    }

    fn note_content(&mut self, at: Instant) {
        self.content_chunks += 1;
        self.first_content.get_or_insert(at);
        self.last_content = Some(at);
    }
}

#[cfg(test)]
mod tests;
