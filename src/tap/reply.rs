//! Observes one response as its bytes pass and gives what it said: names, usage, content times, payloads.
//!
//! The observer never fails: what it can't read it counts, and it holds little, whatever comes. Until the first content
//! every event is parsed; afterwards only those that the byte search of [`needle`](super::needle) picks.

mod facts;
#[cfg(feature = "fuzzing")]
pub(super) mod fuzzing;
mod json;
mod large;
mod opening;
mod sequences;
mod stream;
mod usage;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::decoding::Decoder;
use super::filter::Content;
use crate::engines::{Options, Payloads};
use crate::observation::{Reason, Usage};
use crate::record::EngineName;

use json::JsonObserver;
use opening::Framing;
use sequences::Sequences;
use stream::StreamObserver;

/// The observer of one response body.
#[derive(Debug)]
pub struct ReplyObserver {
    options: Options,
    decoder: Option<Decoder>,
    body: BodyObserver,
    fault: Option<Reason>,
}

/// The observer of a body without its content coding.
#[derive(Debug)]
struct BodyObserver {
    /// What the content type says.
    declared: Framing,
    /// Nothing but white space was seen: the next byte may show that the content type is wrong.
    at_start: bool,
    framed: Framed,
}

#[derive(Debug)]
enum Framed {
    Stream(Box<StreamObserver>),
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
    /// Whether a usage object came at all; without one, `usage` is what the sequences tell of themselves.
    pub usage_seen: bool,
    /// Stream: whether an event came that has a usage object and no choices, as `include_usage` causes.
    pub usage_event_seen: bool,
    /// Stream: whether the first event that is a JSON object already has a usage object.
    pub first_event_has_usage: bool,
    /// Finish reasons in the order of the choices, in the route's own naming.
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
    /// What the response's own members tell of its engine; the last one that told.
    pub engine_hint: Option<EngineName>,
    /// Why not all of the response could be looked at.
    pub fault: Option<Reason>,
    /// What came of acceptance payloads; read them with [`engines::read`](crate::engines::read).
    pub payloads: Payloads,
}

impl ReplyObserver {
    /// Observes server-sent events, unless the body's first byte shows that it is JSON.
    pub fn new_stream() -> Self {
        Self::new(Framing::Stream)
    }

    /// Observes a JSON body, unless its first byte shows that it is server-sent events.
    pub fn new_json() -> Self {
        Self::new(Framing::Json)
    }

    fn new(framing: Framing) -> Self {
        Self {
            options: Options::default(),
            decoder: None,
            body: BodyObserver {
                declared: framing,
                at_start: true,
                framed: Framed::new(framing, Options::default()),
            },
            fault: None,
        }
    }

    /// The same, reading what `options` say. To be set before the first bytes.
    pub fn reading(mut self, options: Options) -> Self {
        if options != self.options {
            self.options = options;
            self.body.framed = Framed::new(self.body.declared, options);
        }
        self
    }

    /// The same, for a body that has a content coding.
    pub fn decoding(self, decoder: Decoder) -> Self {
        Self {
            decoder: Some(decoder),
            ..self
        }
    }

    /// Takes note of content that a filter has found in bytes which hold nothing else. False: the bytes must be seen.
    pub(super) fn see_content(&mut self, content: Content, at: Instant) -> bool {
        match &mut self.body.framed {
            Framed::Stream(observer) if self.decoder.is_none() => observer.see_content(content, at),
            Framed::Stream(_) | Framed::Json(_) => false,
        }
    }

    /// Looks at the next bytes of the body, cut anywhere; `at` is when they were read.
    pub fn see(&mut self, bytes: &[u8], at: Instant) {
        let Self {
            options,
            decoder,
            body,
            fault,
        } = self;
        match decoder {
            None => body.see(bytes, at, *options),
            Some(_) if fault.is_some() => {}
            Some(decoder) => {
                let decoded = decoder.decode(bytes, &mut |bytes| body.see(bytes, at, *options));
                if decoded.is_err() {
                    *fault = Some(Reason::Encoding);
                }
            }
        }
    }

    /// The body is over, whole or cut: what it said.
    pub fn finish(self) -> Reply {
        let mut reply = self.body.finish(self.options);
        // A body whose coding broke is cut, so that what is wrong with its text follows from that.
        reply.fault = self.fault.or(reply.fault);
        reply
    }
}

impl BodyObserver {
    fn see(&mut self, mut bytes: &[u8], at: Instant, options: Options) {
        if self.at_start
            && let Some(blank) = bytes.iter().position(|byte| !opening::is_blank(*byte))
        {
            self.at_start = false;
            if let Some(framing) = opening::framing(bytes[blank])
                && framing != self.framed.framing()
            {
                self.framed = Framed::new(framing, options);
                bytes = &bytes[blank..];
            }
        }
        match &mut self.framed {
            Framed::Stream(observer) => observer.see(bytes, at),
            Framed::Json(observer) => observer.see(bytes, at),
        }
    }

    fn finish(self, options: Options) -> Reply {
        match self.framed {
            Framed::Json(observer) => observer.finish(options),
            Framed::Stream(observer) => {
                let mut reply = observer.finish();
                // It began like a stream and was none.
                if self.declared == Framing::Json && reply.events == 0 {
                    reply.fault = reply.fault.or(Some(Reason::NotJson));
                }
                reply
            }
        }
    }
}

impl Framed {
    fn new(framing: Framing, options: Options) -> Self {
        match framing {
            Framing::Stream => Self::Stream(Box::new(StreamObserver::new(options))),
            Framing::Json => Self::Json(Box::default()),
        }
    }

    fn framing(&self) -> Framing {
        match self {
            Self::Stream(_) => Framing::Stream,
            Self::Json(_) => Framing::Json,
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

    /// Puts in order what is only known at the end.
    fn conclude(&mut self, sequences: Sequences) {
        if !self.usage_seen {
            self.usage = sequences.usage();
        }
        self.finish_reasons = sequences.into_finish_reasons();
    }

    fn note_content(&mut self, at: Instant) {
        self.content_chunks += 1;
        self.first_content.get_or_insert(at);
        self.last_content = Some(at);
    }
}

#[cfg(test)]
mod tests;
