//! Coverage: the share of what the engine counted that the records of single requests hold.
//!
//! A request under way has moved the engine's counters and has no record yet; that is no gap. So both sides are taken at
//! moments at which nothing was under way at the tap and the engine had published everything. Where the traffic leaves
//! no such moment, the plain ends are taken, and the answer says so.

use std::collections::BTreeMap;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::marks::{Mark, Marks, Stretch};
use super::totals::{between, sum};
use crate::observation::rfc3339;

/// What the tap has seen of what the engine counted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// Sum over the records.
    pub seen: u64,
    /// Movement of the engine's counter.
    pub moved: u64,
    /// The one by the other. Above 1 the engine lost counts, as by a restart.
    pub share: f64,
}

/// How much of the engine's work the records hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Coverage {
    /// Start of the stretch that both sides are of.
    #[serde(with = "rfc3339")]
    pub from: SystemTime,
    /// Its end.
    #[serde(with = "rfc3339")]
    pub to: SystemTime,
    /// Whether nothing was under way at both ends, so that the shares are exact. Else the requests under way at the end
    /// count as a gap.
    pub settled: bool,
    /// Requests under way at the tap at the end.
    pub in_flight: u64,
    /// Restarts of the engine in between: what it counted before one and after the last reading is lost.
    pub resets: u64,
    /// Verify steps; absent where the engine counts none, or they did not move.
    pub steps: Option<Share>,
    /// Drafted tokens, likewise.
    pub drafted: Option<Share>,
    /// Accepted tokens, likewise.
    pub accepted: Option<Share>,
    /// Generated tokens: those in the usage of the tap's exchanges, with records or without. What is missing here went past
    /// the tap, or through it without a usage object.
    pub generation_tokens: Option<Share>,
    /// Exchanges through the tap that had no record, by reason.
    pub unrecorded: BTreeMap<String, u64>,
}

impl Coverage {
    /// The share that stands for all: of the steps, and where the engine counts none of the accepted tokens.
    pub fn ratio(&self) -> Option<f64> {
        // Records of totals alone tell no steps.
        let tells_steps = |steps: &Share| {
            steps.seen > 0 || self.accepted.is_none_or(|accepted| accepted.seen == 0)
        };
        let share = self.steps.filter(tells_steps).or(self.accepted)?;
        Some(share.share)
    }

    pub(super) fn of(marks: &Marks, stretch: &Stretch) -> Option<Self> {
        let settled = marks.settled_ends(stretch);
        let settled = settled.map(|(begin, end)| Self::between(begin, end, true));
        let tells = |coverage: &Self| coverage.ratio().is_some();
        if let Some(coverage) = settled.filter(tells) {
            return Some(coverage);
        }
        let (begin, end) = marks.ends(stretch)?;
        // At rest now, and under way at the first reading: what moved since is a part of what came through.
        if end.is_settled || begin.at >= end.at {
            return None;
        }
        Some(Self::between(begin, end, false)).filter(tells)
    }

    fn between(begin: &Mark, end: &Mark, settled: bool) -> Self {
        let moved = sum(between(&begin.moved, &end.moved).values());
        let seen = |of: fn(&super::TapSums) -> u64| of(&end.tap).saturating_sub(of(&begin.tap));
        let share = |seen: u64, moved: Option<u64>| {
            let moved = moved.filter(|&moved| moved > 0)?;
            Some(Share {
                seen,
                moved,
                share: seen as f64 / moved as f64,
            })
        };
        let unrecorded = end.tap.unrecorded.iter().filter_map(|(reason, count)| {
            let before = begin.tap.unrecorded.get(reason).copied().unwrap_or(0);
            let count = count.saturating_sub(before);
            (count > 0).then(|| (reason.clone(), count))
        });
        Self {
            from: begin.at,
            to: end.at,
            settled,
            in_flight: end.tap.in_flight,
            resets: end.resets.saturating_sub(begin.resets),
            steps: share(seen(|tap| tap.steps), moved.steps),
            drafted: share(seen(|tap| tap.drafted), moved.drafted),
            accepted: share(seen(|tap| tap.accepted), moved.accepted),
            generation_tokens: share(seen(|tap| tap.generation_tokens), moved.generation_tokens),
            unrecorded: unrecorded.collect(),
        }
    }
}
