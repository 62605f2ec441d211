//! The key of an exchange: what decides whether it stays when a group keeps a part of its exchanges only.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::observation::Observation;
use crate::record::AcceptanceRecord;

/// A key that every form of an exchange gives alike, be it live, a row of a log or a line of a file: from its times in
/// microseconds, which no two share as a rule, and its counts.
pub(in crate::stats) fn key(observation: &Observation, record: Option<&AcceptanceRecord>) -> u32 {
    let microseconds = |time: SystemTime| {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        since.as_micros() as u64
    };
    let record = record.filter(|record| !record.is_zero_step());
    let parts = [
        microseconds(observation.started_at),
        microseconds(observation.ended_at),
        observation.in_flight,
        observation.usage.completion_tokens.unwrap_or(0),
        record.map_or(0, |it| it.num_accepted_draft_tokens),
        record.map_or(0, |it| it.num_draft_tokens),
    ];
    // SplitMix64's mixing step: neighbouring times get keys that have nothing to do with each other.
    let hash = parts.into_iter().fold(0_u64, |hash, part| {
        let mut mixed = (hash ^ part).wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    });
    (hash >> 32) as u32
}
