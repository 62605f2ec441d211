//! How many bytes an observation takes, as the ring accounts for it.
//!
//! An estimate: sizes of the values plus what their strings, vectors and maps hold on the heap. It errs on the high
//! side, since a bound that is too early costs an old observation and one that is too late costs memory.

use std::mem::size_of;

use crate::observation::Observation;
use crate::record::AcceptanceRecord;

/// Book-keeping per kept observation: its entry, of which the queue may have twice as many, and the two counts of its `Arc`.
const ENTRY_OVERHEAD: usize = 96;

/// A B-tree node is at least half full and has room for its links.
const MAP_SLACK: usize = 2;

/// Bytes of an observation without its per-step arrays.
pub(super) fn base_bytes(observation: &Observation) -> usize {
    let text = |value: &Option<String>| value.as_ref().map_or(0, String::capacity);
    let strings = observation.id.capacity()
        + observation.lane.capacity()
        + text(&observation.request_id)
        + text(&observation.x_request_id)
        + text(&observation.trace_id)
        + text(&observation.model)
        + text(&observation.tag)
        + text(&observation.run);
    let finish_reasons: usize = observation
        .finish_reasons
        .iter()
        .map(|reason| reason.capacity() + size_of::<String>())
        .sum();
    let engine_metrics: usize = observation
        .engine_metrics
        .keys()
        .map(|name| name.capacity() + MAP_SLACK * size_of::<(String, f64)>())
        .sum();
    let records: usize = observation
        .spec_decode_acceptance
        .iter()
        .map(|record| {
            size_of::<AcceptanceRecord>()
                + record.acceptance_histogram.len() * MAP_SLACK * size_of::<(u32, u64)>()
        })
        .sum();
    ENTRY_OVERHEAD + size_of::<Observation>() + strings + finish_reasons + engine_metrics + records
}

/// Bytes of an observation's per-step arrays.
pub(super) fn per_step_bytes(observation: &Observation) -> usize {
    let array = |values: &Option<Vec<u64>>| {
        values
            .as_ref()
            .map_or(0, |values| values.capacity() * size_of::<u64>())
    };
    observation
        .spec_decode_acceptance
        .iter()
        .map(|record| array(&record.per_step_accepted) + array(&record.per_step_drafted))
        .sum()
}
