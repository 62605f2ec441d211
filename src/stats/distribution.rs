//! A distribution of per-request values: exact while it is small, a sketch beyond, and it says which it is.

use super::moments::Moments;
use super::sketch::Sketch;

pub use super::sketch::RELATIVE_ERROR;

/// The percentiles that AIPerf reports.
pub const PERCENTILES: [u8; 9] = [1, 5, 10, 25, 50, 75, 90, 95, 99];

/// Values of one metric.
#[derive(Clone, Debug)]
pub struct Distribution(Form);

#[derive(Clone, Debug)]
enum Form {
    Exact(Vec<f64>),
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

impl Distribution {
    /// The distribution of these values; those that are not finite are left out.
    pub fn of(mut values: Vec<f64>) -> Self {
        values.retain(|value| value.is_finite());
        Self(Form::Exact(values))
    }

    pub(super) fn of_sketch(sketch: Sketch) -> Self {
        Self(Form::Sketch(sketch))
    }

    /// What AIPerf reports of it; absent without values.
    pub fn statistic(self) -> Option<Statistic> {
        let mut values = match self.0 {
            Form::Exact(values) => values,
            Form::Sketch(sketch) => {
                let any = sketch.moments.count > 0;
                return any
                    .then(|| statistic(&sketch.moments, |rank| sketch.value_at(rank), false));
            }
        };
        if values.is_empty() {
            return None;
        }
        values.sort_unstable_by(f64::total_cmp);
        // In sorted order, so that the order of arrival can't change a digit.
        let mut moments = Moments::default();
        for &value in &values {
            moments.push(value);
        }
        let at = |rank: u64| {
            usize::try_from(rank)
                .ok()
                .and_then(|rank| values.get(rank))
                .copied()
                .unwrap_or(moments.max)
        };
        Some(statistic(&moments, at, true))
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
