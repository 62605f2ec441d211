//! How many drafts the steps of a run carry: what decides whether two rates, or two shares by position, mean the same.

use std::collections::BTreeSet;

/// Mean drafts per step may differ by so much, relative to the smaller, before the widths count as different.
pub const WIDTH_TOLERANCE: f64 = 0.05;

/// The widths of a run's steps.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct DraftWidth {
    /// The k of its records, where they give one.
    pub(super) ks: BTreeSet<u64>,
    /// Drafts in all steps; 0 where engines tell only how many there could have been.
    pub(super) drafted: u64,
    /// All steps.
    pub(super) steps: u64,
}

impl DraftWidth {
    fn mean(&self) -> Option<f64> {
        (self.steps > 0 && self.drafted > 0).then(|| self.drafted as f64 / self.steps as f64)
    }

    /// Positions that every step drafted; 0 where that is not known.
    fn drafted_by_all(&self) -> u64 {
        match self.ks.first() {
            Some(&k) if self.ks.len() == 1 && self.drafted == self.steps.saturating_mul(k) => k,
            _ => 0,
        }
    }

    /// Whether a step may carry a draft for this position, as far as it is known.
    fn reaches(&self, position: u32) -> bool {
        self.ks.last().is_none_or(|&k| u64::from(position) < k)
    }

    fn list_of_ks(&self) -> String {
        let names: Vec<String> = self.ks.iter().map(u64::to_string).collect();
        names.join(", ")
    }
}

/// What the shares at a position come to: one that is 0 since nobody drafts so deep is unknown.
pub(super) fn shares_known(
    position: u32,
    shares: [Option<f64>; 2],
    widths: &[DraftWidth; 2],
) -> [Option<f64>; 2] {
    let known = |side: usize| shares[side].filter(|&it| it > 0.0 || widths[side].reaches(position));
    [known(0), known(1)]
}

/// How the widths of two runs differ, as the beginning of a sentence; absent where they do not.
pub(super) fn difference(base: &DraftWidth, other: &DraftWidth) -> Option<String> {
    if base.ks != other.ks && !base.ks.is_empty() && !other.ks.is_empty() {
        let [base, other] = [base.list_of_ks(), other.list_of_ks()];
        return Some(format!("k is {base} in the base and {other} here"));
    }
    let (base, other) = (base.mean()?, other.mean()?);
    ((base - other).abs() > WIDTH_TOLERANCE * base.min(other))
        .then(|| format!("steps carry {base:.2} drafts in the base and {other:.2} here"))
}

/// Positions whose shares mean the same on both sides although the widths differ.
pub(super) fn positions_alike(base: &DraftWidth, other: &DraftWidth) -> u64 {
    base.drafted_by_all().min(other.drafted_by_all())
}
