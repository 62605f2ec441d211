//! Which sequence the root `timings` of an event belong to: llama.cpp names it on events with choices only.

use std::collections::BTreeSet;

use super::carrier;
use super::object::{Json, Object};

/// Most sequences that are told apart.
const MOST_SEQUENCES: u32 = 1024;

/// What the events so far say about the sequences.
#[derive(Clone, Debug, Default)]
pub(super) struct Sequences {
    /// The choice that the last event with choices was about.
    current: u32,
    /// The sequences whose usage event has come: nothing follows of them.
    closed: BTreeSet<u32>,
}

impl Sequences {
    /// Looks at an object's choices.
    pub(super) fn note_choice(&mut self, object: &dyn Object) {
        if let Some((index, _)) = carrier::choices(object).next() {
            self.current = index;
        }
    }

    /// The sequence of an object's timings: that of its position in a list, if it stands in one. A usage event follows
    /// the finish event of its sequence, without an index; a second one is another sequence's.
    pub(super) fn of_timings(&mut self, object: &dyn Object, position: Option<u32>) -> u32 {
        if let Some(position) = position {
            return position;
        }
        if carrier::has_choices(object) {
            return self.current;
        }
        if object.get("usage").and_then(Json::as_object).is_none() {
            return carrier::index(object).unwrap_or(0);
        }
        let open = if self.closed.contains(&self.current) {
            (0..MOST_SEQUENCES).find(|index| !self.closed.contains(index))
        } else {
            Some(self.current)
        };
        let index = open.unwrap_or(MOST_SEQUENCES);
        self.closed.insert(index);
        index
    }
}
