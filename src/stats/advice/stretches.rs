//! Ordered steps, kept as counts: how many steps in a row accepted all they carried, and how the next one ended.
//!
//! After a step that rejected a draft the next step begins at a place that does not depend on the depth, so an ordered
//! reply falls apart into independent stretches: some full steps and one that was not full. Their counts are all that
//! the re-cut at another depth needs, they add up exactly, and they take little room.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::record::{AcceptanceHistogram, AcceptanceRecord};
use crate::stats::pooled::grow;

/// Deepest drafts that are kept in order.
pub const DEEPEST: u64 = 32;

/// Full steps in a row that one stretch holds; a longer row is cut, which moves nothing that can be seen.
const LONGEST: u32 = 255;

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

/// So many full steps in a row, and how the next one ended, as often as that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::stats) struct Stretch {
    /// Steps that accepted k.
    pub(in crate::stats) full: u32,
    /// What the next one accepted; k stands for the end of the reply instead.
    pub(in crate::stats) ending: u32,
    /// How often.
    pub(in crate::stats) count: u64,
}

/// The ordered steps of one record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::stats) struct Ordered {
    pub(in crate::stats) k: u32,
    pub(in crate::stats) steps: u64,
    /// Steps that carried fewer than k drafts.
    pub(in crate::stats) narrow: u64,
    /// The different stretches, in order.
    pub(in crate::stats) stretches: Vec<Stretch>,
}

impl Ordered {
    /// The ordered steps of a record with known steps; absent where it has none that could be walked again. `equal`: the
    /// width of all its steps.
    pub(in crate::stats) fn of(record: &AcceptanceRecord, equal: Option<u64>) -> Option<Self> {
        let accepted = record.per_step_accepted.as_deref()?;
        let drafted = record.per_step_drafted.as_deref();
        let widest = drafted.map(|drafted| {
            let widest = drafted.iter().copied().max().unwrap_or(0);
            record.num_spec_tokens.unwrap_or(widest)
        });
        let k = widest.or(equal)?;
        if k == 0 || k > DEEPEST || accepted.is_empty() {
            return None;
        }
        let narrow = drafted.map_or(0, |drafted| {
            drafted.iter().filter(|&&width| width < k).count()
        });
        Some(Self {
            // At most 32.
            k: k as u32,
            steps: accepted.len() as u64,
            narrow: narrow as u64,
            stretches: stretches(k as u32, accepted),
        })
    }
}

fn stretches(k: u32, accepted: &[u64]) -> Vec<Stretch> {
    let mut stretches = Vec::new();
    let mut full = 0;
    let mut put = |full: u32, ending: u32| {
        stretches.push(Stretch {
            full,
            ending,
            count: 1,
        });
    };
    for &accepted in accepted {
        if accepted >= u64::from(k) {
            full += 1;
            if full == LONGEST {
                put(full, k);
                full = 0;
            }
        } else {
            // A narrow step that accepted all it carried ends the stretch as if its next draft had been rejected.
            put(full, accepted as u32);
            full = 0;
        }
    }
    if full > 0 {
        put(full, k);
    }
    stretches.sort_unstable();
    stretches.dedup_by(|next, kept| {
        let is_alike = (next.full, next.ending) == (kept.full, kept.ending);
        if is_alike {
            kept.count += 1;
        }
        is_alike
    });
    stretches.shrink_to_fit();
    stretches
}

impl Stretches {
    /// Adds the ordered steps of a record.
    pub(in crate::stats) fn add(&mut self, ordered: &Ordered) {
        if self.by_k.len() >= MOST_WIDTHS && !self.by_k.contains_key(&ordered.k) {
            return;
        }
        let own = self.by_k.entry(ordered.k).or_default();
        grow(&mut own.records, 1);
        grow(&mut own.steps, ordered.steps);
        grow(&mut own.narrow, ordered.narrow);
        for stretch in &ordered.stretches {
            own.put(stretch.full, stretch.ending, stretch.count);
        }
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
    /// The stretches.
    pub(super) fn iter(&self) -> impl Iterator<Item = Stretch> {
        self.counts.iter().flat_map(|(&full, endings)| {
            endings.iter().map(move |(&ending, &count)| Stretch {
                full,
                ending,
                count,
            })
        })
    }

    /// Full steps in the longest row of them.
    pub(super) fn longest(&self) -> u32 {
        let longest = self.counts.keys().next_back();
        longest.map_or(0, |&full| full.min(LONGEST))
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
