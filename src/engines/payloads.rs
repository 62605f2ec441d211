//! Collects the acceptance payloads of one response, object by object, each by its place.

use std::collections::BTreeMap;

use super::adapter::{self, Reading, interpret, offer};
use super::object::{Json, Object};
use super::sequence::Sequences;
use super::{Options, carrier};
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
    options: Options,
    places: BTreeMap<Place, Found>,
    too_many: bool,
    /// What the usage object says; it counts only where no engine speaks for itself.
    usage_details: Option<Reading>,
    sequences: Sequences,
}

/// Where a payload stands; the number tells the sequences of one place apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// `metrics.speculative_decoding`.
    Root,
    /// A choice's member.
    Choice(u32),
    /// An element of SGLang's extension: it has no choice index, since choices without numbers are left out.
    Extension(u32),
    /// `meta_info` of a sequence.
    MetaInfo(u32),
    /// `timings` of a sequence.
    Timings(u32),
    /// `generation_metadata`.
    Metadata,
    /// `stats` or `usage`.
    Stats,
}

impl Place {
    /// Whether the payload runs through the stream, so that the last valid one holds. Of any other place a second
    /// payload is one too many.
    fn is_cumulative(self) -> bool {
        !matches!(self, Self::Root | Self::Choice(_) | Self::Extension(_))
    }
}

#[derive(Clone, Debug)]
struct Found {
    reading: Reading,
    doubled: bool,
}

impl Payloads {
    /// None yet; to be read as `options` say.
    pub fn new(options: Options) -> Self {
        Self {
            options,
            ..Self::default()
        }
    }

    /// Takes what one JSON object of the response carries: the body, or one event. `position` is the object's own in a
    /// list that is the whole body, if it stands in one.
    pub fn take(&mut self, object: &dyn Object, position: Option<u32>) {
        self.sequences.note_choice(object);
        // An event of the Responses route wraps the response whose root it is.
        let envelope = object.get("response").and_then(Json::as_object);
        for source in envelope.into_iter().chain([object]) {
            self.take_speculative_decoding(source);
        }
        self.take_extension(object);
        self.take_running(object, position);
    }

    /// The rule is AIPerf's: an object at root `metrics.speculative_decoding` wins, even an empty one; else each
    /// choice's `speculative_decoding` (AIPerf looks at a single choice only). Null, lists and empty objects are
    /// nothing.
    fn take_speculative_decoding(&mut self, object: &dyn Object) {
        if let Some(payload) = carrier::in_metrics(object) {
            if !payload.is_empty() {
                let reading = interpret(payload, adapter::SPECULATIVE_DECODING);
                self.put(Place::Root, reading);
            }
            return;
        }
        for (index, choice) in carrier::choices(object) {
            let member = |name: &str| carrier::filled(choice, name);
            let reading = member("speculative_decoding")
                .map(|payload| interpret(payload, adapter::SPECULATIVE_DECODING))
                .or_else(|| {
                    let payload = member("speculative_decoding_stats")?;
                    Some(interpret(payload, adapter::OLDER_CHOICE))
                });
            if let Some(reading) = reading {
                self.put(Place::Choice(index), reading);
            }
        }
    }

    /// Both members of SGLang's extension speak of the same steps; the ordered ones say more, where they can be read.
    fn take_extension(&mut self, object: &dyn Object) {
        let Some(extension) = carrier::filled(object, "sglext") else {
            return;
        };
        let read = |name, adapters| -> Vec<Reading> {
            carrier::one_or_several(extension, name)
                .map(|payload| interpret(payload, adapters))
                .collect()
        };
        let ordered = read("speculative_decoding_stats", adapter::SGLANG_ORDERED);
        let details = read("spec_tokens_details", adapter::SGLANG_DETAILS);
        let is_readable = ordered
            .iter()
            .all(|reading| matches!(reading, Reading::Valid(_)));
        let chosen = if details.is_empty() || (is_readable && !ordered.is_empty()) {
            ordered
        } else {
            details
        };
        for (position, reading) in (0u32..).zip(chosen) {
            self.put(Place::Extension(position), reading);
        }
    }

