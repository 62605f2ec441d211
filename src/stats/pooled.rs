//! Pooled counts: sums over records, exact for ever.

use std::ops::RangeBounds;

use serde::{Deserialize, Serialize};

use crate::record::{AcceptanceHistogram, AcceptanceRecord, Provenance};

/// Sums over the records of one view. Sums stop at the largest integer rather than wrap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pooled {
    /// Records with drafts put before the verifier; zero-step ones are not among them.
    pub records: u64,
    /// Those of them that say how many verify steps there were.
    pub records_with_steps: u64,
    /// Valid payloads for which speculation never ran.
    pub zero_step: u64,
    /// Σ verify steps.
    pub steps: u64,
    /// Σ accepted drafts.
    pub accepted: u64,
    /// Σ drafts put before the verifier.
    pub drafted: u64,
    /// Σ accepted drafts of the records with steps: what a length may be made of.
    pub accepted_in_steps: u64,
    /// Steps by number of accepted drafts.
    pub histogram: AcceptanceHistogram,
}

impl Pooled {
    /// Adds a record that is not zero-step.
    pub fn add(&mut self, record: &AcceptanceRecord) {
        grow(&mut self.records, 1);
        grow(&mut self.accepted, record.num_accepted_draft_tokens);
        grow(&mut self.drafted, record.num_draft_tokens);
        if let Some(steps) = countable_steps(record) {
            grow(&mut self.records_with_steps, 1);
            grow(&mut self.steps, steps);
            grow(
                &mut self.accepted_in_steps,
                record.num_accepted_draft_tokens,
            );
            self.add_histogram(&record.acceptance_histogram);
        }
    }

    /// Adds the sums of other records.
    pub fn merge(&mut self, other: &Pooled) {
        grow(&mut self.records, other.records);
        grow(&mut self.records_with_steps, other.records_with_steps);
        grow(&mut self.zero_step, other.zero_step);
        grow(&mut self.steps, other.steps);
        grow(&mut self.accepted, other.accepted);
        grow(&mut self.drafted, other.drafted);
        grow(&mut self.accepted_in_steps, other.accepted_in_steps);
        self.add_histogram(&other.histogram);
    }

    fn add_histogram(&mut self, histogram: &AcceptanceHistogram) {
        for (&accepted, &steps) in histogram {
            if steps > 0 {
                grow(self.histogram.entry(accepted).or_default(), steps);
            }
        }
    }

    /// 1 + Σ accepted / Σ steps; absent without steps.
    pub fn length(&self) -> Option<f64> {
        (self.steps > 0).then(|| 1.0 + self.accepted_in_steps as f64 / self.steps as f64)
    }

    /// Σ accepted / Σ drafted, 0..1; absent without drafts.
    pub fn rate(&self) -> Option<f64> {
        (self.drafted > 0).then(|| self.accepted as f64 / self.drafted as f64)
    }
}

/// Steps whose number of accepted drafts lies in the range.
pub fn steps_in(histogram: &AcceptanceHistogram, accepted: impl RangeBounds<u32>) -> u64 {
    histogram
        .range(accepted)
        .fold(0, |sum, (_, &steps)| sum.saturating_add(steps))
}

/// The steps of a record that tells how many accepted how much. Totals alone say nothing about steps: such a record
/// counts in the rate only.
pub(super) fn countable_steps(record: &AcceptanceRecord) -> Option<u64> {
    record
        .num_spec_steps
        .filter(|_| record.provenance != Provenance::Counts)
}

/// Adds to a sum that stops at the largest integer.
pub(super) fn grow(sum: &mut u64, by: u64) {
    *sum = sum.saturating_add(by);
}
