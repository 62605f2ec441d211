//! Comparison of two runs: differences with intervals, and a verdict that says "no evidence" when there is none.
//!
//! Requests of both sides are drawn anew, or pairs of requests where both sides had the same prompts. The intervals of
//! all figures that get a verdict hold together at 95 %, so two equal engines are told apart in at most one comparison
//! of twenty, however many figures it has: of those 5 % the figures of the whole runs may use four fifths, the positions
//! and the categories a tenth each, which makes their intervals little wider.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::MOST_TAGS;
use super::group::{Group, GroupKey};
use super::interval::{FEW_REQUESTS, Interval};
use super::names::BoundedNames;

mod latency;
mod margin;
mod paired;
mod pairs;
mod positions;
mod unpaired;
mod width;

pub use pairs::{PairBy, Pairing, Pairs};
pub use positions::{PositionSpread, PositionSums};
pub use width::WIDTH_TOLERANCE;

use margin::{level_of_each, margin};
use pairs::Pair;
use width::DraftWidth;

/// How often requests are drawn anew: a standard error is known to about 3 % then.
const DRAWS: usize = 500;

/// The figures of the whole runs, or of a category, that can err apart from each other: latency, and length or rate.
/// Where the rate has a verdict, steps carry as many drafts on both sides, and then it says what the length says.
const FIGURES_APART: usize = 2;

/// What the figures of the whole runs may use of the chances to err.
const SHARE_OF_FIGURES: f64 = 0.8;

/// What the positions may use.
const SHARE_OF_POSITIONS: f64 = 0.1;

/// What the categories may use.
const SHARE_OF_CATEGORIES: f64 = 0.1;

/// A difference that is smaller than this, relative to the base, comes from rounding.
const ROUNDING: f64 = 1e-9;

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

/// The share of steps that accepted the draft at a position.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PositionDifference {
    /// Counted from 0.
    pub position: u32,
    /// The share on both sides.
    #[serde(flatten)]
    pub difference: Difference,
}

/// The figures of the requests of one tag.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CategoryDifference {
    /// The tag; null: requests without one.
    pub tag: Option<String>,
    /// Length, rate, inter-token latency.
    pub differences: Vec<Difference>,
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
    /// Which requests are held against each other; absent where all are drawn from.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pairing: Option<Pairing>,
    /// Length, rate, inter-token latency.
    pub differences: Vec<Difference>,
    /// By position; empty where one side has no histogram.
    pub positions: Vec<PositionDifference>,
    /// By tag; empty where no request has one.
    pub categories: Vec<CategoryDifference>,
    /// Absent where one side has no inter-token latency.
    pub speed_up: Option<SpeedUp>,
}

/// What a run comes to, whole and by tag.
#[derive(Clone, Debug, Default)]
pub struct RunFigures {
    /// All of it.
    pub whole: Group,
    by_tag: BTreeMap<Option<String>, Group>,
}

impl RunFigures {
    /// Adds the groups of a run up.
    pub fn of<'a>(groups: impl IntoIterator<Item = (&'a GroupKey, &'a Group)>) -> Self {
        let mut run = Self::default();
        for (key, group) in groups {
            run.whole.merge(group);
            run.by_tag.entry(key.tag.clone()).or_default().merge(group);
        }
        run
    }
}

/// Compares a run with the base. `comparisons` is how many runs are compared with this base at once: the more chances
/// for a false alarm, the wider the intervals. The same seed gives the same intervals.
pub fn compare(base: &RunFigures, other: &RunFigures, comparisons: usize, seed: u64) -> Comparison {
    let mut random = fastrand::Rng::with_seed(seed);
    let level = level_of_each(SHARE_OF_FIGURES, comparisons, FIGURES_APART);
    let figures = unpaired::figures(&base.whole, &other.whole, level, &mut random);
    let positions = positions::unpaired(
        [
            &base.whole.evidence.positions,
            &other.whole.evidence.positions,
        ],
        &[unpaired::width(&base.whole), unpaired::width(&other.whole)],
        |positions| level_of_each(SHARE_OF_POSITIONS, comparisons, positions),
    );
    let nothing = Group::default();
    let tags: BTreeSet<&Option<String>> = base.by_tag.keys().chain(other.by_tag.keys()).collect();
    let tagged = tags.into_iter().map(|tag| {
        let sides = [base, other].map(|run| run.by_tag.get(tag).unwrap_or(&nothing));
        Tagged {
            tag,
            requests: sides.map(|group| group.evidence.samples.len()),
            sides,
        }
    });
    let categories = categories(tagged.collect(), comparisons, |[base, other], level| {
        unpaired::figures(base, other, level, &mut random)
    });
    figures.into_comparison(None, positions, categories)
}

