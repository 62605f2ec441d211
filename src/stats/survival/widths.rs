//! Steps by how many drafts they carried and how many of these they accepted, as far as that is known.
//!
//! It is known of a record with both ordered arrays, and of one whose drafts are exactly steps × k: then every step
//! carried k.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::record::{AcceptanceHistogram, AcceptanceRecord};
use crate::stats::pooled::{countable_steps, grow};

/// Steps that carried more drafts than this count as of unknown width: their table stays small.
const WIDEST: u64 = 128;

/// Steps by drafts carried, then by drafts accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Widths {
    /// `steps[w][j]` steps carried w drafts and accepted j of them.
    pub steps: BTreeMap<u32, AcceptanceHistogram>,
}

impl Widths {
    /// Adds the steps of a record, if their widths are known.
    pub(in crate::stats) fn add(&mut self, record: &AcceptanceRecord) {
        if countable_steps(record).is_none() {
            return;
        }
        if let (Some(accepted), Some(drafted)) =
            (&record.per_step_accepted, &record.per_step_drafted)
        {
            for (&accepted, &drafted) in accepted.iter().zip(drafted) {
                self.put(drafted, accepted, 1);
            }
        } else if let Some(k) = equal_width(record) {
            for (&accepted, &steps) in &record.acceptance_histogram {
                self.put(k, u64::from(accepted), steps);
            }
        }
    }

    fn put(&mut self, drafted: u64, accepted: u64, steps: u64) {
        if drafted > WIDEST || accepted > drafted || steps == 0 {
            return;
        }
        // Both are at most 128.
        let (drafted, accepted) = (drafted as u32, accepted as u32);
        let bucket = self.steps.entry(drafted).or_default().entry(accepted);
        grow(bucket.or_default(), steps);
    }

    /// Adds what another table holds.
    pub(in crate::stats) fn merge(&mut self, other: &Widths) {
        for (&drafted, histogram) in &other.steps {
            let own = self.steps.entry(drafted).or_default();
            for (&accepted, &steps) in histogram {
                grow(own.entry(accepted).or_default(), steps);
            }
        }
    }

    /// Steps of known width.
    pub fn known(&self) -> u64 {
        self.steps
            .values()
            .flat_map(BTreeMap::values)
            .fold(0, |sum, &steps| sum.saturating_add(steps))
    }

    /// The widest step.
    pub fn widest(&self) -> u32 {
        self.steps.keys().next_back().copied().unwrap_or(0)
    }
}

/// The width of every step of a record, where it can be told without the ordered arrays: no step carries more than k,
/// so steps × k drafts leave none that carried fewer.
pub(in crate::stats) fn equal_width(record: &AcceptanceRecord) -> Option<u64> {
    let (k, steps) = (record.num_spec_tokens?, record.num_spec_steps?);
    let whole = u128::from(steps) * u128::from(k);
    (!record.nominal_drafts && u128::from(record.num_draft_tokens) == whole).then_some(k)
}
