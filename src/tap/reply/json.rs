//! Observes a JSON body: all of it is one object.

use std::time::Instant;

use serde_json::Value;

use super::Reply;
use super::facts::{self, Finishes};
use crate::observation::Reason;
use crate::tap::json::{Reducer, Unreadable};

/// State between two reads of a JSON body.
#[derive(Debug, Default)]
pub struct JsonObserver {
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

    pub(super) fn finish(self) -> Reply {
        let mut reply = Reply::default();
        match self.reducer.finish() {
            Ok(Value::Object(object)) => {
                let mut finishes = Finishes::default();
                if facts::take(&object, &mut reply, &mut finishes)
                    && let Some(at) = self.last_read
                {
                    reply.note_content(at);
                }
                reply.finish_reasons = finishes.into_reasons();
            }
            Ok(_) => {}
            Err(Unreadable::TooLarge) => reply.fault = Some(Reason::EventTooLarge),
            Err(Unreadable::NotJson { .. } | Unreadable::Unfinished | Unreadable::BadValue) => {
                reply.fault = Some(Reason::NotJson);
            }
        }
        reply
    }
}