/// Compares the requests of two runs pair by pair; the rest as [`compare`]. A request counts in the category that it
/// has on both sides.
pub fn compare_pairs(pairs: &Pairs, comparisons: usize, seed: u64) -> Comparison {
    let mut random = fastrand::Rng::with_seed(seed);
    let all: Vec<&Pair> = pairs.pairs.iter().collect();
    let level = level_of_each(SHARE_OF_FIGURES, comparisons, FIGURES_APART);
    let figures = paired::figures(&all, level, &mut random);
    let positions = paired::by_position(&all, |positions| {
        level_of_each(SHARE_OF_POSITIONS, comparisons, positions)
    });
    let mut by_tag: BTreeMap<Option<String>, Vec<&Pair>> = BTreeMap::new();
    let mut tags = BoundedNames::new(MOST_TAGS);
    for &pair in all.iter().filter(|pair| pair.base.tag == pair.other.tag) {
        let tag = pair.base.tag.as_deref().map(|tag| {
            let admitted = tags.admit(tag);
            tags.name(admitted).to_owned()
        });
        by_tag.entry(tag).or_default().push(pair);
    }
    let tagged = by_tag.iter().map(|(tag, pairs)| Tagged {
        tag,
        requests: [pairs.len(); 2],
        sides: pairs,
    });
    let categories = categories(tagged.collect(), comparisons, |pairs, level| {
        paired::figures(pairs, level, &mut random)
    });
    figures.into_comparison(Some(pairs.pairing), positions, categories)
}

/// What two sides have of one tag.
struct Tagged<'a, T> {
    tag: &'a Option<String>,
    requests: [usize; 2],
    sides: T,
}

/// The categories; none where no request has a tag. Those with too few requests for a verdict can't err, and leave their
/// part of the chances to the others.
fn categories<T>(
    tagged: Vec<Tagged<'_, T>>,
    comparisons: usize,
    mut figures: impl FnMut(T, f64) -> Figures,
) -> Vec<CategoryDifference> {
    if tagged.iter().all(|it| it.tag.is_none()) {
        return Vec::new();
    }
    let is_enough = |&requests: &usize| requests as u64 >= FEW_REQUESTS;
    let judged = tagged.iter().filter(|it| it.requests.iter().all(is_enough));
    let level = level_of_each(
        SHARE_OF_CATEGORIES,
        comparisons,
        FIGURES_APART * judged.count(),
    );
    tagged
        .into_iter()
        .map(|it| CategoryDifference {
            tag: it.tag.clone(),
            differences: figures(it.sides, level).differences,
        })
        .collect()
}

/// What two sides come to.
struct Figures {
    differences: Vec<Difference>,
    speed_up: Option<SpeedUp>,
}

impl Figures {
    fn into_comparison(
        self,
        pairing: Option<Pairing>,
        positions: Vec<PositionDifference>,
        categories: Vec<CategoryDifference>,
    ) -> Comparison {
        Comparison {
            pairing,
            differences: self.differences,
            positions,
            categories,
            speed_up: self.speed_up,
        }
    }
}

/// What was measured of a figure; the first of each two is the base's.
#[derive(Clone, Copy, Debug)]
struct Measured {
    values: [Option<f64>; 2],
    /// Standard error of the difference.
    error: Option<f64>,
    requests: [u64; 2],
}

impl Difference {
    fn of(figure: &str, unit: &str, measured: Measured, level: f64) -> Self {
        let [base, other] = measured.values;
        let [n_base, n_other] = measured.requests;
        let difference = base.zip(other).map(|(base, other)| other - base);
        let margin = measured
            .error
            .and_then(|error| margin(error, n_base.min(n_other), level));
        let interval = difference.zip(margin).map(|(difference, margin)| Interval {
            low: difference - margin,
            high: difference + margin,
            level,
        });
        let (verdict, why) = match (difference, interval) {
            (None, _) => (
                Verdict::Unknown,
                Some("one side does not have it".to_owned()),
            ),
            (Some(difference), Some(interval)) if n_base.min(n_other) >= FEW_REQUESTS => {
                (verdict(base, difference, interval), None)
            }
            _ => {
                let why = format!("a verdict needs {FEW_REQUESTS} requests on both sides");
                (Verdict::TooFew, Some(why))
            }
        };
        Self {
            figure: figure.to_owned(),
            unit: unit.to_owned(),
            base,
            other,
            difference,
            interval,
            relative: difference
                .zip(base)
                .map(|(difference, base)| difference / base)
                .filter(|relative| relative.is_finite()),
            n_base,
            n_other,
            verdict,
            why,
        }
    }

    fn of_length(measured: Measured, level: f64) -> Self {
        let figure = "spec_decode_token_weighted_acceptance_length";
        Self::of(figure, "ratio", measured, level)
    }

    /// Of rates from 0 to 1.
    fn of_rate(measured: Measured, level: f64, widths: &[DraftWidth; 2]) -> Self {
        let percent = Measured {
            values: measured.values.map(|rate| Some(rate? * 100.0)),
            error: measured.error.map(|error| error * 100.0),
            ..measured
        };
        let figure = "spec_decode_overall_draft_acceptance_rate";
        let mut rate = Self::of(figure, "%", percent, level);
        if let Some(different) = width::difference(&widths[0], &widths[1])
            && rate.verdict != Verdict::Unknown
        {
            rate.forbid(&format!(
                "{different}, and the rate falls with the number of drafts by arithmetic, whatever the drafter"
            ));
        }
        rate
    }

    /// Takes the verdict away from a figure that both sides have but whose values don't mean the same, or that neither
    /// can have because of that.
    fn forbid(&mut self, why: &str) {
        self.verdict = Verdict::NotComparable;
        self.why = Some(why.to_owned());
    }
}

fn verdict(base: Option<f64>, difference: f64, interval: Interval) -> Verdict {
    let is_rounding = difference.abs() <= ROUNDING * base.unwrap_or(0.0).abs();
    match interval.excludes(0.0) && !is_rounding {
        false => Verdict::NoEvidence,
        true if difference > 0.0 => Verdict::Higher,
        true => Verdict::Lower,
    }
}

#[cfg(test)]
mod tests;
