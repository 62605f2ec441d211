//! Evidence: what the figures that AIPerf lacks are made of, of the `aiperf` view. All of it is bounded and adds up.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::advice::Stretches;
use super::compare::PositionSpread;
use super::gain::Output;
use super::pooled::{countable_steps, grow};
use super::prepared::PreparedRecord;
use super::progress::Progress;
use super::samples::Samples;
use super::survival::Widths;

/// Different k that are counted; further ones are not.
const MOST_K: usize = 64;

/// What the figures of one group are made of beside its pooled counts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Evidence {
    /// Single exchanges.
    pub samples: Samples,
    /// Steps of known width.
    pub widths: Widths,
    /// Ordered steps.
    pub stretches: Stretches,
    /// Steps by how far the reply had come.
    pub progress: Progress,
    /// Completion tokens of the records.
    pub output: Output,
    /// How much requests differ in what they accept at each position.
    pub positions: PositionSpread,
    /// Records by k, where it is given.
    pub records_by_k: BTreeMap<u64, u64>,
    /// Records with more drafts than steps × k.
    pub tree_records: u64,
}

impl Evidence {
    /// Adds a record of the `aiperf` view.
    pub(super) fn add(&mut self, prepared: &PreparedRecord<'_>) {
        let record = prepared.record;
        self.widths.add(&prepared.widths);
        if let Some(ordered) = &prepared.ordered {
            self.stretches.add(ordered);
        }
        self.progress.add(&prepared.progress);
        self.output.add(record);
        self.positions.add(record);
        let Some(k) = record.num_spec_tokens else {
            return;
        };
        if self.records_by_k.len() < MOST_K || self.records_by_k.contains_key(&k) {
            grow(self.records_by_k.entry(k).or_default(), 1);
        }
        let is_tree = countable_steps(record).is_some_and(|steps| {
            u128::from(record.num_draft_tokens) > u128::from(steps) * u128::from(k)
        });
        if is_tree && !record.nominal_drafts {
            grow(&mut self.tree_records, 1);
        }
    }

    /// Adds what another one holds.
    pub(super) fn merge(&mut self, other: &Evidence) {
        self.samples.merge(&other.samples);
        self.widths.merge(&other.widths);
        self.stretches.merge(&other.stretches);
        self.progress.merge(&other.progress);
        self.output.merge(&other.output);
        self.positions.merge(&other.positions);
        for (&k, &records) in &other.records_by_k {
            grow(self.records_by_k.entry(k).or_default(), records);
        }
        grow(&mut self.tree_records, other.tree_records);
    }
}
