//! Draft-depth advice: the expected length at every depth up to the observed k.
//!
//! The truncated histogram reads low: steps begin right behind a rejection, at hard text, and at a smaller depth more of
//! them begin in easy text. The re-cut of ordered steps sees that; between the two the truth is expected. Nothing is said
//! about depths that were not observed, and nothing at all where the data don't carry it.

use serde::{Deserialize, Serialize};

use super::evidence::Evidence;
use super::interval::FEW_REQUESTS;
use super::pooled::{Pooled, steps_in};
use crate::record::AcceptanceHistogram;

mod recut;
mod stretches;

pub use stretches::{DEEPEST, Stretches, StretchesOfWidth};

pub(super) use stretches::Ordered;
#[cfg(test)]
pub(super) use stretches::Stretch;

use recut::recut;

/// Fewer steps than this carry no advice.
pub const FEWEST_STEPS: u64 = 1_000;

/// Share of steps that have to carry k drafts each; with fewer the widths adapt, and there is no one depth to change.
pub const LEAST_OF_ONE_WIDTH: f64 = 0.95;

/// What advice is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// The steps of each reply in order.
    OrderedSteps,
    /// Steps by number of accepted drafts: likely pessimistic.
    Histogram,
}

/// Why there is no advice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Obstacle {
    /// No record tells how many drafts each step accepted.
    NoSteps,
    /// Fewer than 30 requests or 1,000 steps.
    TooFew,
    /// More drafts than steps × k: the engine seems to draft a tree.
    Tree,
    /// The steps carried different numbers of drafts.
    Widths,
    /// k is above 32.
    TooDeep,
    /// k is 1: there is no smaller depth.
    NoSmallerDepth,
}

/// Two ends of an estimate; equal where the value was observed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Range {
    /// Lower end.
    pub low: f64,
    /// Upper end; absent where only a lower bound is known.
    pub high: Option<f64>,
}

impl Range {
    fn map(self, value: impl Fn(f64) -> f64) -> Self {
        Self {
            low: value(self.low),
            high: self.high.map(value),
        }
    }
}

/// What is expected at one depth.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Depth {
    /// Drafts per step.
    pub depth: u32,
    /// Tokens per step, the bonus token included.
    pub length: Range,
    /// Drafts per output token, at the lower and at the upper end of the length.
    pub drafted_per_token: Range,
    /// Rejected drafts per output token, at the lower and at the upper end of the length.
    pub wasted_per_token: Range,
    /// Tokens per time against no speculation; absent without the cost of a draft.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub speed_up: Option<Range>,
    /// Whether the length is an estimate; at k itself it was observed.
    pub estimate: bool,
}

/// What the records say about other depths.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Advice {
    /// What it is made from; absent without advice.
    pub basis: Option<Basis>,
    /// Why there is none; absent with advice.
    pub obstacle: Option<Obstacle>,
    /// The observed k.
    pub k: Option<u32>,
    /// Records that it is made from.
    pub n: u64,
    /// Steps that it is made from.
    pub steps: u64,
    /// Time to draft one token / time of one verify step, where it was given.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub draft_cost: Option<f64>,
    /// The depths with the largest speed-up, by the lower and by the upper end of the lengths.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub best: Option<[u32; 2]>,
    /// The depths from 1 to k; empty without advice.
    pub depths: Vec<Depth>,
    /// One sentence: how to take it, or why there is none.
    pub text: String,
}

/// The advice that the records of a view carry.
pub fn of(pooled: &Pooled, evidence: &Evidence) -> Advice {
    match source(pooled, evidence) {
        Ok(source) => source.advice(),
        Err(obstacle) => none(obstacle, pooled),
    }
}

/// Where the lengths come from.
struct Source<'a> {
    k: u32,
    n: u64,
    steps: u64,
    histogram: AcceptanceHistogram,
    ordered: Option<&'a StretchesOfWidth>,
}

fn source<'a>(pooled: &Pooled, evidence: &'a Evidence) -> Result<Source<'a>, Obstacle> {
    if pooled.steps == 0 || pooled.histogram.is_empty() {
        return Err(Obstacle::NoSteps);
    }
    if evidence.tree_records > 0 {
        return Err(Obstacle::Tree);
    }
    if pooled.records_with_steps < FEW_REQUESTS || pooled.steps < FEWEST_STEPS {
        return Err(Obstacle::TooFew);
    }
    let widths = evidence.widths.steps.iter();
    let (&k, histogram) = widths
        .max_by_key(|(k, histogram)| (steps_in(histogram, ..), **k))
        .ok_or(Obstacle::Widths)?;
    let of_k = steps_in(histogram, ..);
    if (of_k as f64) < LEAST_OF_ONE_WIDTH * pooled.steps as f64 {
        return Err(Obstacle::Widths);
    }
    match k {
        0 | 1 => return Err(Obstacle::NoSmallerDepth),
        _ if u64::from(k) > DEEPEST => return Err(Obstacle::TooDeep),
        _ => {}
    }
    let ordered = evidence.stretches.by_k.get(&k).filter(|stretches| {
        let wide = stretches.steps.saturating_sub(stretches.narrow) as f64;
        stretches.records >= FEW_REQUESTS
            && stretches.steps >= FEWEST_STEPS
            && wide >= LEAST_OF_ONE_WIDTH * stretches.steps as f64
    });
    Ok(match ordered {
        Some(stretches) => Source {
            k,
            n: stretches.records,
            steps: stretches.steps,
            histogram: stretches.histogram(k),
            ordered,
        },
        None => Source {
            k,
            n: pooled.records_with_steps,
            steps: of_k,
            histogram: histogram.clone(),
            ordered,
        },
    })
}

