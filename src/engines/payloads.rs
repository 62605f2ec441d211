//! Collects the acceptance payloads of one response, object by object.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{Reading, interpret};
use crate::record::{AcceptanceRecord, Provenance};

/// Most sequences of one response that are kept apart; an engine that sends more has gone wrong, and what comes on top
/// makes the response ambiguous.
const MOST_PLACES: usize = 1024;

/// Most verify steps that are kept in order for one response. Arrays beyond are checked, then dropped, and the record
/// goes on with its histogram.
const MOST_ORDERED_STEPS: usize = 1 << 18;

/// The payloads of one response by their place.
#[derive(Clone, Debug, Default)]
pub struct Payloads {
    places: BTreeMap<Place, Found>,
    too_many: bool,
    ordered_steps: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Root,
    Choice(u32),
}

#[derive(Clone, Debug)]
struct Found {
    reading: Reading,
    doubled: bool,
}

impl Payloads {
    /// Takes what one JSON object of the response carries: the body, or one event.
    ///
    /// The rule is AIPerf's: an object at root `metrics.speculative_decoding` wins, even an empty one; else each
    /// choice's `speculative_decoding` (AIPerf looks at a single choice only). Null, lists and empty objects are
    /// nothing.
    pub fn take(&mut self, object: &Map<String, Value>) {
        let at_root = object
            .get("metrics")
            .and_then(|metrics| metrics.get("speculative_decoding"))
            .and_then(Value::as_object);
        if let Some(payload) = at_root {
            self.put(Place::Root, payload);
            return;
        }
        let choices = object.get("choices").and_then(Value::as_array);
        for (position, choice) in (0u32..).zip(choices.into_iter().flatten()) {
            if let Some(payload) = choice
                .get("speculative_decoding")
                .and_then(Value::as_object)
            {
                let index = choice
                    .get("index")
                    .and_then(Value::as_u64)
                    .and_then(|index| u32::try_from(index).ok());
                self.put(Place::Choice(index.unwrap_or(position)), payload);
            }
        }
    }

    fn put(&mut self, place: Place, payload: &Map<String, Value>) {
        if payload.is_empty() {
            return;
        }
        if let Some(found) = self.places.get_mut(&place) {
            found.doubled = true;
        } else if self.places.len() == MOST_PLACES {
            self.too_many = true;
        } else {
            let mut reading = interpret(payload);
            if let Reading::Valid(record) = &mut reading {
                self.bound_steps(record);
            }
            self.places.insert(
                place,
                Found {
                    reading,
                    doubled: false,
                },
            );
        }
    }

    fn bound_steps(&mut self, record: &mut AcceptanceRecord) {
        let arrays = [&record.per_step_accepted, &record.per_step_drafted];
        let steps = arrays.into_iter().flatten().map(Vec::len).max();
        self.ordered_steps += steps.unwrap_or(0);
        if self.ordered_steps > MOST_ORDERED_STEPS {
            record.per_step_accepted = None;
            record.per_step_drafted = None;
            record.provenance = Provenance::Histogram;
        }
    }

    /// How many sequences sent a payload.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether none came.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Whether one sequence has more than one payload, or there are more than can be kept apart.
    pub(super) fn are_doubled(&self) -> bool {
        self.too_many || self.is_mixed()
    }

    /// The root speaks for the whole response: a choice beside it, on another event, is a second payload.
    fn is_mixed(&self) -> bool {
        self.places.len() > 1 && self.places.contains_key(&Place::Root)
    }

    /// Choice index, reading, and whether the place has more than one payload; in the order of the choices.
    pub(super) fn readings(&self) -> impl Iterator<Item = (Option<u32>, &Reading, bool)> {
        let mixed = self.is_mixed();
        self.places.iter().map(move |(place, found)| {
            let choice_index = match place {
                Place::Root => None,
                Place::Choice(index) => Some(*index),
            };
            (choice_index, &found.reading, found.doubled || mixed)
        })
    }
}
