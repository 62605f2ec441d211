//! How certain the best depth is: requests are drawn anew, and each draw has its own.

use super::recut::{Walk, deepest_conditional, tokens};
use super::stretches::{Stretch, StretchesOfWidth};
use super::{BestDepth, Depth, DepthShare, Range, speed_up};
use crate::stats::interval::{LEVEL, Lens, REPLICATES, SEED};
use crate::stats::samples::{Row, Samples, Shape};

/// Requests that are drawn from: with more, the spread is narrowed to that of all.
pub(super) const MOST_DRAWN_FROM: usize = 250;

/// Speed-ups that differ by less than this part are equal.
const EQUAL: f64 = 1e-12;

/// What each request that is drawn from adds to the lengths at the depths from 1 to k.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Draws {
    requests: Vec<Request>,
    /// All requests.
    n: u64,
}

#[derive(Clone, Debug, PartialEq)]
struct Request {
    steps: f64,
    /// By depth: 1 + accepted drafts of each step, no more than the depth.
    truncated: Vec<f64>,
    tokens: f64,
    /// By depth: steps that the same tokens take; empty without order.
    recut_steps: Vec<f64>,
}

/// Sums over drawn requests.
struct Sums {
    steps: f64,
    truncated: Vec<f64>,
    tokens: f64,
    recut_steps: Vec<f64>,
}

impl Draws {
    /// Takes a sample of the requests at depth k. `ordered`: the stretches of all of them, where the order counts.
    pub(super) fn of(
        samples: &Samples,
        k: u32,
        ordered: Option<&StretchesOfWidth>,
        n: u64,
    ) -> Self {
        let walks: Vec<Walk> = ordered.map_or_else(Vec::new, |stretches| {
            let unseen_accepts = deepest_conditional(k, stretches);
            let walk = |depth| Walk::new(k, depth, stretches.longest(), unseen_accepts);
            (1..=k).map(walk).collect()
        });
        let is_ordered = ordered.is_some();
        let rows = samples.first_rows(MOST_DRAWN_FROM, |row| shape(row, k, is_ordered).is_some());
        let requests = rows.iter().filter_map(|row| {
            let shape = shape(row, k, is_ordered)?;
            Some(Request::of(&stretches(shape, k), k, &walks))
        });
        Self {
            requests: requests.collect(),
            n,
        }
    }

    /// The best depth of the estimate with the depths that are best when the requests are drawn anew. `costs`: what the
    /// drafts cost in each draw, in turns.
    pub(super) fn best(
        &self,
        depths: &[Depth],
        costs: &[f64],
        best: [u32; 2],
    ) -> Option<BestDepth> {
        if self.requests.len() < 2 || depths.is_empty() || costs.is_empty() {
            return None;
        }
        let of_all = self.sums(0..self.requests.len()).lengths();
        let mut votes = vec![0.0; depths.len()];
        let mut random = fastrand::Rng::with_seed(SEED);
        let count = self.requests.len();
        for &cost in costs.iter().cycle().take(REPLICATES) {
            let drawn = (0..count).map(|_| random.usize(..count));
            let drawn = self.sums(drawn).lengths();
            let see = |exact: f64, of_sample: f64, drawn: f64| {
                Lens::new(of_sample, exact, count, self.n).see(drawn)
            };
            let ends = depths.iter().zip(of_all.iter().zip(&drawn));
            let (mut low, mut high) = (Vec::new(), Vec::new());
            for (depth, (of_all, drawn)) in ends {
                low.push(speed_up(
                    see(depth.length.low, of_all.low, drawn.low),
                    depth.depth,
                    cost,
                ));
                if let (Some(exact), Some(of_all), Some(drawn)) =
                    (depth.length.high, of_all.high, drawn.high)
                {
                    high.push(speed_up(see(exact, of_all, drawn), depth.depth, cost));
                }
            }
            vote(&mut votes, &low);
            // Without an upper end the lower one has both votes.
            vote(
                &mut votes,
                if high.len() == low.len() { &high } else { &low },
            );
        }
        Some(interval(&votes, best))
    }

    fn sums(&self, drawn: impl Iterator<Item = usize>) -> Sums {
        let first = self.requests.first();
        let zeros = |of: fn(&Request) -> &Vec<f64>| vec![0.0; first.map_or(0, |it| of(it).len())];
        let mut sums = Sums {
            steps: 0.0,
            truncated: zeros(|request| &request.truncated),
            tokens: 0.0,
            recut_steps: zeros(|request| &request.recut_steps),
        };
        let add = |sums: &mut [f64], values: &[f64]| {
            for (sum, value) in sums.iter_mut().zip(values) {
                *sum += value;
            }
        };
        for request in drawn.filter_map(|index| self.requests.get(index)) {
            sums.steps += request.steps;
            sums.tokens += request.tokens;
            add(&mut sums.truncated, &request.truncated);
            add(&mut sums.recut_steps, &request.recut_steps);
        }
        sums
    }
}

