//! Steps by how many drafts they carried and how many of these they accepted, as far as that is known.
//!
//! It is known of a record with both ordered arrays, and of one whose drafts are exactly steps × k: then every step
//! carried k.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::record::{AcceptanceHistogram, AcceptanceRecord};
use crate::stats::pooled::grow;

/// Steps that carried more drafts than this count as of unknown width: their table stays small.
const WIDEST: u64 = 128;

/// Steps by drafts carried, then by drafts accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Widths {
    /// `steps[w][j]` steps carried w drafts and accepted j of them.
    pub steps: BTreeMap<u32, AcceptanceHistogram>,
}

/// Steps of one width that accepted equally much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::stats) struct StepsOfWidth {
    pub(in crate::stats) drafted: u32,
    pub(in crate::stats) accepted: u32,
    pub(in crate::stats) steps: u64,
}

/// The steps of a record with known steps, as far as their widths are known. `equal`: the width of all of them.
pub(in crate::stats) fn steps_by_width(
    record: &AcceptanceRecord,
    equal: Option<u64>,
) -> Vec<StepsOfWidth> {
    let of = |drafted: u64, accepted: u64, steps: u64| {
        // Both are at most 128 then.
        (drafted <= WIDEST && accepted <= drafted && steps > 0).then_some(StepsOfWidth {
            drafted: drafted as u32,
            accepted: accepted as u32,
            steps,
        })
    };
    if let (Some(accepted), Some(drafted)) = (&record.per_step_accepted, &record.per_step_drafted) {
        let steps = accepted.iter().zip(drafted);
        let mut steps: Vec<StepsOfWidth> = steps
            .filter_map(|(&accepted, &drafted)| of(drafted, accepted, 1))
            .collect();
        steps.sort_unstable();
        steps.dedup_by(|next, kept| {
            let is_alike = (next.drafted, next.accepted) == (kept.drafted, kept.accepted);
            if is_alike {
                kept.steps += 1;
            }
            is_alike
        });
        steps.shrink_to_fit();
        return steps;
    }
    let Some(width) = equal else {
        return Vec::new();
    };
    let histogram = record.acceptance_histogram.iter();
    histogram
        .filter_map(|(&accepted, &steps)| of(width, u64::from(accepted), steps))
        .collect()
}

impl Widths {
    /// Adds steps.
    pub(in crate::stats) fn add(&mut self, steps: &[StepsOfWidth]) {
        for alike in steps.chunk_by(|left, right| left.drafted == right.drafted) {
            let own = self.steps.entry(alike[0].drafted).or_default();
            for steps in alike {
                grow(own.entry(steps.accepted).or_default(), steps.steps);
            }
        }
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