    fn take_running(&mut self, object: &dyn Object, position: Option<u32>) {
        if let Some(meta_info) = carrier::filled(object, "meta_info") {
            let ordered = carrier::filled(meta_info, "speculative_decoding_stats")
                .and_then(|payload| offer(payload, adapter::SGLANG_ORDERED));
            if let Some(reading) = ordered.or_else(|| offer(meta_info, adapter::META_INFO)) {
                let index = position.or(carrier::index(object)).unwrap_or(0);
                self.put(Place::MetaInfo(index), reading);
            }
        }
        if let Some(timings) = carrier::filled(object, "timings")
            && let Some(reading) = offer(timings, adapter::TIMINGS)
        {
            let index = self.sequences.of_timings(object, position);
            self.put(Place::Timings(index), reading);
        }
        if let Some(metadata) = carrier::filled(object, "generation_metadata")
            && let Some(reading) = offer(metadata, adapter::GENERATION_METADATA)
        {
            self.put(Place::Metadata, reading);
        }
        let usage = carrier::filled(object, "usage");
        let stats = carrier::filled(object, "stats");
        if let Some(reading) = stats
            .into_iter()
            .chain(usage)
            .find_map(|payload| offer(payload, adapter::STATS))
        {
            self.put(Place::Stats, reading);
        }
        if self.options.usage_details
            && let Some(details) =
                usage.and_then(|usage| carrier::filled(usage, "completion_tokens_details"))
            && let Some(reading) = offer(details, adapter::USAGE_DETAILS)
            && replaces(&reading, self.usage_details.as_ref())
        {
            self.usage_details = Some(reading);
        }
    }

    fn put(&mut self, place: Place, mut reading: Reading) {
        match self.places.get(&place) {
            Some(_) if !place.is_cumulative() => {
                if let Some(found) = self.places.get_mut(&place) {
                    found.doubled = true;
                }
                return;
            }
            Some(found) if !replaces(&reading, Some(&found.reading)) => return,
            None if self.places.len() == MOST_PLACES => {
                self.too_many = true;
                return;
            }
            _ => {}
        }
        if let Reading::Valid(record) = &mut reading {
            self.bound_steps(place, record);
        }
        let doubled = false;
        self.places.insert(place, Found { reading, doubled });
    }

    fn bound_steps(&self, place: Place, record: &mut AcceptanceRecord) {
        let others = self.places.iter().filter(|(other, _)| **other != place);
        let held: usize = others
            .map(|(_, found)| match &found.reading {
                Reading::Valid(record) => ordered_steps(record),
                _ => 0,
            })
            .sum();
        if held + ordered_steps(record) > MOST_ORDERED_STEPS {
            record.per_step_accepted = None;
            record.per_step_drafted = None;
            record.provenance = Provenance::Histogram;
        }
    }

    /// How many sequences sent a payload.
    pub fn len(&self) -> usize {
        if self.places.is_empty() {
            usize::from(self.usage_details.is_some())
        } else {
            self.places.len()
        }
    }

    /// Whether none came.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether one sequence has more than one payload, or there are more than can be kept apart.
    pub(super) fn are_doubled(&self) -> bool {
        self.too_many || self.is_mixed()
    }

    /// Whether payloads of more than one kind of place came, so that a sequence may have been told twice: at the root
    /// and, on another event, at a choice.
    fn is_mixed(&self) -> bool {
        let mut kinds = self.places.keys().map(std::mem::discriminant);
        kinds
            .next()
            .is_some_and(|first| kinds.any(|kind| kind != first))
    }

    /// Choice index, reading, and whether the place has more than one payload; in the order of the choices.
    pub(super) fn into_readings(self) -> impl Iterator<Item = (Option<u32>, Reading, bool)> {
        let mixed = self.is_mixed();
        let several = self.places.len() > 1;
        let usage_details = self.usage_details.filter(|_| self.places.is_empty());
        let places = self.places.into_iter().map(move |(place, found)| {
            let choice_index = match place {
                Place::Choice(index) => Some(index),
                Place::MetaInfo(index) | Place::Timings(index) if several => Some(index),
                _ => None,
            };
            (choice_index, found.reading, found.doubled || mixed)
        });
        places.chain(usage_details.map(|reading| (None, reading, false)))
    }
}

/// Whether a later reading of a running place takes the place of an earlier one: nothing broken replaces a valid one.
fn replaces(later: &Reading, earlier: Option<&Reading>) -> bool {
    matches!(later, Reading::Valid(_)) || !matches!(earlier, Some(Reading::Valid(_)))
}

fn ordered_steps(record: &AcceptanceRecord) -> usize {
    let arrays = [&record.per_step_accepted, &record.per_step_drafted];
    arrays
        .into_iter()
        .flatten()
        .map(Vec::len)
        .max()
        .unwrap_or(0)
}
