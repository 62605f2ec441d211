//! Inter-token latency of two runs, within equal bands of concurrency: a busy engine is slower whatever it drafts.

use super::margin::error_of_draws;
use super::{DRAWS, Difference, Measured, SpeedUp};
use crate::stats::group::Group;
use crate::stats::interval::{Interval, Sample};

/// Requests of one side that are drawn from.
pub(super) const MOST_DRAWN_FROM: usize = 2_000;

/// Requests of both sides that arrived at about the same concurrency.
struct Band {
    base: Vec<f64>,
    other: Vec<f64>,
}

/// Mean latency of each side, in milliseconds.
#[derive(Clone, Copy)]
pub(super) struct Means {
    pub(super) base: f64,
    pub(super) other: f64,
}

/// The difference in milliseconds, and how much faster the other one is.
pub(super) fn unpaired(
    base: &Group,
    other: &Group,
    level: f64,
    random: &mut fastrand::Rng,
) -> (Difference, Option<SpeedUp>) {
    let latencies = |group: &Group| {
        let has_latency = |sample: &Sample| sample.inter_token_latency_ms.is_some();
        let samples = group.evidence.samples.first(MOST_DRAWN_FROM, has_latency);
        samples
            .into_iter()
            .filter_map(|sample| Some((band_of(&sample), sample.inter_token_latency_ms?)))
            .collect::<Vec<(u32, f64)>>()
    };
    let (base, other) = (latencies(base), latencies(other));
    let bands = bands(&base, &other);
    let n = |side: fn(&Band) -> &Vec<f64>| bands.iter().map(|band| side(band).len() as u64).sum();
    let requests = [n(|band| &band.base), n(|band| &band.other)];
    let drawn = || {
        means(&bands, |values| {
            let sum: f64 = (0..values.len())
                .map(|_| values[random.usize(..values.len())])
                .sum();
            sum / values.len() as f64
        })
    };
    let both_have = !base.is_empty() && !other.is_empty();
    of(means(&bands, mean), drawn, requests, level, both_have)
}

/// The difference between two means, what drawing anew gives for them, and what both come to.
pub(super) fn of(
    means: Option<Means>,
    mut drawn: impl FnMut() -> Option<Means>,
    requests: [u64; 2],
    level: f64,
    both_have: bool,
) -> (Difference, Option<SpeedUp>) {
    let (mut differences, mut ratios) = (Vec::new(), Vec::new());
    if means.is_some() && requests.iter().all(|&n| n > 1) {
        for drawn in (0..DRAWS).filter_map(|_| drawn()) {
            differences.push(drawn.other - drawn.base);
            ratios.push(drawn.base / drawn.other);
        }
    }
    let fewest = usize::try_from(requests[0].min(requests[1])).unwrap_or(usize::MAX);
    let measured = Measured {
        values: [means.map(|it| it.base), means.map(|it| it.other)],
        error: error_of_draws(&differences, fewest),
        requests,
    };
    let mut difference = Difference::of("inter_token_latency", "ms", measured, level);
    if means.is_none() && both_have {
        difference.forbid(
            "no request of one side arrived at about the concurrency of one of the other side",
        );
    }
    let speed_up = means.map(|means| SpeedUp {
        value: means.base / means.other,
        interval: Interval::of_draws(&mut ratios, level),
    });
    (difference, speed_up)
}

/// The band of concurrency, in powers of two: 1, 2 to 3, 4 to 7, …
pub(super) fn band_of(sample: &Sample) -> u32 {
    sample.in_flight.max(1).ilog2()
}

/// The bands in which both sides have requests.
fn bands(base: &[(u32, f64)], other: &[(u32, f64)]) -> Vec<Band> {
    let of = |side: &[(u32, f64)], band: u32| -> Vec<f64> {
        let inside = side.iter().filter(|(own, _)| *own == band);
        inside.map(|&(_, latency)| latency).collect()
    };
    (0..u32::BITS)
        .map(|band| Band {
            base: of(base, band),
            other: of(other, band),
        })
        .filter(|band| !band.base.is_empty() && !band.other.is_empty())
        .collect()
}

fn means(bands: &[Band], mut mean: impl FnMut(&[f64]) -> f64) -> Option<Means> {
    let (mut weights, mut base, mut other) = (0.0, 0.0, 0.0);
    for band in bands {
        // What makes the difference of two means most certain.
        let (n_base, n_other) = (band.base.len() as f64, band.other.len() as f64);
        let weight = n_base * n_other / (n_base + n_other);
        weights += weight;
        base += weight * mean(&band.base);
        other += weight * mean(&band.other);
    }
    let means = Means {
        base: base / weights,
        other: other / weights,
    };
    (weights > 0.0 && means.base > 0.0 && means.other > 0.0).then_some(means)
}

pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
