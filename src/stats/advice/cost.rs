//! What a draft costs, measured: where requests ran at two depths or more, the time of their steps tells.
//!
//! A step at depth k takes target + k · draft. The time of a request's steps is its time per token × tokens after the
//! first / steps. A busy engine is slower whatever it drafts, so requests are held against those that arrived at about
//! the same concurrency: one slope for all, and a target time for each band of concurrency.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::FEWEST_STEPS;
use crate::stats::interval::{FEW_REQUESTS, Interval, LEVEL, REPLICATES, SEED};
use crate::stats::samples::{Sample, Samples};

/// Requests of each depth that are looked at; with more, a uniform sample of so many.
pub const MOST_OF_A_DEPTH: usize = 500;

/// Share of the drafts that steps × k would be; with fewer, the steps were not all of this depth.
const LEAST_OF_WIDTH: f64 = 0.95;

/// Passes of the target model per step; with more, too many passes drafted nothing to tell what a step takes.
const MOST_PASSES: f64 = 1.05;

/// What drafting one token costs, as measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasuredCost {
    /// Time to draft one token / time of one verify step without drafts; never below 0.
    pub value: f64,
    /// Where the true value lies, as far as chance between requests decides it.
    pub interval: Interval,
    /// Requests that it is measured from.
    pub n: u64,
    /// The depths, and what a step took there.
    pub depths: Vec<StepTime>,
}

/// What a step takes at one depth.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepTime {
    /// Drafts per step.
    pub k: u32,
    /// Requests.
    pub n: u64,
    /// Mean time of a step.
    pub milliseconds: f64,
}

/// The steps of one request.
#[derive(Clone, Copy, Debug)]
struct Steps {
    k: f64,
    /// Power of two of the exchanges in flight.
    band: u32,
    count: f64,
    milliseconds: f64,
}

impl Steps {
    /// The steps of a request whose steps all carried k drafts, and whose passes of the target model nearly all drafted.
    fn of(sample: &Sample) -> Option<Self> {
        let latency = sample.inter_token_latency_ms.filter(|&it| it > 0.0)?;
        let (steps, k) = (f64::from(sample.steps), f64::from(sample.k));
        let behind_first = f64::from(sample.completion_tokens.checked_sub(1)?);
        let passes = behind_first - f64::from(sample.accepted);
        let is_even = f64::from(sample.drafted) >= LEAST_OF_WIDTH * steps * k;
        let drafted_throughout = passes <= MOST_PASSES * steps && behind_first >= steps;
        (steps > 0.0 && k > 0.0 && is_even && drafted_throughout).then(|| Self {
            k,
            band: sample.in_flight.max(1).ilog2(),
            count: steps,
            milliseconds: latency * behind_first / steps,
        })
    }
}

/// Sums of one band, each step counting once.
#[derive(Clone, Copy, Debug, Default)]
struct Band {
    steps: f64,
    k: f64,
    time: f64,
    k_squared: f64,
    k_time: f64,
}

/// Draft time / target time by least squares; absent where no band has two depths.
fn ratio<'a>(requests: impl Iterator<Item = &'a Steps>) -> Option<f64> {
    let mut bands = BTreeMap::<u32, Band>::new();
    for request in requests {
        let band = bands.entry(request.band).or_default();
        band.steps += request.count;
        band.k += request.count * request.k;
        band.time += request.count * request.milliseconds;
        band.k_squared += request.count * request.k * request.k;
        band.k_time += request.count * request.k * request.milliseconds;
    }
    let spread = |band: &Band| band.k_squared - band.k * band.k / band.steps;
    let (mut along, mut across, mut all) = (0.0, 0.0, Band::default());
    // Of one depth alone there is nothing but rounding.
    for band in bands
        .values()
        .filter(|band| spread(band) > 1e-9 * band.k_squared)
    {
        along += spread(band);
        across += band.k_time - band.k * band.time / band.steps;
        all.steps += band.steps;
        all.k += band.k;
        all.time += band.time;
    }
    let draft = across / along;
    let target = (all.time - draft * all.k) / all.steps;
    (along > 0.0 && target > 0.0).then(|| (draft / target).max(0.0))
}

/// Measures the cost, with what it is in each of [`REPLICATES`] draws of the requests. `depths`: those that records had.
pub(super) fn measure(
    samples: &Samples,
    depths: impl Iterator<Item = u64>,
) -> Option<(MeasuredCost, Vec<f64>)> {
    let by_depth: Vec<(u32, Vec<Steps>)> = depths
        .filter_map(|k| {
            let k = u32::try_from(k).ok()?;
            let found = samples.first(MOST_OF_A_DEPTH, |sample| {
                sample.k == k && Steps::of(sample).is_some()
            });
            let steps: Vec<Steps> = found.iter().filter_map(Steps::of).collect();
            let count: f64 = steps.iter().map(|it| it.count).sum();
            let is_enough = steps.len() as u64 >= FEW_REQUESTS && count >= FEWEST_STEPS as f64;
            is_enough.then_some((k, steps))
        })
        .collect();
    if by_depth.len() < 2 {
        return None;
    }
    let all = || by_depth.iter().map(|(_, requests)| requests);
    let value = ratio(all().flatten())?;
    let mut random = fastrand::Rng::with_seed(SEED);
    let draws: Vec<f64> = (0..REPLICATES)
        .filter_map(|_| {
            let drawn = all().flat_map(|requests| {
                let draw = |_| requests[random.usize(..requests.len())];
                requests.iter().map(draw).collect::<Vec<Steps>>()
            });
            ratio(drawn.collect::<Vec<Steps>>().iter())
        })
        .collect();
    let depths = by_depth.iter().map(|(k, requests)| StepTime {
        k: *k,
        n: requests.len() as u64,
        milliseconds: requests
            .iter()
            .map(|it| it.count * it.milliseconds)
            .sum::<f64>()
            / requests.iter().map(|it| it.count).sum::<f64>(),
    });
    let measured = MeasuredCost {
        value,
        interval: Interval::of_draws(&mut draws.clone(), LEVEL)?,
        n: all().map(|requests| requests.len() as u64).sum(),
        depths: depths.collect(),
    };
    Some((measured, draws))
}

#[cfg(test)]
mod tests;
