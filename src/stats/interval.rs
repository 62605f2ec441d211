//! Confidence intervals by bootstrap over requests: the steps of one request are alike, so requests are drawn, not
//! steps.

use serde::{Deserialize, Serialize};

use super::pooled::Pooled;

pub use super::samples::{MOST_SAMPLES, Sample, Samples};

/// The share of repetitions in which an interval holds the true value.
pub const LEVEL: f64 = 0.95;

/// Fewer requests than this and a figure is marked.
pub const FEW_REQUESTS: u64 = 30;

/// How often the requests are drawn anew.
pub const REPLICATES: usize = 1_000;

/// Requests that are drawn from: with more, the spread is that of so many and narrowed by √(drawn from / all).
pub const MOST_DRAWN_FROM: usize = 1_000;

/// The seed, so that the same requests give the same interval.
pub const SEED: u64 = 1;

/// Where the true value of a figure lies, as far as chance between requests decides it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower end, in the figure's unit.
    pub low: f64,
    /// Upper end, in the figure's unit.
    pub high: f64,
    /// [`LEVEL`], or what several intervals need to hold together at it.
    pub level: f64,
}

impl Interval {
    /// The interval between the percentiles that leave (1 − level) / 2 on either side, by linear interpolation; absent
    /// without values.
    pub(super) fn of_draws(draws: &mut [f64], level: f64) -> Option<Self> {
        draws.sort_unstable_by(f64::total_cmp);
        let last = draws.len().checked_sub(1)?;
        let at = |share: f64| {
            let rank = share * last as f64;
            let below = rank.floor() as usize;
            let (low, high) = (draws[below.min(last)], draws[(below + 1).min(last)]);
            low + (high - low) * rank.fract()
        };
        let tail = (1.0 - level) / 2.0;
        Some(Self {
            low: at(tail),
            high: at(1.0 - tail),
            level,
        })
    }

    /// The same in another unit.
    #[must_use]
    pub fn scaled(self, scale: f64) -> Self {
        Self {
            low: self.low * scale,
            high: self.high * scale,
            ..self
        }
    }

    /// Whether all of it lies on one side of a value.
    pub fn excludes(&self, value: f64) -> bool {
        self.low > value || self.high < value
    }
}

/// Sums over requests that a length and a rate are made of.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    steps: f64,
    accepted_in_steps: f64,
    accepted: f64,
    drafted: f64,
}

impl Sums {
    pub(super) fn of(samples: impl IntoIterator<Item = Sample>) -> Self {
        let mut sums = Self::default();
        for sample in samples {
            sums.add(&sample);
        }
        sums
    }

    pub(super) fn add(&mut self, sample: &Sample) {
        let accepted = f64::from(sample.accepted);
        if sample.steps > 0 {
            self.steps += f64::from(sample.steps);
            self.accepted_in_steps += accepted;
        }
        self.accepted += accepted;
        self.drafted += f64::from(sample.drafted);
    }

    /// Sums over as many requests as there are, each drawn from all of them.
    pub(super) fn drawn(samples: &[Sample], random: &mut fastrand::Rng) -> Self {
        let mut sums = Self::default();
        for _ in 0..samples.len() {
            sums.add(&samples[random.usize(..samples.len())]);
        }
        sums
    }

    pub(super) fn length(&self) -> Option<f64> {
        (self.steps > 0.0).then(|| 1.0 + self.accepted_in_steps / self.steps)
    }

    pub(super) fn rate(&self) -> Option<f64> {
        (self.drafted > 0.0).then(|| self.accepted / self.drafted)
    }
}

/// Moves what a draw gave from a sample of the requests to all of them: around the exact value, and as much narrower
/// as all of them are more.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lens {
    of_sample: f64,
    exact: f64,
    narrowed: f64,
}

impl Lens {
    /// `sampled` of `all` requests were drawn from; together they have `of_sample`, all have `exact`.
    pub(super) fn new(of_sample: f64, exact: f64, sampled: usize, all: u64) -> Self {
        Self {
            of_sample,
            exact,
            narrowed: (sampled as f64 / all.max(1) as f64).sqrt().min(1.0),
        }
    }

    pub(super) fn see(&self, drawn: f64) -> f64 {
        self.exact + (drawn - self.of_sample) * self.narrowed
    }
}

/// Intervals of the two run-level figures.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RunIntervals {
    /// Of 1 + Σ accepted / Σ steps; absent with fewer than two requests that tell their steps.
    pub length: Option<Interval>,
    /// Of Σ accepted / Σ drafted, 0..1; absent with fewer than two requests.
    pub rate: Option<Interval>,
}

/// Bootstraps the run-level length and rate of a pool from its requests.
pub fn of_run(pooled: &Pooled, samples: &Samples, seed: u64) -> RunIntervals {
    let drawn_from = samples.first(MOST_DRAWN_FROM, Sample::has_record);
    if drawn_from.len() < 2 {
        return RunIntervals::default();
    }
    let of_sample = Sums::of(drawn_from.iter().copied());
    let sampled = drawn_from.len();
    let lens = |of_sample: Option<f64>, exact: Option<f64>| {
        Some(Lens::new(of_sample?, exact?, sampled, pooled.records))
    };
    let length_lens = lens(of_sample.length(), pooled.length());
    let rate_lens = lens(of_sample.rate(), pooled.rate());
    let (mut lengths, mut rates) = (Vec::new(), Vec::new());
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..REPLICATES {
        let sums = Sums::drawn(&drawn_from, &mut random);
        let see = |draws: &mut Vec<f64>, lens: Option<Lens>, drawn: Option<f64>| {
            draws.extend(lens.zip(drawn).map(|(lens, drawn)| lens.see(drawn)));
        };
        see(&mut lengths, length_lens, sums.length());
        see(&mut rates, rate_lens, sums.rate());
    }
    RunIntervals {
        length: Interval::of_draws(&mut lengths, LEVEL).filter(|_| pooled.records_with_steps > 1),
        rate: Interval::of_draws(&mut rates, LEVEL),
    }
}

#[cfg(test)]
mod tests;
