//! Length, rate, latency and positions of two runs whose requests come in pairs: pairs are drawn anew, so that what all
//! prompts have in common on both sides takes no part in the interval.

use super::latency::{self, MOST_DRAWN_FROM as MOST_LATENCIES, Means};
use super::margin::error_of_draws;
use super::pairs::{Pair, Request};
use super::positions::{self, MOST_POSITIONS};
use super::width::DraftWidth;
use super::{DRAWS, Difference, Figures, Measured, PositionDifference, SpeedUp};
use crate::stats::interval::{MOST_DRAWN_FROM, Sample, Sums};
use crate::stats::pooled::steps_in;

/// The figures that a verdict is given on.
pub(super) fn figures(pairs: &[&Pair], level: f64, random: &mut fastrand::Rng) -> Figures {
    let with_steps = both(pairs, |it| it.sample.steps > 0);
    let with_drafts = both(pairs, |it| it.sample.drafted > 0);
    let length = of_sums(&with_steps, Sums::length, random);
    let rate = of_sums(&with_drafts, Sums::rate, random);
    let (latency, speed_up) = latency(pairs, level, random);
    Figures {
        differences: vec![
            Difference::of_length(length, level),
            Difference::of_rate(rate, level, &widths(&with_drafts)),
            latency,
        ],
        speed_up,
    }
}

/// The pairs of which both requests have what is asked for, in an order that has nothing to do with their prompts.
fn both<'a>(pairs: &[&'a Pair], has: impl Fn(&Request) -> bool) -> Vec<&'a Pair> {
    let found = pairs
        .iter()
        .filter(|pair| has(&pair.base) && has(&pair.other));
    let mut found: Vec<&Pair> = found.copied().collect();
    found.sort_by_key(|pair| (pair.base.sample.key, pair.other.sample.key));
    found
}

/// What is known of a figure that is made of sums over requests.
fn of_sums(
    pairs: &[&Pair],
    figure: impl Fn(&Sums) -> Option<f64>,
    random: &mut fastrand::Rng,
) -> Measured {
    let values = |sums: [Sums; 2]| {
        let [base, other] = sums;
        [figure(&base), figure(&other)]
    };
    let sums = |pairs: &mut dyn Iterator<Item = &Pair>| {
        let mut sums = [Sums::default(); 2];
        for pair in pairs {
            sums[0].add(&pair.base.sample);
            sums[1].add(&pair.other.sample);
        }
        sums
    };
    let drawn_from = &pairs[..pairs.len().min(MOST_DRAWN_FROM)];
    let mut draws = Vec::new();
    if drawn_from.len() > 1 {
        for _ in 0..DRAWS {
            let drawn = (0..drawn_from.len()).map(|_| drawn_from[random.usize(..drawn_from.len())]);
            if let [Some(base), Some(other)] = values(sums(&mut drawn.into_iter())) {
                draws.push(other - base);
            }
        }
    }
    // So many more pairs make it so much more certain.
    let narrowed = (drawn_from.len() as f64 / pairs.len().max(1) as f64).sqrt();
    Measured {
        values: values(sums(&mut pairs.iter().copied())),
        error: error_of_draws(&draws, drawn_from.len()).map(|error| error * narrowed),
        requests: [pairs.len() as u64; 2],
    }
}

/// Pairs whose two requests arrived at about the same concurrency.
fn latency(
    pairs: &[&Pair],
    level: f64,
    random: &mut fastrand::Rng,
) -> (Difference, Option<SpeedUp>) {
    let timed = both(pairs, |it| it.sample.inter_token_latency_ms.is_some());
    let is_alike =
        |pair: &&Pair| latency::band_of(&pair.base.sample) == latency::band_of(&pair.other.sample);
    let milliseconds = |sample: &Sample| sample.inter_token_latency_ms;
    let latencies: Vec<(f64, f64)> = timed
        .iter()
        .copied()
        .filter(is_alike)
        .take(MOST_LATENCIES)
        .filter_map(|pair| milliseconds(&pair.base.sample).zip(milliseconds(&pair.other.sample)))
        .collect();
    let means = |latencies: &mut dyn Iterator<Item = (f64, f64)>| {
        let (mut n, mut base, mut other) = (0.0, 0.0, 0.0);
        for (of_base, of_other) in latencies {
            n += 1.0;
            base += of_base;
            other += of_other;
        }
        (base > 0.0 && other > 0.0).then(|| Means {
            base: base / n,
            other: other / n,
        })
    };
    let drawn = || {
        let draw = (0..latencies.len()).map(|_| latencies[random.usize(..latencies.len())]);
        means(&mut draw.into_iter())
    };
    let requests = [latencies.len() as u64; 2];
    let all = means(&mut latencies.iter().copied());
    latency::of(all, drawn, requests, level, !timed.is_empty())
}

/// The differences by position. `level_for` tells how sure each of so many intervals has to be.
pub(super) fn by_position(
    pairs: &[&Pair],
    level_for: impl Fn(usize) -> f64,
) -> Vec<PositionDifference> {
    let pairs = both(pairs, |it| it.sample.steps > 0);
    let deepest = |request: &Request| request.histogram.keys().next_back().copied().unwrap_or(0);
    let deepest = pairs
        .iter()
        .map(|pair| deepest(&pair.base).max(deepest(&pair.other)))
        .max();
    let positions = deepest.map_or(0, |deepest| (deepest as usize).min(MOST_POSITIONS));
    let (widths, level) = (widths(&pairs), level_for(positions));
    (0..positions)
        .zip(1..)
        .map(|(position, least)| {
            let measured = share(&pairs, |request| {
                steps_in(&request.histogram, least..) as f64
            });
            positions::of(position, measured, level, &widths)
        })
        .collect()
}

/// Σx / Σs on both sides, with the error that the difference of two ratios of sums over the same pairs has: each pair
/// adds (x − p·s) / Σs on either side.
fn share(pairs: &[&Pair], accepted: impl Fn(&Request) -> f64) -> Measured {
    let steps = |request: &Request| f64::from(request.sample.steps);
    let of_side = |side: fn(&Pair) -> &Request| {
        let all: f64 = pairs.iter().map(|pair| steps(side(pair))).sum();
        let past: f64 = pairs.iter().map(|pair| accepted(side(pair))).sum();
        (all, past / all)
    };
    let ((base_steps, base), (other_steps, other)) =
        (of_side(|pair| &pair.base), of_side(|pair| &pair.other));
    let squares: f64 = pairs
        .iter()
        .map(|pair| {
            let of_base = (accepted(&pair.base) - base * steps(&pair.base)) / base_steps;
            let of_other = (accepted(&pair.other) - other * steps(&pair.other)) / other_steps;
            (of_other - of_base).powi(2)
        })
        .sum();
    let n = pairs.len() as f64;
    Measured {
        values: [Some(base), Some(other)],
        error: (pairs.len() > 1).then(|| (squares * n / (n - 1.0)).sqrt()),
        requests: [pairs.len() as u64; 2],
    }
}

/// How wide the steps of both sides are.
fn widths(pairs: &[&Pair]) -> [DraftWidth; 2] {
    let of_side = |side: fn(&Pair) -> &Request| {
        let mut width = DraftWidth::default();
        for request in pairs.iter().map(|pair| side(pair)) {
            width.ks.extend(request.k);
            if request.sample.steps > 0 {
                width.steps += u64::from(request.sample.steps);
                if !request.has_nominal_drafts {
                    width.drafted += u64::from(request.sample.drafted);
                }
            }
        }
        width
    };
    [of_side(|pair| &pair.base), of_side(|pair| &pair.other)]
}
