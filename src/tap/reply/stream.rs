//! Observes a stream of server-sent events, event by event.

use std::time::Instant;

use serde_json::Value;

use super::Reply;
use super::facts::{self, Finishes};
use crate::observation::Reason;
use crate::tap::json::{Reducer, Unreadable};
use crate::tap::needle::must_parse;
use crate::tap::sse::{Block, Splitter};

/// State between two reads of a stream.
#[derive(Debug, Default)]
pub struct StreamObserver {
    splitter: Splitter,
    events: EventReader,
    last_read: Option<Instant>,
}

#[derive(Debug, Default)]
struct EventReader {
    reply: Reply,
    finishes: Finishes,
    object_seen: bool,
}

impl StreamObserver {
    pub(super) fn see(&mut self, bytes: &[u8], at: Instant) {
        let Self {
            splitter, events, ..
        } = self;
        splitter.feed(bytes, |block| events.read(&block, at, false));
        self.last_read = Some(at);
    }

    pub(super) fn finish(mut self) -> Reply {
        if let Some(at) = self.last_read {
            let Self {
                splitter, events, ..
            } = &mut self;
            splitter.finish(|block| events.read(&block, at, true));
        }
        let mut reply = self.events.reply;
        reply.finish_reasons = self.events.finishes.into_reasons();
        reply
    }
}

impl EventReader {
    /// `may_be_cut`: the event's blank line never came, so that only a parser can tell whether it is whole.
    fn read(&mut self, block: &Block<'_>, at: Instant, may_be_cut: bool) {
        let Some(bytes) = block.bytes else {
            self.reply.events += 1;
            self.reply.fault = Some(Reason::EventTooLarge);
            return;
        };
        // Dynamo's error frames say so in the event's name and carry no data. Most blocks need no look at their name.
        if !bytes.starts_with(b"data") && block.event_name() == Some(b"error") {
            self.reply.error_event = true;
        }
        let Some(data) = block.data() else {
            return;
        };
        self.reply.events += 1;
        if data.trim_ascii() == b"[DONE]" {
            self.reply.done_seen = true;
        } else if self.reply.first_content.is_some() && !may_be_cut && !must_parse(&data) {
            self.reply.note_content(at);
        } else {
            self.parse(&data, at);
        }
    }

    fn parse(&mut self, data: &[u8], at: Instant) {
        let mut reducer = Reducer::new();
        reducer.feed(data);
        let object = match reducer.finish() {
            Ok(Value::Object(object)) => object,
            Err(Unreadable::TooLarge) => {
                self.reply.fault = Some(Reason::EventTooLarge);
                return;
            }
            _ => {
                self.reply.unreadable_events += 1;
                return;
            }
        };
        let reply = &mut self.reply;
        if !std::mem::replace(&mut self.object_seen, true) {
            reply.first_event_has_usage = facts::has_usage(&object);
        }
        reply.usage_event_seen |= facts::is_usage_event(&object);
        reply.error_event |= facts::is_error(&object);
        if facts::take(&object, reply, &mut self.finishes) {
            reply.note_content(at);
        }
    }
}
