//! A distribution of per-request values: exact while it is small, a sketch beyond, and it says which it is.

use serde::{Deserialize, Serialize};

use super::moments::Moments;
use super::sketch::Sketch;
use super::values::Values;

pub use super::sketch::RELATIVE_ERROR;

/// Values of one distribution that are kept exactly; with the next one it becomes a sketch.
pub const MOST_EXACT_VALUES: usize = 100_000;

/// The percentiles that AIPerf reports.
pub const PERCENTILES: [u8; 9] = [1, 5, 10, 25, 50, 75, 90, 95, 99];

/// Values of one metric. Values that are not finite are left out.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Distribution(Kept);

// Tagged from outside (`{"exact":[…]}`, `{"sketch":{…}}`): serde can't read maps with number keys under its other tags.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kept {
    Exact(Values),
    Sketch(Sketch),
}

/// What AIPerf reports of a distribution.
#[derive(Clone, Debug, PartialEq)]
pub struct Statistic {
    /// Mean.
    pub avg: f64,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// Population standard deviation.
    pub std: f64,
    /// Values at [`PERCENTILES`], by linear interpolation on rank q/100·(n − 1).
    pub percentiles: [f64; PERCENTILES.len()],
    /// Sum of the values.
    pub sum: f64,
    /// Number of values.
    pub count: u64,
    /// Whether the percentiles are exact; all else always is.
    pub exact: bool,
}

impl Default for Distribution {
    fn default() -> Self {
        Self(Kept::Exact(Values::default()))
    }
}

impl Distribution {
    /// Adds a value.
    pub fn push(&mut self, value: f64) {
        if !value.is_finite() {
            return;
        }
        if self.exact_values() >= MOST_EXACT_VALUES {
            self.condense();
        }
        match &mut self.0 {
            Kept::Exact(values) => values.push(value),
            Kept::Sketch(sketch) => sketch.push(value),
        }
    }

    /// Adds a value that may be unknown.
    pub fn push_known(&mut self, value: Option<f64>) {
        if let Some(value) = value {
            self.push(value);
        }
    }

    /// Adds all values of another distribution; the result is exact if both are.
    pub fn merge(&mut self, other: &Distribution) {
        if let (Kept::Exact(_), Kept::Sketch(_)) = (&self.0, &other.0) {
            self.condense();
        }
        match (&mut self.0, &other.0) {
            (Kept::Exact(own), Kept::Exact(others)) => own.extend(others),
            (Kept::Sketch(own), Kept::Sketch(others)) => own.merge(others),
            (Kept::Sketch(own), Kept::Exact(others)) => {
                others.iter().for_each(|value| own.push(value));
            }
            // Only where there was nothing to condense.
            (Kept::Exact(_), Kept::Sketch(others)) => self.0 = Kept::Sketch(others.clone()),
        }
    }

    /// Gives up the values for a sketch of them.
    pub fn condense(&mut self) {
        if let Kept::Exact(values) = &self.0
            && let Some(sketch) = Sketch::of(values.iter())
        {
            self.0 = Kept::Sketch(sketch);
        }
    }

    /// How many values are kept exactly.
    pub fn exact_values(&self) -> usize {
        match &self.0 {
            Kept::Exact(values) => values.len(),
            Kept::Sketch(_) => 0,
        }
    }

    /// What AIPerf reports of it; absent without values.
    pub fn statistic(&self) -> Option<Statistic> {
        match &self.0 {
            Kept::Exact(values) => {
                let sorted = values.sorted();
                // In sorted order, so that the order of arrival can't change a digit.
                let mut moments = Moments::of(*sorted.first()?);
                for &value in &sorted[1..] {
                    moments.push(value);
                }
                let at = |rank: u64| {
                    usize::try_from(rank)
                        .ok()
                        .and_then(|rank| sorted.get(rank))
                        .copied()
                        .unwrap_or(moments.max)
                };
                Some(statistic(&moments, at, true))
            }
            Kept::Sketch(sketch) => Some(statistic(
                &sketch.moments,
                |rank| sketch.value_at(rank),
                false,
            )),
        }
    }
}

fn statistic(moments: &Moments, value_at: impl Fn(u64) -> f64, exact: bool) -> Statistic {
    let percentile = |percent: u8| {
        let rank = f64::from(percent) / 100.0 * moments.count.saturating_sub(1) as f64;
        let (below, part) = (rank.floor(), rank.fract());
        let low = value_at(below as u64);
        if part == 0.0 {
            return low;
        }
        low + (value_at((below as u64).saturating_add(1)) - low) * part
    };
    Statistic {
        avg: moments.sum() / moments.count as f64,
        min: moments.min,
        max: moments.max,
        std: moments.deviation(),
        percentiles: PERCENTILES.map(percentile),
        sum: moments.sum(),
        count: moments.count,
        exact,
    }
}

#[cfg(test)]
mod tests;
