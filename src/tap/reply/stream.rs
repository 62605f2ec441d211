//! Observes a stream of server-sent events, event by event.

use std::time::Instant;

use super::Reply;
use super::facts;
use super::large::LargeEvent;
use super::sequences::Sequences;
use crate::engines::{Json, Options, Payloads};
use crate::observation::Reason;
use crate::tap::json::{Reducer, Unreadable};
use crate::tap::needle::Needle;
use crate::tap::sse::{Block, LARGEST_EVENT, Splitter};

/// State between two reads of a stream.
#[derive(Debug, Default)]
pub(super) struct StreamObserver {
    splitter: Splitter,
    /// The unfinished event, if it is one that the splitter only skips.
    large: Option<LargeEvent>,
    events: EventReader,
    last_read: Option<Instant>,
}

#[derive(Debug, Default)]
struct EventReader {
    reply: Reply,
    sequences: Sequences,
    object_seen: bool,
    needle: Needle,
}

impl StreamObserver {
    pub(super) fn new(options: Options) -> Self {
        Self::holding(options, LARGEST_EVENT)
    }

    /// An observer that holds at most `cap` bytes of one event.
    pub(super) fn holding(options: Options, cap: usize) -> Self {
        let mut observer = Self {
            splitter: Splitter::new(cap),
            ..Self::default()
        };
        observer.events.reply.payloads = Payloads::new(options);
        observer
    }

    pub(super) fn see(&mut self, bytes: &[u8], at: Instant) {
        let Self {
            splitter,
            large,
            events,
            ..
        } = self;
        // The splitter drops what it holds when an event turns out too large, so that its beginning is taken before.
        let held = splitter.pending();
        let beginning = if held.len() + bytes.len() > splitter.cap() {
            held.to_vec()
        } else {
            Vec::new()
        };
        let mut start = 0;
        let continued = |large: Option<LargeEvent>, start: usize, end: usize| {
            let mut event = large.unwrap_or_else(|| {
                let mut event = LargeEvent::default();
                if start == 0 {
                    event.feed(&beginning);
                }
                event
            });
            event.feed(&bytes[start..end]);
            event
        };
        splitter.feed(bytes, |block| {
            if block.bytes.is_some() {
                events.read(&block, at, false);
            } else {
                events.read_large(continued(large.take(), start, block.end), at);
            }
            start = block.end;
        });
        if splitter.is_skipping() {
            *large = Some(continued(large.take(), start, bytes.len()));
        }
        self.last_read = Some(at);
    }

    pub(super) fn finish(mut self) -> Reply {
        if let Some(at) = self.last_read {
            let Self {
                splitter,
                large,
                events,
                ..
            } = &mut self;
            splitter.finish(|block| match large.take() {
                Some(event) => events.read_large(event, at),
                None => events.read(&block, at, true),
            });
        }
        let EventReader {
            mut reply,
            sequences,
            ..
        } = self.events;
        reply.conclude(sequences);
        reply
    }
}

impl EventReader {
    /// `may_be_cut`: the event's blank line never came, so that only a parser can tell whether it is whole.
    fn read(&mut self, block: &Block<'_>, at: Instant, may_be_cut: bool) {
        let bytes = block.bytes.unwrap_or_default();
        // Dynamo's error frames say so in the event's name and carry no data. Most blocks need no look at their name.
        if !bytes.starts_with(b"data") && block.event_name() == Some(b"error") {
            self.reply.error_event = true;
        }
        let Some(data) = block.data() else {
            return;
        };
        self.reply.events += 1;
        if self.reply.first_content.is_some() && !may_be_cut && !self.needle.must_parse(&data) {
            self.reply.note_content(at);
        } else if data.trim_ascii() == b"[DONE]" {
            self.reply.done_seen = true;
        } else {
            let mut reducer = Reducer::new();
            reducer.feed(&data);
            match reducer.read(|json| self.take(json, at)) {
                Ok(true) => {}
                Err(Unreadable::TooLarge) => self.reply.fault = Some(Reason::EventTooLarge),
                _ => self.reply.unreadable_events += 1,
            }
        }
    }

    fn read_large(&mut self, event: LargeEvent, at: Instant) {
        self.reply.error_event |= event.is_named(b"error");
        if let Some(data) = event.into_data() {
            self.reply.events += 1;
            match data.read(|json| self.take(json, at)) {
                Ok(true) => {}
                Ok(false) => self.reply.unreadable_events += 1,
                // One that is not even JSON could not be looked at for its size.
                Err(_) => self.reply.fault = Some(Reason::EventTooLarge),
            }
        }
    }

    /// Takes the facts of an event; whether it is one of ours, an object or a list.
    fn take(&mut self, json: Json<'_>, at: Instant) -> bool {
        let reply = &mut self.reply;
        match json {
            Json::Object(object) => {
                if !std::mem::replace(&mut self.object_seen, true) {
                    reply.first_event_has_usage = facts::has_usage(object);
                }
                reply.usage_event_seen |= facts::is_usage_event(object);
                reply.error_event |= facts::is_error(object);
            }
            Json::List(_) => {}
            _ => return false,
        }
        if facts::take_all(json, reply, &mut self.sequences) {
            reply.note_content(at);
        }
        true
    }
}
