//! One view of the records: pooled counts and the distributions of the per-request values.
//!
//! There are two, always both. `aiperf` takes what AIPerf would take: complete exchanges with content, one sequence
//! and exactly one record. `all` takes every valid record, one per sequence, whatever the outcome.

use serde::{Deserialize, Serialize};

use super::distribution::Distribution;
use super::pooled::{Pooled, grow};
use crate::record::{AcceptanceRecord, Provenance};

/// What the records of one view add up to.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct View {
    /// Sums over the records.
    pub pooled: Pooled,
    /// Tokens per verify step, the bonus token included.
    pub acceptance_length: Distribution,
    /// Accepted / drafted, 0..1.
    pub draft_acceptance_rate: Distribution,
    /// (accepted + steps) / (drafted + steps).
    pub accepted_per_verified: Distribution,
    /// Verify steps.
    pub steps: Distribution,
    /// Accepted drafts.
    pub accepted_draft_tokens: Distribution,
    /// Drafts put before the verifier.
    pub draft_tokens: Distribution,
}

/// The per-record values, as AIPerf has them.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordValues {
    pub(super) length: Option<f64>,
    pub(super) rate: Option<f64>,
    pub(super) accepted_per_verified: Option<f64>,
    pub(super) steps: Option<f64>,
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
        if record.provenance == Provenance::Counts {
            return Self {
                length: None,
                rate,
                accepted_per_verified: None,
                steps: None,
            };
        }
        Self {
            length,
            rate,
            accepted_per_verified: record.accepted_per_verified(),
            steps: record.num_spec_steps.map(|steps| steps as f64),
        }
    }
}

impl View {
    /// Adds a valid record.
    pub(super) fn add(&mut self, record: &AcceptanceRecord) {
        if record.is_zero_step() {
            grow(&mut self.pooled.zero_step, 1);
            return;
        }
        self.pooled.add(record);
        let values = RecordValues::of(record);
        self.acceptance_length.push_known(values.length);
        self.draft_acceptance_rate.push_known(values.rate);
        self.accepted_per_verified
            .push_known(values.accepted_per_verified);
        self.steps.push_known(values.steps);
        self.accepted_draft_tokens
            .push(record.num_accepted_draft_tokens as f64);
        self.draft_tokens.push(record.num_draft_tokens as f64);
    }

    /// Adds what another view of the same kind holds.
    pub fn merge(&mut self, other: &View) {
        self.pooled.merge(&other.pooled);
        for (own, others) in self
            .distributions_mut()
            .into_iter()
            .zip(other.distributions())
        {
            own.merge(others);
        }
    }

    /// The distributions in the order of their fields.
    pub fn distributions(&self) -> [&Distribution; 6] {
        [
            &self.acceptance_length,
            &self.draft_acceptance_rate,
            &self.accepted_per_verified,
            &self.steps,
            &self.accepted_draft_tokens,
            &self.draft_tokens,
        ]
    }

    /// The distributions in the order of their fields.
    pub(super) fn distributions_mut(&mut self) -> [&mut Distribution; 6] {
        [
            &mut self.acceptance_length,
            &mut self.draft_acceptance_rate,
            &mut self.accepted_per_verified,
            &mut self.steps,
            &mut self.accepted_draft_tokens,
            &mut self.draft_tokens,
        ]
    }
}
