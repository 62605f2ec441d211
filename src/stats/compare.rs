//! Comparison of two runs: differences with intervals, and a verdict that says "no evidence" when there is none.
//!
//! Requests of both sides are drawn anew. The intervals of all figures that get a verdict hold together at 95 %, so two
//! equal engines are told apart in at most one comparison of twenty, however many figures it has.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::group::Group;
use super::interval::{
    FEW_REQUESTS, Interval, LEVEL, Lens, MOST_DRAWN_FROM, REPLICATES, Sample, Sums,
};

mod latency;
mod positions;

pub use positions::{PositionSpread, PositionSums};

/// Mean drafts per step may differ by so much, relative to the smaller, before the widths count as different.
pub const WIDTH_TOLERANCE: f64 = 0.05;

/// The figures that a verdict is given on.
const FIGURES_WITH_VERDICT: usize = 3;

/// The standard normal value that leaves 2.5 % above it.
const NORMAL_95: f64 = 1.959_963_984_540_054;

/// What a difference comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The other one is higher, beyond chance.
    Higher,
    /// The other one is lower, beyond chance.
    Lower,
    /// Chance alone explains the difference.
    NoEvidence,
    /// One side has fewer than 30 requests.
    TooFew,
    /// The two values don't mean the same.
    NotComparable,
    /// One side does not have it.
    Unknown,
}

/// One figure of two runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// Name of the figure; AIPerf's tag where there is one.
    pub figure: String,
    /// Unit of all values but `relative` and `n`.
    pub unit: String,
    /// Value of the base; absent where it has none.
    pub base: Option<f64>,
    /// Value of the other one.
    pub other: Option<f64>,
    /// other − base.
    pub difference: Option<f64>,
    /// Where the true difference lies.
    pub interval: Option<Interval>,
    /// (other − base) / base, a ratio.
    pub relative: Option<f64>,
    /// Requests of the base.
    pub n_base: u64,
    /// Requests of the other one.
    pub n_other: u64,
    /// What it comes to.
    pub verdict: Verdict,
    /// Why there is no verdict; absent where there is one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub why: Option<String>,
}

/// The share of steps that accepted a position, on both sides. No verdict: positions are there to explain a length.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PositionDifference {
    /// Counted from 0.
    pub position: u32,
    /// Share of the base's steps that accepted it.
    pub base: f64,
    /// Share of the other one's steps.
    pub other: f64,
    /// other − base.
    pub difference: f64,
    /// Where the true difference lies; absent with fewer than two requests.
    pub interval: Option<Interval>,
}

/// How much faster tokens come than in the base: its inter-token latency / the other one's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpeedUp {
    /// Ratio.
    pub value: f64,
    /// Where the true ratio lies.
    pub interval: Option<Interval>,
}

/// Two runs side by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Length, rate, inter-token latency.
    pub differences: Vec<Difference>,
    /// By position; empty where one side has no histogram.
    pub positions: Vec<PositionDifference>,
    /// Absent where one side has no inter-token latency.
    pub speed_up: Option<SpeedUp>,
}

/// Compares a run with the base. `comparisons` is how many runs are compared with this base at once: the more chances
/// for a false alarm, the wider the intervals. The same seed gives the same intervals.
pub fn compare(base: &Group, other: &Group, comparisons: usize, seed: u64) -> Comparison {
    let level = 1.0 - (1.0 - LEVEL) / (FIGURES_WITH_VERDICT * comparisons.max(1)) as f64;
    let sides = [Side::of(base), Side::of(other)];
    let mut random = fastrand::Rng::with_seed(seed);
    let [length, rate] = acceptance(&sides, level, &mut random);
    let (latency, speed_up) = latency::of(base, other, level, &mut random);
    Comparison {
        differences: vec![length, rate, latency],
        positions: by_position(base, other),
        speed_up,
    }
}

/// What is drawn from on one side.
struct Side<'a> {
    group: &'a Group,
    samples: Vec<Sample>,
    of_sample: Sums,
}

impl<'a> Side<'a> {
    fn of(group: &'a Group) -> Self {
        let samples = group
            .evidence
            .samples
            .first(MOST_DRAWN_FROM, Sample::has_record);
        Self {
            group,
            of_sample: Sums::of(samples.iter().copied()),
            samples,
        }
    }

    fn lens(&self, of_sample: Option<f64>, exact: Option<f64>) -> Option<Lens> {
        let all = self.group.aiperf.pooled.records;
        Some(Lens::new(of_sample?, exact?, self.samples.len(), all))
    }

    fn lenses(&self) -> [Option<Lens>; 2] {
        let pooled = &self.group.aiperf.pooled;
        [
            self.lens(self.of_sample.length(), pooled.length()),
            self.lens(self.of_sample.rate(), pooled.rate()),
        ]
    }

    /// Length and rate of one draw.
    fn draw(&self, lenses: &[Option<Lens>; 2], random: &mut fastrand::Rng) -> [Option<f64>; 2] {
        let sums = Sums::drawn(&self.samples, random);
        let see = |lens: Option<Lens>, drawn: Option<f64>| Some(lens?.see(drawn?));
        [see(lenses[0], sums.length()), see(lenses[1], sums.rate())]
    }
}

