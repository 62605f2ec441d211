//! A distribution without its values: counts in bins of equal relative width (DDSketch), plus exact moments.
//!
//! The mapping between values and bins is that of the `sketches-ddsketch` crate. The bins are our own sparse ones, since
//! the snapshot has to show them and a foreign snapshot must not be able to break a dense array's invariants.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use sketches_ddsketch::Config;

use super::bins::Bins;
use super::moments::Moments;

/// Largest relative error of a percentile from a sketch.
pub const RELATIVE_ERROR: f64 = 0.005;

/// Values up to this one count as 0 (rates of 0 are common and exact).
const SMALLEST: f64 = 1e-9;
/// Values above this one share a bin; with [`SMALLEST`] it bounds the bins to about 4,800.
const LARGEST: f64 = 1e12;

// The crate's own limit on bins plays no part: only its mapping is used.
static MAPPING: LazyLock<Config> = LazyLock::new(|| Config::new(RELATIVE_ERROR, 0, SMALLEST));

/// Binned counts and moments.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Sketch {
    pub(super) moments: Moments,
    /// Values of at most [`SMALLEST`].
    zero: u64,
    /// Other values by the number of their bin.
    bins: Bins,
}

impl Sketch {
    pub(super) fn push(&mut self, value: f64) {
        self.moments.push(value);
        if value > SMALLEST {
            self.bins.add(MAPPING.key(value.min(LARGEST)), 1);
        } else {
            self.zero += 1;
        }
    }

    pub(super) fn merge(&mut self, other: &Sketch) {
        self.moments.merge(&other.moments);
        self.zero = self.zero.saturating_add(other.zero);
        for (bin, count) in other.bins.iter() {
            self.bins.add(bin, count);
        }
    }

    /// The value at a rank counted from 0, to within [`RELATIVE_ERROR`].
    pub(super) fn value_at(&self, rank: u64) -> f64 {
        let Moments {
            count, min, max, ..
        } = self.moments;
        if rank == 0 {
            return min;
        }
        if rank >= count.saturating_sub(1) {
            return max;
        }
        let mut below = self.zero;
        if rank < below {
            return 0.0_f64.max(min).min(max);
        }
        for (bin, count) in self.bins.iter() {
            below = below.saturating_add(count);
            if rank < below {
                return MAPPING.value(bin).max(min).min(max);
            }
        }
        max
    }
}
