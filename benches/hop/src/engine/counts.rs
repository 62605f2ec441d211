//! What the engine double did: the truth that spectap's own counters are held against.

use serde::{Deserialize, Serialize};

use crate::shape::{
    ACCEPTED_PER_EVENT, DRAFTED_PER_EVENT, STEPS_PER_EVENT, TOKENS_PER_EVENT, UNARY_EVENTS,
};

/// Sums since the start.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Chat completions that were asked for.
    pub requests: u64,
    /// Streams that were sent to their end.
    pub streams: u64,
    /// Replies that were sent to their end, streams not among them.
    pub replies: u64,
    /// Token events sent, of streams that were cut too.
    pub events: u64,
    /// Usage events sent.
    pub usage_events: u64,
    /// Responses sent to their end that carried acceptance numbers.
    pub records: u64,
    /// Verify steps that those numbers told.
    pub steps: u64,
    /// Drafted tokens that they told.
    pub drafted: u64,
    /// Accepted tokens that they told.
    pub accepted: u64,
    /// Completion tokens of all usage objects.
    pub tokens: u64,
    /// Bytes handed to the kernel.
    pub bytes: u64,
    /// Connections that ended in the middle of a response.
    pub cut: u64,
    /// Requests that could not be understood.
    pub refused: u64,
    /// Connections that are open.
    pub open: u64,
}

impl Counts {
    /// Counts a stream that was sent to its end.
    pub fn stream_ended(&mut self, events: u64, with_usage: bool) {
        self.streams += 1;
        if with_usage {
            self.usage_events += 1;
            self.record(events);
        }
    }

    /// Counts a reply that was sent to its end.
    pub fn reply_ended(&mut self) {
        self.replies += 1;
        self.record(UNARY_EVENTS);
    }

    fn record(&mut self, events: u64) {
        self.records += 1;
        self.steps += events * STEPS_PER_EVENT;
        self.drafted += events * DRAFTED_PER_EVENT;
        self.accepted += events * ACCEPTED_PER_EVENT;
        self.tokens += events * TOKENS_PER_EVENT;
    }
}
