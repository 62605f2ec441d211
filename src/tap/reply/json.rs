//! Observes a JSON body: all of it is one object, or a list of them, one for each sequence of a batch.

use std::time::Instant;

use super::Reply;
use super::facts;
use super::sequences::Sequences;
use crate::engines::{Options, Payloads};
use crate::observation::Reason;
use crate::tap::json::{Reducer, Unreadable};

/// State between two reads of a JSON body.
#[derive(Debug, Default)]
pub(super) struct JsonObserver {
    reducer: Reducer,
    last_read: Option<Instant>,
}

impl JsonObserver {
    pub(super) fn see(&mut self, bytes: &[u8], at: Instant) {
        if !bytes.is_empty() {
            self.reducer.feed(bytes);
            self.last_read = Some(at);
        }
    }

    pub(super) fn finish(self, options: Options) -> Reply {
        let mut reply = Reply {
            payloads: Payloads::new(options),
            ..Reply::default()
        };
        let last_read = self.last_read;
        let read = self.reducer.read(|json| {
            let mut sequences = Sequences::default();
            if facts::take_all(json, &mut reply, &mut sequences)
                && let Some(at) = last_read
            {
                reply.note_content(at);
            }
            reply.conclude(sequences);
        });
        match read {
            Ok(()) => {}
            Err(Unreadable::TooLarge) => reply.fault = Some(Reason::EventTooLarge),
            Err(Unreadable::NotJson { .. } | Unreadable::Unfinished | Unreadable::BadValue) => {
                reply.fault = Some(Reason::NotJson);
            }
        }
        reply
    }
}
