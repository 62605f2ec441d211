//! Acceptance along the reply: whether drafts get better or worse the further a reply has come.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::pooled::grow;
use crate::record::AcceptanceRecord;

/// Steps by how far the reply had come when they began: bin b is from token 2^b on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// The bins that have steps.
    pub bins: BTreeMap<u32, ProgressBin>,
}

/// Steps of one bin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgressBin {
    /// Records that have a step in it.
    pub records: u64,
    /// Their steps in it.
    pub steps: u64,
    /// Drafts that these steps accepted.
    pub accepted: u64,
}

/// One stretch of the replies.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplyPart {
    /// First token of the stretch, counted from 1.
    pub from_token: u64,
    /// Last token of the stretch.
    pub to_token: u64,
    /// Accepted drafts per step that began there.
    pub accepted_per_step: f64,
    /// Such steps.
    pub steps: u64,
    /// Requests that they are of.
    pub n: u64,
}

/// The steps of one record in one bin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PartOfRecord {
    bin: u32,
    steps: u64,
    accepted: u64,
}

impl PartOfRecord {
    /// The steps of a record with known steps by bin; none without their order.
    pub(super) fn all_of(record: &AcceptanceRecord) -> Vec<Self> {
        let mut parts: Vec<Self> = Vec::new();
        // The prompt's own pass gave the first token.
        let mut tokens: u64 = 1;
        for &accepted in record.per_step_accepted.iter().flatten() {
            let bin = tokens.ilog2();
            match parts.last_mut().filter(|last| last.bin == bin) {
                Some(last) => {
                    grow(&mut last.steps, 1);
                    grow(&mut last.accepted, accepted);
                }
                None => parts.push(Self {
                    bin,
                    steps: 1,
                    accepted,
                }),
            }
            tokens = tokens.saturating_add(accepted).saturating_add(1);
        }
        parts
    }
}

impl Progress {
    /// Adds the steps of a record.
    pub(super) fn add(&mut self, parts: &[PartOfRecord]) {
        for part in parts {
            let sums = self.bins.entry(part.bin).or_default();
            grow(&mut sums.records, 1);
            grow(&mut sums.steps, part.steps);
            grow(&mut sums.accepted, part.accepted);
        }
    }

    /// Adds what another one holds.
    pub(super) fn merge(&mut self, other: &Progress) {
        for (&bin, others) in &other.bins {
            let own = self.bins.entry(bin).or_default();
            grow(&mut own.records, others.records);
            grow(&mut own.steps, others.steps);
            grow(&mut own.accepted, others.accepted);
        }
    }

    /// The stretches from the start of the replies on.
    pub fn parts(&self) -> Vec<ReplyPart> {
        self.bins
            .iter()
            .filter(|(bin, sums)| **bin < 63 && sums.steps > 0)
            .map(|(&bin, sums)| ReplyPart {
                from_token: 1 << bin,
                to_token: (1 << (bin + 1)) - 1,
                accepted_per_step: sums.accepted as f64 / sums.steps as f64,
                steps: sums.steps,
                n: sums.records,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests;