fn acceptance(sides: &[Side<'_>; 2], level: f64, random: &mut fastrand::Rng) -> [Difference; 2] {
    let lenses = [sides[0].lenses(), sides[1].lenses()];
    let mut draws = [Vec::new(), Vec::new()];
    if sides.iter().all(|side| side.samples.len() > 1) {
        for _ in 0..REPLICATES {
            let base = sides[0].draw(&lenses[0], random);
            let other = sides[1].draw(&lenses[1], random);
            for ((draws, base), other) in draws.iter_mut().zip(base).zip(other) {
                draws.extend(base.zip(other).map(|(base, other)| other - base));
            }
        }
    }
    let [base, other] = [&sides[0].group.aiperf.pooled, &sides[1].group.aiperf.pooled];
    let interval = |draws: &mut Vec<f64>| Interval::of_draws(draws, level);
    let length = Difference::of(
        "spec_decode_token_weighted_acceptance_length",
        "ratio",
        [base.length(), other.length()],
        interval(&mut draws[0]),
        [base.records_with_steps, other.records_with_steps],
    );
    let percent = |rate: Option<f64>| rate.map(|rate| rate * 100.0);
    let mut rate = Difference::of(
        "spec_decode_overall_draft_acceptance_rate",
        "%",
        [percent(base.rate()), percent(other.rate())],
        interval(&mut draws[1]).map(|interval| interval.scaled(100.0)),
        [base.records, other.records],
    );
    if let Some(why) = different_widths(sides[0].group, sides[1].group)
        && rate.verdict != Verdict::Unknown
    {
        rate.verdict = Verdict::NotComparable;
        rate.why = Some(why);
    }
    [length, rate]
}

impl Difference {
    pub(super) fn of(
        figure: &str,
        unit: &str,
        [base, other]: [Option<f64>; 2],
        interval: Option<Interval>,
        [n_base, n_other]: [u64; 2],
    ) -> Self {
        let difference = base.zip(other).map(|(base, other)| other - base);
        let (verdict, why) = verdict(difference, interval, n_base, n_other);
        Self {
            figure: figure.to_owned(),
            unit: unit.to_owned(),
            base,
            other,
            difference,
            interval: interval.filter(|_| difference.is_some()),
            relative: difference
                .zip(base)
                .filter(|(_, base)| *base != 0.0)
                .map(|(difference, base)| difference / base),
            n_base,
            n_other,
            verdict,
            why,
        }
    }
}

fn verdict(
    difference: Option<f64>,
    interval: Option<Interval>,
    n_base: u64,
    n_other: u64,
) -> (Verdict, Option<String>) {
    let Some(difference) = difference else {
        return (
            Verdict::Unknown,
            Some("one side does not have it".to_owned()),
        );
    };
    match interval {
        Some(interval) if n_base.min(n_other) >= FEW_REQUESTS => {
            let verdict = match interval.excludes(0.0) {
                false => Verdict::NoEvidence,
                true if difference > 0.0 => Verdict::Higher,
                true => Verdict::Lower,
            };
            (verdict, None)
        }
        _ => (
            Verdict::TooFew,
            Some(format!(
                "a verdict needs {FEW_REQUESTS} requests on both sides"
            )),
        ),
    }
}

/// Why the rates of two runs can't be held against each other; absent where they can.
fn different_widths(base: &Group, other: &Group) -> Option<String> {
    const WHY: &str =
        "the rate falls with the number of drafts by arithmetic, whatever the drafter";
    let ks =
        |group: &Group| -> BTreeSet<u64> { group.evidence.records_by_k.keys().copied().collect() };
    let (base_k, other_k) = (ks(base), ks(other));
    if base_k != other_k && !base_k.is_empty() && !other_k.is_empty() {
        let list = |ks: BTreeSet<u64>| {
            let names: Vec<String> = ks.iter().map(u64::to_string).collect();
            names.join(", ")
        };
        return Some(format!(
            "k is {} here and {} there, and {WHY}",
            list(base_k),
            list(other_k)
        ));
    }
    let width = |group: &Group| {
        let pooled = &group.aiperf.pooled;
        (pooled.steps > 0)
            .then(|| group.evidence.output.drafted_in_steps as f64 / pooled.steps as f64)
    };
    let (base, other) = (width(base)?, width(other)?);
    ((base - other).abs() > WIDTH_TOLERANCE * base.min(other))
        .then(|| format!("steps carry {base:.2} drafts here and {other:.2} there, and {WHY}"))
}

fn by_position(base: &Group, other: &Group) -> Vec<PositionDifference> {
    let (base, other) = (&base.evidence.positions, &other.evidence.positions);
    if base.steps == 0 || other.steps == 0 {
        return Vec::new();
    }
    let positions = base.accepted.len().max(other.accepted.len());
    (0..positions)
        .zip(0..)
        .filter_map(|(index, position)| {
            let (base, other) = (base.share(index)?, other.share(index)?);
            let difference = other.share - base.share;
            let half = NORMAL_95 * (base.variance + other.variance).sqrt();
            Some(PositionDifference {
                position,
                base: base.share,
                other: other.share,
                difference,
                interval: Some(Interval {
                    low: difference - half,
                    high: difference + half,
                    level: LEVEL,
                }),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests;
