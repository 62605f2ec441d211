//! Draft-depth advice: the expected length at every depth up to the observed k.
//!
//! The truncated histogram reads low: steps begin right behind a rejection, at hard text, and at a smaller depth more of
//! them begin in easy text. The re-cut of ordered steps sees that; between the two the truth is expected. Nothing is said
//! about depths that were not observed, and nothing at all where the data don't carry it.

use serde::{Deserialize, Serialize};

use super::evidence::Evidence;
use super::interval::FEW_REQUESTS;
use super::pooled::Pooled;

pub mod cost;
mod draws;
mod recut;
mod source;
mod stretches;

pub use cost::MeasuredCost;
pub use stretches::{DEEPEST, Stretches, StretchesOfWidth};

pub(super) use stretches::{Ordered, Stretch};

use draws::Draws;
use source::Source;

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
    /// The steps carried different numbers of drafts, and not by their request's k.
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
    fn between(one: f64, other: f64) -> Self {
        Self {
            low: one.min(other),
            high: Some(one.max(other)),
        }
    }

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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    /// Time to draft one token / time of one verify step, as given or measured; absent where neither.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub draft_cost: Option<f64>,
    /// How the draft cost was measured; absent where it was given or is unknown.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub measured_cost: Option<MeasuredCost>,
    /// The depths with the largest speed-up, by the lower and by the upper end of the lengths.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub best: Option<[u32; 2]>,
    /// How certain that is; absent without a draft cost or with fewer than two requests.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub best_interval: Option<BestDepth>,
    /// The depths from 1 to k; empty without advice.
    pub depths: Vec<Depth>,
    /// How to take it, or why there is none.
    pub text: String,
    /// Requests to draw from.
    #[serde(skip)]
    draws: Draws,
}

/// The depths among which the best one is, as far as chance between requests decides it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BestDepth {
    /// The smallest of them.
    pub low: u32,
    /// The largest of them.
    pub high: u32,
    /// [`LEVEL`](super::interval::LEVEL).
    pub level: f64,
    /// How often each depth was the best one when the requests were drawn anew; those that never were are left out.
    pub shares: Vec<DepthShare>,
}

/// How often a depth was the best one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DepthShare {
    /// The depth.
    pub depth: u32,
    /// Share of the draws, 0..1; a draw in which the two ends of the lengths disagree counts half for each.
    pub share: f64,
}

/// The advice that the records of a view carry, with the speed-up where the cost of the drafts can be measured.
pub fn of(pooled: &Pooled, evidence: &Evidence) -> Advice {
    let source = match Source::of(pooled, evidence) {
        Ok(source) => source,
        Err(obstacle) => return none(obstacle, pooled),
    };
    let advice = source.advice(evidence);
    match cost::measure(&evidence.samples, evidence.records_by_k.keys().copied()) {
        Some((measured, draws)) => Advice {
            measured_cost: Some(measured.clone()),
            ..advice.weighed(measured.value, &draws)
        },
        None => advice,
    }
}

impl Advice {
    /// The same with the speed-up that each depth gives where drafting one token takes `draft_cost` of the time of one
    /// verify step: length / (1 + draft cost × depth).
    #[must_use]
    pub fn with_draft_cost(self, draft_cost: f64) -> Self {
        Self {
            measured_cost: None,
            ..self.weighed(draft_cost, &[draft_cost])
        }
    }

    /// `draws`: what the drafts cost each time that the requests are drawn anew.
    fn weighed(mut self, draft_cost: f64, draws: &[f64]) -> Self {
        for depth in &mut self.depths {
            let number = depth.depth;
            depth.speed_up = Some(
                depth
                    .length
                    .map(|length| speed_up(length, number, draft_cost)),
            );
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
        self.best_interval = self
            .best
            .and_then(|best| self.draws.best(&self.depths, draws, best));
        self.draft_cost = Some(draft_cost);
        self
    }
}

/// Tokens per time against no speculation.
fn speed_up(length: f64, depth: u32, draft_cost: f64) -> f64 {
    length / (1.0 + draft_cost * f64::from(depth))
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
            "fewer than {:.0} % of the steps are known to have carried as many drafts as their request's k, or no k has \
             {FEWEST_STEPS} steps of {FEW_REQUESTS} requests; the engine may adapt the width by itself",
            LEAST_OF_ONE_WIDTH * 100.0
        ),
        Obstacle::TooDeep => format!("k is above {DEEPEST}"),
        Obstacle::NoSmallerDepth => "k is 1, and nothing is said about depths beyond k".to_owned(),
    };
    Advice {
        obstacle: Some(obstacle),
        n: pooled.records_with_steps,
        steps: pooled.steps,
        text: format!("No advice on the draft depth: {why}."),
        ..Advice::default()
    }
}

#[cfg(test)]
mod tests;
