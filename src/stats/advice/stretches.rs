//! Ordered steps, kept as counts: how many steps in a row accepted all they carried, and how the next one ended.
//!
//! After a step that rejected a draft the next step begins at a place that does not depend on the depth, so an ordered
//! reply falls apart into independent stretches: some full steps and one that was not full. Their counts are all that
//! the re-cut at another depth needs, they add up exactly, and they take little room.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::record::{AcceptanceHistogram, AcceptanceRecord};
use crate::stats::pooled::{countable_steps, grow};
use crate::stats::survival::equal_width;

/// Deepest drafts that are kept in order.
pub const DEEPEST: u64 = 32;

/// Full steps in a row that one stretch holds; a longer row is cut, which moves nothing that can be seen.
pub(super) const LONGEST: u32 = 255;

/// Different k that are told apart; more at once is no setting to advise about.
const MOST_WIDTHS: usize = 16;

/// Ordered steps by the k of their record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stretches {
    /// The stretches of each k.
    pub by_k: BTreeMap<u32, StretchesOfWidth>,
}

/// The stretches of records of one k.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StretchesOfWidth {
    /// Records that they come from.
    pub records: u64,
    /// Steps that they come from.
    pub steps: u64,
    /// Steps that carried fewer than k drafts.
    pub narrow: u64,
    /// `counts[r][j]`: r full steps, then one that accepted j < k; j = k stands for the end of the reply instead.
    pub counts: BTreeMap<u32, BTreeMap<u32, u64>>,
}

impl Stretches {
    /// Adds the ordered steps of a record; a record without them adds nothing.
    pub(in crate::stats) fn add(&mut self, record: &AcceptanceRecord) {
        let (Some(accepted), Some(_)) = (&record.per_step_accepted, countable_steps(record)) else {
            return;
        };
        let widest = record.per_step_drafted.as_deref().map(|drafted| {
            let widest = drafted.iter().copied().max().unwrap_or(0);
            record.num_spec_tokens.unwrap_or(widest)
        });
        let Some(k) = widest.or_else(|| equal_width(record)) else {
            return;
        };
        if k == 0 || k > DEEPEST || accepted.is_empty() {
            return;
        }
        // At most 32.
        let short = k as u32;
        if self.by_k.len() >= MOST_WIDTHS && !self.by_k.contains_key(&short) {
            return;
        }
        let own = self.by_k.entry(short).or_default();
        own.add(short, accepted, record.per_step_drafted.as_deref());
    }

    /// Adds what another one holds.
    pub(in crate::stats) fn merge(&mut self, other: &Stretches) {
        for (&k, others) in &other.by_k {
            let own = self.by_k.entry(k).or_default();
            grow(&mut own.records, others.records);
            grow(&mut own.steps, others.steps);
            grow(&mut own.narrow, others.narrow);
            for (&full, endings) in &others.counts {
                for (&ending, &count) in endings {
                    own.put(full, ending, count);
                }
            }
        }
    }
}

impl StretchesOfWidth {
    fn add(&mut self, k: u32, accepted: &[u64], drafted: Option<&[u64]>) {
        let mut full = 0;
        grow(&mut self.records, 1);
        for &accepted in accepted {
            grow(&mut self.steps, 1);
            if accepted >= u64::from(k) {
                full += 1;
                if full == LONGEST {
                    self.put(full, k, 1);
                    full = 0;
                }
            } else {
                // A narrow step that accepted all it carried ends the stretch as if its next draft had been rejected.
                self.put(full, accepted as u32, 1);
                full = 0;
            }
        }
        if full > 0 {
            self.put(full, k, 1);
        }
        let narrow = drafted.map_or(0, |drafted| {
            drafted
                .iter()
                .filter(|&&width| width < u64::from(k))
                .count()
        });
        grow(&mut self.narrow, narrow as u64);
    }

    /// The same steps without their order.
    pub(super) fn histogram(&self, k: u32) -> AcceptanceHistogram {
        let mut histogram = AcceptanceHistogram::new();
        for (&full, endings) in &self.counts {
            for (&ending, &count) in endings {
                let full_steps = count.saturating_mul(u64::from(full));
                grow(histogram.entry(k).or_default(), full_steps);
                if ending < k {
                    grow(histogram.entry(ending).or_default(), count);
                }
            }
        }
        histogram.retain(|_, steps| *steps > 0);
        histogram
    }

    fn put(&mut self, full: u32, ending: u32, count: u64) {
        let ending = self.counts.entry(full).or_default().entry(ending);
        grow(ending.or_default(), count);
    }
}
