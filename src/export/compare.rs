//! A comparison of runs, as JSON and as tables.

use serde::{Deserialize, Serialize};

use crate::observation::Observation;
use crate::stats::Period;
use crate::stats::compare::{Comparison, PairBy, Pairs, RunFigures, compare, compare_pairs};
use crate::store::records::FORCED_ACCEPTANCE;

pub(super) mod columns;
mod tables;

pub use tables::{markdown, text};

/// A run as it was read.
#[derive(Clone, Debug, Default)]
pub struct Side {
    /// Where it came from.
    pub name: String,
    /// What it comes to.
    pub figures: RunFigures,
    /// Its exchanges one by one; needed only to pair them.
    pub exchanges: Vec<Observation>,
    /// Whether the engine was told how much to accept.
    pub is_forced: bool,
}

/// Runs side by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparisonOfRuns {
    /// What the others are held against.
    pub base: Run,
    /// The others in the order given.
    pub others: Vec<ComparedRun>,
}

/// Which run it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Where it came from.
    pub name: String,
    /// `from`: first start, `to`: last end.
    #[serde(flatten)]
    pub period: Period,
    /// Requests with a record; 0 for a run without speculation.
    pub n: u64,
    /// The k of its records, where they give one.
    pub k: Vec<u64>,
    /// What all its figures are marked with, where the engine was told how much to accept.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub mark: Option<String>,
}

/// A run and how it differs from the base.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparedRun {
    /// Which run it is.
    pub run: Run,
    /// How it differs.
    #[serde(flatten)]
    pub comparison: Comparison,
}

/// Compares runs with the base, request by request where `pair` says how.
pub fn comparison(
    base: &Side,
    others: &[Side],
    pair: Option<PairBy>,
    seed: u64,
) -> ComparisonOfRuns {
    let compared = |other: &Side| match pair {
        None => compare(&base.figures, &other.figures, others.len(), seed),
        Some(by) => {
            let pairs = Pairs::find(by, &base.exchanges, &other.exchanges);
            compare_pairs(&pairs, others.len(), seed)
        }
    };
    ComparisonOfRuns {
        base: Run::of(base),
        others: others
            .iter()
            .map(|other| ComparedRun {
                run: Run::of(other),
                comparison: compared(other),
            })
            .collect(),
    }
}

impl Run {
    fn of(side: &Side) -> Self {
        let whole = &side.figures.whole;
        Self {
            name: side.name.clone(),
            period: whole.period,
            n: whole.aiperf.pooled.records,
            k: whole.evidence.records_by_k.keys().copied().collect(),
            mark: side.is_forced.then(|| FORCED_ACCEPTANCE.to_owned()),
        }
    }

    fn title(&self) -> String {
        let mut facts = vec![match self.n {
            0 => "no speculation seen".to_owned(),
            n => format!("{n} requests with numbers"),
        }];
        if !self.k.is_empty() {
            let k: Vec<String> = self.k.iter().map(u64::to_string).collect();
            facts.push(format!("k = {}", k.join(", ")));
        }
        facts.extend(self.mark.clone());
        format!("{} ({})", self.name, facts.join(", "))
    }
}
