//! How much requests differ in what they accept at each position: sums that give the spread of a share over requests
//! without keeping the requests.

use serde::{Deserialize, Serialize};

use super::width::{self, DraftWidth};
use super::{Difference, Measured, PositionDifference, Verdict};
use crate::record::{AcceptanceRecord, Provenance};
use crate::stats::interval::{Interval, LEVEL};
use crate::stats::pooled::{countable_steps, grow};

/// The quantile of the normal distribution that goes with [`LEVEL`].
const NORMAL: f64 = 1.959_963_984_540_054;

/// Positions that are looked at.
pub(super) const MOST_POSITIONS: usize = 64;

/// Sums over the records with a histogram. For a record of s steps, x of them accepted the draft at a position.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PositionSpread {
    /// Records.
    pub records: u64,
    /// Σ s.
    pub steps: u64,
    /// Σ s².
    pub steps_squared: u64,
    /// By position from 0.
    pub accepted: Vec<PositionSums>,
}

/// Sums of one position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PositionSums {
    /// Σ x.
    pub steps: u64,
    /// Σ x².
    pub squared: u64,
    /// Σ x·s.
    pub with_all: u64,
}

/// A share and the variance that chance between requests gives it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ShareWithVariance {
    pub(super) share: f64,
    pub(super) variance: f64,
}

impl PositionSpread {
    /// Adds a record.
    pub(in crate::stats) fn add(&mut self, record: &AcceptanceRecord) {
        let Some(steps) = countable_steps(record) else {
            return;
        };
        debug_assert!(record.provenance != Provenance::Counts);
        grow(&mut self.records, 1);
        grow(&mut self.steps, steps);
        grow(&mut self.steps_squared, steps.saturating_mul(steps));
        let deepest = record.acceptance_histogram.keys().next_back();
        let positions = deepest.map_or(0, |&deepest| (deepest as usize).min(MOST_POSITIONS));
        if self.accepted.len() < positions {
            self.accepted.resize(positions, PositionSums::default());
        }
        let mut deeper = record.acceptance_histogram.iter().rev().peekable();
        let mut past: u64 = 0;
        for (position, sums) in self.accepted[..positions].iter_mut().enumerate().rev() {
            let is_past = |accepted: u32| accepted as usize > position;
            while let Some((_, &steps)) = deeper.next_if(|&(&accepted, _)| is_past(accepted)) {
                past = past.saturating_add(steps);
            }
            grow(&mut sums.steps, past);
            grow(&mut sums.squared, past.saturating_mul(past));
            grow(&mut sums.with_all, past.saturating_mul(steps));
        }
    }

    /// Adds what another one holds.
    pub(in crate::stats) fn merge(&mut self, other: &PositionSpread) {
        grow(&mut self.records, other.records);
        grow(&mut self.steps, other.steps);
        grow(&mut self.steps_squared, other.steps_squared);
        if self.accepted.len() < other.accepted.len() {
            self.accepted
                .resize(other.accepted.len(), PositionSums::default());
        }
        for (own, others) in self.accepted.iter_mut().zip(&other.accepted) {
            grow(&mut own.steps, others.steps);
            grow(&mut own.squared, others.squared);
            grow(&mut own.with_all, others.with_all);
        }
    }

    /// The share of all steps that accepted the draft at a position, and the normal 95 % interval of it within 0 and 1.
    pub(in crate::stats) fn interval(&self, position: usize) -> Option<(f64, Interval)> {
        let ShareWithVariance { share, variance } = self.share(position)?;
        let half = NORMAL * variance.sqrt();
        let interval = Interval {
            low: (share - half).max(0.0),
            high: (share + half).min(1.0),
            level: LEVEL,
        };
        Some((share, interval))
    }

    /// Σx / Σs with the variance of a ratio of sums over requests: Σ(x − p·s)² / (Σs)², times n / (n − 1).
    pub(super) fn share(&self, position: usize) -> Option<ShareWithVariance> {
        if self.steps == 0 || self.records < 2 {
            return None;
        }
        let sums = self.accepted.get(position).copied().unwrap_or_default();
        let (all, n) = (self.steps as f64, self.records as f64);
        let share = sums.steps as f64 / all;
        let squares = sums.squared as f64 - 2.0 * share * sums.with_all as f64
            + share * share * self.steps_squared as f64;
        Some(ShareWithVariance {
            share,
            variance: squares.max(0.0) / (all * all) * n / (n - 1.0),
        })
    }
}

/// The differences by position of two runs whose requests have nothing to do with each other. `level_for` tells how sure
/// each of so many intervals has to be.
pub(super) fn unpaired(
    sides: [&PositionSpread; 2],
    widths: &[DraftWidth; 2],
    level_for: impl Fn(usize) -> f64,
) -> Vec<PositionDifference> {
    let [base, other] = sides;
    if base.steps == 0 || other.steps == 0 {
        return Vec::new();
    }
    let positions = base.accepted.len().max(other.accepted.len());
    let level = level_for(positions);
    (0..positions)
        .filter_map(|position| {
            let shares = [base.share(position)?, other.share(position)?];
            let measured = Measured {
                values: shares.map(|share| Some(share.share)),
                error: Some(
                    shares
                        .iter()
                        .map(|share| share.variance)
                        .sum::<f64>()
                        .sqrt(),
                ),
                requests: [base.records, other.records],
            };
            Some(of(position, measured, level, widths))
        })
        .collect()
}

/// The difference at one position.
pub(super) fn of(
    position: usize,
    measured: Measured,
    level: f64,
    widths: &[DraftWidth; 2],
) -> PositionDifference {
    let position = u32::try_from(position).unwrap_or(u32::MAX);
    let measured = Measured {
        values: width::shares_known(position, measured.values, widths),
        ..measured
    };
    let mut difference = Difference::of("survival", "ratio", measured, level);
    let is_alike = u64::from(position) < width::positions_alike(&widths[0], &widths[1]);
    let differs = || width::difference(&widths[0], &widths[1]).is_some();
    if !is_alike && difference.verdict != Verdict::Unknown && differs() {
        difference.forbid("not every step drafted so deep on both sides");
    }
    PositionDifference {
        position,
        difference,
    }
}
