//! One view of the records, and the values that each record has.
//!
//! There are two, always both. `aiperf` takes what AIPerf would take: complete exchanges with content, one sequence
//! and exactly one record. `all` takes every valid record, one per sequence, whatever the outcome. A group keeps `aiperf`
//! and the rest apart, so that nothing is kept twice.

use serde::{Deserialize, Serialize};

use super::column::Values;
use super::pooled::Pooled;
use crate::record::{AcceptanceRecord, Provenance};

/// Which records a figure is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewName {
    /// What AIPerf would have counted.
    Aiperf,
    /// Every valid record.
    All,
}

/// What the records of one view, or those of `all` that are not of `aiperf`, add up to.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct View {
    /// Sums over the records.
    pub pooled: Pooled,
}

/// The per-record values, as AIPerf has them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RecordValues {
    pub(super) length: Option<f64>,
    /// Accepted / drafted, 0..1.
    pub(super) rate: Option<f64>,
    /// Steps, where they count.
    pub(super) steps: Option<u64>,
    pub(super) accepted: u64,
    pub(super) drafted: u64,
}

impl RecordValues {
    /// The sent mean and rate, unless they contradict the record's own counts: then those of the counts. A record of
    /// totals alone has a rate only.
    pub(super) fn of(record: &AcceptanceRecord) -> Self {
        let (length, rate) = match &record.recomputed {
            Some(recomputed) => (
                recomputed.mean_acceptance_length,
                recomputed.draft_acceptance_rate,
            ),
            None => (
                record.mean_acceptance_length.or(record.derived_length()),
                record.draft_acceptance_rate.or(record.derived_rate()),
            ),
        };
        let tells_steps = record.provenance != Provenance::Counts;
        Self {
            length: length.filter(|value| tells_steps && value.is_finite()),
            rate: rate.filter(|value| value.is_finite()),
            steps: record.num_spec_steps.filter(|_| tells_steps),
            accepted: record.num_accepted_draft_tokens,
            drafted: record.num_draft_tokens,
        }
    }

    /// 1 + accepted / steps; absent without steps.
    pub(super) fn derived_length(&self) -> Option<f64> {
        let steps = self.steps.filter(|&steps| steps > 0)?;
        Some(1.0 + self.accepted as f64 / steps as f64)
    }

    /// Accepted / drafted, 0..1; absent without drafts.
    pub(super) fn derived_rate(&self) -> Option<f64> {
        (self.drafted > 0).then(|| self.accepted as f64 / self.drafted as f64)
    }

    /// (accepted + steps) / (drafted + steps).
    pub(super) fn accepted_per_verified(&self) -> Option<f64> {
        let steps = self.steps? as f64;
        let verified = self.drafted as f64 + steps;
        (verified > 0.0).then(|| (self.accepted as f64 + steps) / verified)
    }

    /// In the order of [`super::RecordColumn`].
    pub(super) fn columns(&self) -> Values {
        [
            self.length,
            self.rate,
            self.accepted_per_verified(),
            self.steps.map(|steps| steps as f64),
            Some(self.accepted as f64),
            Some(self.drafted as f64),
        ]
    }
}