impl Source<'_> {
    fn advice(&self) -> Advice {
        let k = self.k;
        let text = if self.ordered.is_some() {
            format!(
                "Estimate from {} ordered steps of {} requests at k = {k}: from the truncated histogram, which reads \
                 low, to the steps re-cut at the smaller depth.",
                self.steps, self.n
            )
        } else {
            format!(
                "Estimate from the histogram of {} steps of {} requests at k = {k}, likely pessimistic at smaller \
                 depths: the order of the steps is unknown (vLLM sends it with --per-request-spec-decode-metrics \
                 detailed).",
                self.steps, self.n
            )
        };
        Advice {
            basis: Some(if self.ordered.is_some() {
                Basis::OrderedSteps
            } else {
                Basis::Histogram
            }),
            obstacle: None,
            k: Some(k),
            n: self.n,
            steps: self.steps,
            draft_cost: None,
            best: None,
            depths: (1..=k).map(|depth| self.depth(depth)).collect(),
            text,
        }
    }

    fn depth(&self, depth: u32) -> Depth {
        let truncated = truncated_length(&self.histogram, depth);
        let observed = depth == self.k;
        let length = match self.ordered {
            _ if observed => Range {
                low: truncated,
                high: Some(truncated),
            },
            Some(stretches) => {
                let cut = recut(self.k, stretches, depth).length();
                Range {
                    low: truncated.min(cut),
                    high: Some(truncated.max(cut)),
                }
            }
            None => Range {
                low: truncated,
                high: None,
            },
        };
        let drafts = f64::from(depth);
        Depth {
            depth,
            length,
            drafted_per_token: length.map(|length| drafts / length),
            wasted_per_token: length.map(|length| (drafts + 1.0 - length) / length),
            speed_up: None,
            estimate: !observed,
        }
    }
}

/// 1 + the mean of min(accepted, depth).
fn truncated_length(histogram: &AcceptanceHistogram, depth: u32) -> f64 {
    let (mut steps, mut accepted) = (0.0, 0.0);
    for (&bucket, &count) in histogram {
        steps += count as f64;
        accepted += f64::from(bucket.min(depth)) * count as f64;
    }
    1.0 + accepted / steps
}

impl Advice {
    /// The same with the speed-up that each depth gives where drafting one token takes `draft_cost` of the time of one
    /// verify step: length / (1 + draft cost × depth).
    #[must_use]
    pub fn with_draft_cost(mut self, draft_cost: f64) -> Self {
        for depth in &mut self.depths {
            let step = 1.0 + draft_cost * f64::from(depth.depth);
            depth.speed_up = Some(depth.length.map(|length| length / step));
        }
        let best = |end: &dyn Fn(&Range) -> f64| {
            let of = |depth: &Depth| depth.speed_up.as_ref().map_or(0.0, end);
            // The smallest depth of several equal ones.
            let depths = self.depths.iter().rev();
            depths
                .max_by(|left, right| of(left).total_cmp(&of(right)))
                .map(|depth| depth.depth)
        };
        self.best = best(&|range| range.low)
            .zip(best(&|range| range.high.unwrap_or(range.low)))
            .map(|(low, high)| [low.min(high), low.max(high)]);
        self.draft_cost = Some(draft_cost);
        self
    }
}

fn none(obstacle: Obstacle, pooled: &Pooled) -> Advice {
    let why = match obstacle {
        Obstacle::NoSteps => {
            "no record tells how many drafts each step accepted".to_owned()
        }
        Obstacle::TooFew => format!(
            "{} steps of {} requests are too few; {FEWEST_STEPS} steps of {FEW_REQUESTS} requests are needed",
            pooled.steps, pooled.records_with_steps
        ),
        Obstacle::Tree => {
            "there are more drafts than steps × k: the engine seems to draft a tree, and its branches can't be re-cut"
                .to_owned()
        }
        Obstacle::Widths => format!(
            "fewer than {:.0} % of the steps are known to have carried the same number of drafts; narrow it to one \
             setting, or the engine adapts the width by itself",
            LEAST_OF_ONE_WIDTH * 100.0
        ),
        Obstacle::TooDeep => format!("k is above {DEEPEST}"),
        Obstacle::NoSmallerDepth => "k is 1, and nothing is said about depths beyond k".to_owned(),
    };
    Advice {
        basis: None,
        obstacle: Some(obstacle),
        k: None,
        n: pooled.records_with_steps,
        steps: pooled.steps,
        draft_cost: None,
        best: None,
        depths: Vec::new(),
        text: format!("No advice on the draft depth: {why}."),
    }
}

#[cfg(test)]
mod tests;
