//! The filter of a stream that holds something injected.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use super::{Input, reference};
use crate::tap::filter::{Filter, Incident, Pushed, Restore};
use crate::tap::injection::Added;
use crate::tap::learned::Fingerprint;
use crate::tap::sse::LARGEST_EVENT;

/// What a filter may hold: a finish event with its comments, and an unfinished event behind it.
const LARGEST_HELD: usize = 2 * LARGEST_EVENT;

/// A run of this many bytes is more than any filter may hold.
const ENDLESS: usize = 2 * LARGEST_HELD;

/// Strips a stream. Promises: as long as nothing is reported as stripped, what goes out is what came in, byte for byte
/// (where the fingerprint is known beforehand: and it in the finish events); each report is one event less; how the stream
/// is cut changes nothing, unless part of an event was out before it showed what it is; what is held is bounded.
///
/// Bits of `how`: 0 usage is stripped; 1 SGLang's numbers are; 2 and 3 several sequences, with a known fingerprint or known
/// to have none. `how` 255: the second half of the text is repeated without end.
pub fn strip(data: &[u8]) {
    let Some(input) = Input::read(data) else {
        return;
    };
    if input.how == u8::MAX {
        endless(input);
        return;
    }
    let (out, incidents) = filtered(input, &[input.text]);
    assert!(!incidents.contains(&Incident::Skipped("event_sent")));
    let stripped = count(&incidents);
    if stripped == 0 && !input.has(2) {
        assert_eq!(out, input.text, "bytes lost or won");
    }
    if !added(input).details && !has_inner_mark(input.text) {
        assert_eq!(
            events(&out) + stripped,
            events(input.text),
            "events lost or won"
        );
    }
    for pieces in input.chunkings() {
        let (cut_out, cut_incidents) = filtered(input, &pieces);
        if !cut_incidents.contains(&Incident::Skipped("event_sent")) {
            assert_eq!(cut_incidents, incidents, "cut otherwise");
            assert_eq!(cut_out, out, "cut otherwise");
        }
    }
}

fn added(input: Input<'_>) -> Added {
    let details = input.has(1);
    // One of the two is always stripped, or there would be no filter.
    let usage = input.has(0) || !details;
    Added {
        usage,
        details,
        strip_usage: usage,
    }
}

fn filter(input: Input<'_>, report: impl FnMut(Incident) + Send + 'static) -> Filter {
    let restore = match (input.has(2), input.has(3)) {
        (true, _) => Restore::Known(Fingerprint::Value("fp_\"1".into())),
        (false, true) => Restore::Known(Fingerprint::Absent),
        (false, false) => Restore::FromSuccessor,
    };
    Filter::new(added(input), restore, Box::new(report))
}

fn filtered(input: Input<'_>, pieces: &[&[u8]]) -> (Vec<u8>, Vec<Incident>) {
    let incidents = Arc::new(Mutex::new(Vec::new()));
    let report = Arc::clone(&incidents);
    let mut filter = filter(input, move |incident| {
        report
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(incident);
    });
    let mut out = Vec::new();
    for piece in pieces {
        if let Pushed::Content(bytes, _) = filter.push(Bytes::copy_from_slice(piece)) {
            out.extend_from_slice(&bytes);
        }
        drain(&mut filter, &mut out);
    }
    filter.end();
    drain(&mut filter, &mut out);
    let incidents = incidents
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone();
    assert!(!incidents.contains(&Incident::Skipped("filter_failed")));
    (out, incidents)
}

fn drain(filter: &mut Filter, out: &mut Vec<u8>) {
    while let Some(bytes) = filter.next() {
        out.extend_from_slice(&bytes);
    }
}

fn count(incidents: &[Incident]) -> usize {
    let stripped = |incident: &&Incident| **incident == Incident::Stripped;
    incidents.iter().filter(stripped).count()
}

fn events(stream: &[u8]) -> usize {
    let events = reference::events(stream);
    events.iter().filter(|event| event.data.is_some()).count()
}

/// Whether a byte order mark stands inside: with what is before it gone, it may come to stand at the stream's start.
fn has_inner_mark(stream: &[u8]) -> bool {
    stream
        .windows(3)
        .skip(1)
        .any(|bytes| bytes == b"\xEF\xBB\xBF")
}

fn endless(input: Input<'_>) {
    let (beginning, repeated) = input.text.split_at(input.text.len() / 2);
    if repeated.is_empty() {
        return;
    }
    let piece = Bytes::from(repeated.repeat(1 + (64 << 10) / repeated.len()));
    let mut filter = filter(
        Input {
            how: input.cuts,
            ..input
        },
        |_| {},
    );
    filter.push(Bytes::copy_from_slice(beginning));
    for number in 0..ENDLESS / piece.len() {
        filter.push(piece.clone());
        while filter.next().is_some() {}
        // Adding up is slow where much is held.
        if number % 64 == 0 {
            assert!(filter.held() <= LARGEST_HELD + 64 * piece.len());
        }
    }
}
