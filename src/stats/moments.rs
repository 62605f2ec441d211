//! Count, sum, mean, spread, minimum and maximum of values that are not kept, in a numerically sound way.
//!
//! The sum is Neumaier's, the spread Welford's, taken from the first value on, and two parts merge by Chan's formula: a
//! million latencies of nearly the same size keep the digits of their standard deviation.

use serde::{Deserialize, Serialize};

/// Running moments of a stream of values; all 0 while there is none.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Moments {
    pub(super) count: u64,
    pub(super) min: f64,
    pub(super) max: f64,
    sum: f64,
    /// What the additions to `sum` lost.
    sum_carry: f64,
    /// The first value: the mean is kept as a distance from it, which loses less.
    origin: f64,
    /// Mean − origin.
    mean: f64,
    /// Σ (value − mean)².
    squares: f64,
}

impl Moments {
    /// Moments of one value.
    pub(super) fn of(value: f64) -> Self {
        Self {
            count: 1,
            min: value,
            max: value,
            sum: value,
            sum_carry: 0.0,
            origin: value,
            mean: 0.0,
            squares: 0.0,
        }
    }

    pub(super) fn push(&mut self, value: f64) {
        self.merge(&Self::of(value));
    }

    pub(super) fn merge(&mut self, other: &Moments) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            *self = *other;
            return;
        }
        let (own, others) = (self.count as f64, other.count as f64);
        let together = own + others;
        let apart = (other.origin - self.origin) + (other.mean - self.mean);
        self.squares += other.squares + apart * apart * own * others / together;
        self.mean += apart * others / together;
        self.add_to_sum(other.sum);
        self.sum_carry += other.sum_carry;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.count = self.count.saturating_add(other.count);
    }

    fn add_to_sum(&mut self, value: f64) {
        let sum = self.sum + value;
        self.sum_carry += if self.sum.abs() >= value.abs() {
            (self.sum - sum) + value
        } else {
            (value - sum) + self.sum
        };
        self.sum = sum;
    }

    pub(super) fn sum(&self) -> f64 {
        self.sum + self.sum_carry
    }

    /// Population standard deviation (divided by n), as AIPerf has it.
    pub(super) fn deviation(&self) -> f64 {
        (self.squares / self.count as f64).max(0.0).sqrt()
    }
}