impl Sums {
    /// The length at each depth.
    fn lengths(&self) -> Vec<Range> {
        let truncated = self.truncated.iter().map(|sum| sum / self.steps);
        truncated
            .enumerate()
            .map(|(index, truncated)| match self.recut_steps.get(index) {
                Some(steps) => Range::between(truncated, self.tokens / steps),
                None => Range {
                    low: truncated,
                    high: None,
                },
            })
            .collect()
    }
}

/// How the steps of a request went, if that counts for depth k.
fn shape<'a>(row: &Row<'a>, k: u32, is_ordered: bool) -> Option<Shape<'a>> {
    let record = row.records.clone().next()?;
    let counts = match record.shape {
        Shape::Ordered(_) => record.shape.stretches(k).next().is_some(),
        Shape::Histogram(_) => !is_ordered && record.k == Some(u64::from(k)),
        Shape::Unknown => false,
    };
    counts.then_some(record.shape)
}

/// The stretches of a request. Without order each step is one of its own: that is all that truncation needs.
fn stretches(shape: Shape<'_>, k: u32) -> Vec<Stretch> {
    let histogram = (0..=k).zip(shape.histogram());
    let of_histogram = histogram.map(|(accepted, count)| Stretch {
        full: u32::from(accepted == k),
        ending: accepted,
        count,
    });
    shape.stretches(k).chain(of_histogram).collect()
}

impl Request {
    fn of(stretches: &[Stretch], k: u32, walks: &[Walk]) -> Self {
        let steps_of = |stretch: &Stretch| {
            // The ending k stands for no step.
            let last = if stretch.ending < k { 1.0 } else { 0.0 };
            stretch.count as f64 * (f64::from(stretch.full) + last)
        };
        let truncated = |depth: u32| -> f64 {
            let accepted = stretches.iter().map(|stretch| {
                let last = if stretch.ending < k {
                    f64::from(stretch.ending.min(depth))
                } else {
                    0.0
                };
                stretch.count as f64 * (f64::from(stretch.full) * f64::from(depth) + last)
            });
            accepted.sum::<f64>() + stretches.iter().map(steps_of).sum::<f64>()
        };
        let recut_steps = |walk: &Walk| stretches.iter().map(|&it| walk.steps(it)).sum();
        Self {
            steps: stretches.iter().map(steps_of).sum(),
            truncated: (1..=k).map(truncated).collect(),
            tokens: stretches.iter().map(|&it| tokens(k, it)).sum(),
            recut_steps: walks.iter().map(recut_steps).collect(),
        }
    }
}

/// One vote for the depth with the largest speed-up; equal ones share it.
fn vote(votes: &mut [f64], speed_ups: &[f64]) {
    let largest = speed_ups.iter().copied().fold(f64::MIN, f64::max);
    let is_best = |speed_up: &f64| *speed_up >= largest - EQUAL * largest.abs();
    let equal = speed_ups.iter().filter(|it| is_best(it)).count() as f64;
    for (votes, _) in votes
        .iter_mut()
        .zip(speed_ups)
        .filter(|(_, it)| is_best(it))
    {
        *votes += 1.0 / equal;
    }
}

/// The depths that leave (1 − level) / 2 of the votes on either side, and the best one of the estimate in any case.
fn interval(votes: &[f64], best: [u32; 2]) -> BestDepth {
    let all: f64 = votes.iter().sum();
    let tail = (1.0 - LEVEL) / 2.0 * all;
    let numbered: Vec<(u32, f64)> = (1..).zip(votes.iter().copied()).collect();
    let low = beyond(numbered.iter(), tail).unwrap_or(best[0]);
    let high = beyond(numbered.iter().rev(), tail).unwrap_or(best[1]);
    let shares = numbered.iter().filter(|(_, votes)| *votes > 0.0);
    BestDepth {
        low: low.min(best[0]),
        high: high.max(best[1]),
        level: LEVEL,
        shares: shares
            .map(|&(depth, votes)| DepthShare {
                depth,
                share: votes / all,
            })
            .collect(),
    }
}

/// The first depth with which more than the tail of the votes is counted.
fn beyond<'a>(mut votes: impl Iterator<Item = &'a (u32, f64)>, tail: f64) -> Option<u32> {
    let mut counted = 0.0;
    let found = votes.find(|(_, votes)| {
        counted += votes;
        counted > tail
    });
    found.map(|(depth, _)| *depth)
}
