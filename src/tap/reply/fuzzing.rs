//! The observer of a response's body, for fuzz targets: see [`crate::tap::fuzzing`].

use std::time::Instant;

use serde_json::{Map, Value};

use super::facts;
use super::large::LargeEvent;
use super::sequences::Sequences;
use super::stream::StreamObserver;
use super::{Framed, Reply, ReplyObserver};
use crate::engines::{self, Options, Payloads, Verdict};
use crate::tap::fuzzing::Input;
use crate::tap::json::{Reducer, Unreadable};
use crate::tap::sse::Splitter;

/// Cap on one event, in bytes, so that most events of a small input are over it.
const SMALL_CAP: usize = 48;

/// Observes a body. Promises: no panic on any bytes; how the body is cut changes no fact; every record that comes of it
/// keeps its identities; an event that is too large to be held is read as one that is not.
///
/// Bits of `how`: 0 a JSON body; 1 usage details are read; 2 most events are too large to be held.
pub fn reply(data: &[u8]) {
    let Some(input) = Input::read(data) else {
        return;
    };
    let at = Instant::now();
    let whole = observe(input, &[input.text], at);
    for n in [1, 2] {
        check_verdict(&engines::read(&whole.payloads, &whole.usage, n));
    }
    let expected = format!("{whole:?}");
    for pieces in input.chunkings() {
        assert_eq!(format!("{:?}", observe(input, &pieces, at)), expected);
    }
    large_events(input);
}

fn observe(input: Input<'_>, pieces: &[&[u8]], at: Instant) -> Reply {
    let options = Options {
        usage_details: input.has(1),
    };
    let observer = if input.has(0) {
        ReplyObserver::new_json()
    } else {
        ReplyObserver::new_stream()
    };
    let mut observer = observer.reading(options);
    if input.has(2)
        && let Framed::Stream(stream) = &mut observer.body.framed
    {
        **stream = StreamObserver::holding(options, SMALL_CAP);
    }
    for piece in pieces {
        observer.see(piece, at);
    }
    observer.finish()
}

/// Reads each event both ways.
fn large_events(input: Input<'_>) {
    let mut splitter = Splitter::default();
    let mut in_stream = 0;
    let mut compare = |block: crate::tap::sse::Block<'_>| {
        let bytes = block.bytes.unwrap_or_default();
        let mut large = LargeEvent::default();
        for piece in (Input {
            text: bytes,
            ..input
        })
        .pieces()
        {
            large.feed(piece);
        }
        let has_mark = in_stream > 0 && bytes.starts_with(b"\xEF\xBB\xBF");
        let is_cut = !bytes.ends_with(b"\n") && !bytes.ends_with(b"\r");
        in_stream += 1;
        if has_mark || is_cut {
            // Only the stream's first bytes can be a byte order mark, and a large event does not know where it stands.
            // What a field without its line end is, nobody says.
            return;
        }
        let is_named = block.event_name() == Some(b"error");
        assert_eq!(large.is_named(b"error"), is_named);
        let usual = block.data().map(|data| {
            let mut reducer = Reducer::new();
            reducer.feed(&data);
            reducer.finish().map_err(without_offset)
        });
        let large = large
            .into_data()
            .map(|reducer| reducer.finish().map_err(without_offset));
        assert_eq!(large, usual, "read otherwise because it is large");
    };
    splitter.feed(input.text, &mut compare);
    splitter.finish(compare);
}

fn without_offset(why: Unreadable) -> Unreadable {
    match why {
        Unreadable::NotJson { .. } => Unreadable::NotJson { offset: 0 },
        other => other,
    }
}

/// Whether a parse of an event finds content, and nothing that only a parse can find.
pub(in crate::tap) fn is_plain_content(data: &[u8]) -> bool {
    let mut reducer = Reducer::new();
    reducer.feed(data);
    let Ok(Value::Object(object)) = reducer.finish() else {
        return false;
    };
    let (mut reply, mut sequences) = (Reply::default(), Sequences::default());
    let has_content = facts::take(&object, None, &mut reply, &mut sequences);
    has_content
        && !reply.usage_seen
        && !reply.stop_reason_is_string
        && reply.engine_metrics.is_empty()
        && reply.payloads.is_empty()
        && !facts::is_error(&object)
        && !facts::is_usage_event(&object)
        && sequences.into_finish_reasons().is_empty()
}

/// What a response's objects come to if each is given to the adapters as it is, unreduced.
pub(in crate::tap) fn verdict_of_objects(
    objects: &[Map<String, Value>],
    options: Options,
    n: u32,
) -> Verdict {
    let mut payloads = Payloads::new(options);
    for object in objects {
        payloads.take(object, None);
    }
    let usage = Reply::default().usage;
    engines::read(&payloads, &usage, n)
}

/// Whatever was sent, a verdict says one thing, and its records are honest.
pub(in crate::tap) fn check_verdict(verdict: &Verdict) {
    use crate::observation::Acceptance;
    let has_steps = verdict.records.iter().any(|record| !record.is_zero_step());
    let expected = match verdict.acceptance {
        Acceptance::Recorded => has_steps,
        Acceptance::ZeroStep => !has_steps && !verdict.records.is_empty(),
        Acceptance::Malformed | Acceptance::Ambiguous => {
            verdict.records.is_empty() && verdict.reason.is_some()
        }
        Acceptance::Absent => verdict.records.is_empty() && verdict.reason.is_none(),
        Acceptance::Unobserved => false,
    };
    assert!(expected, "a verdict against itself: {verdict:?}");
    for record in &verdict.records {
        assert_eq!(record.check(), Ok(()), "{record:?}");
        let is_counts = record.provenance == crate::record::Provenance::Counts;
        assert!(
            !is_counts || record.acceptance_histogram.is_empty(),
            "a histogram that nobody sent: {record:?}"
        );
        let figures = [
            record.mean_acceptance_length,
            record.draft_acceptance_rate,
            record.derived_length(),
            record.derived_rate(),
            record.accepted_per_verified(),
        ];
        assert!(
            figures.into_iter().flatten().all(f64::is_finite),
            "{record:?}"
        );
        let again = serde_json::to_string(record).map(|text| serde_json::from_str(&text));
        assert!(
            again
                .is_ok_and(|again| again
                    .is_ok_and(|again: crate::record::AcceptanceRecord| again == *record)),
            "a record that can't be read again: {record:?}"
        );
    }
    let is_contradictory = verdict
        .records
        .iter()
        .any(|record| record.is_contradictory());
    assert_eq!(verdict.contradiction, is_contradictory);
}
