//! What the engine's own counters say, as a summary shows it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::metrics::{Metric, Metrics, OVERALL_RATE, TOKEN_WEIGHTED_LENGTH, put};
use crate::record::AcceptanceHistogram;
use crate::scrape::{Counts, Gauge, ServerFigures};
use crate::stats::Moment;

/// The engine's own counters over the summary's stretch of time. They are of the whole server: of every request of every
/// client, through the tap or past it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerSummary {
    /// The page that is read.
    pub url: String,
    /// Whose series are on it.
    pub engine: Option<String>,
    /// The engine's version, where it tells one.
    pub version: Option<String>,
    /// Most drafts of a step, where the page tells it.
    pub k: Option<u64>,
    /// First reading of the stretch; null where the figures are of all that the engine ever counted.
    pub from: Option<Moment>,
    /// Last reading.
    pub to: Moment,
    /// Restarts of the engine in between.
    pub resets: u64,
    /// Why the last try to read the page failed; null where it did not.
    pub trouble: Option<String>,
    /// Whether the page has counters of speculation at all.
    pub speculates: bool,
    /// What the counters can't tell.
    pub catch: Vec<String>,
    /// Figures by AIPerf's tags; `n` is the number of steps, of a rate that of drafted tokens.
    pub metrics: Metrics,
    /// Steps by number of accepted drafts; null where the engine does not count by position.
    pub pooled_spec_decode_acceptance_histogram: Option<AcceptanceHistogram>,
    /// Share of all steps that accepted at least position + 1 drafts.
    pub survival: Vec<PositionShare>,
    /// The figures of each model, where there are several.
    pub models: Vec<ModelSummary>,
    /// The figures of each data-parallel rank, the worst length first; empty where there is but one.
    pub ranks: Vec<RankSummary>,
    /// What the engine computed itself over a stretch of its own; comparable with nothing else here.
    pub gauges: Vec<Gauge>,
}

/// Share of steps that got past a position.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PositionShare {
    /// Counted from 0.
    pub position: u32,
    /// Share of all steps; steps that drafted less deep count as not accepted, so the true share is at least this.
    pub share: f64,
    /// Steps.
    pub n: u64,
}

/// One model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelSummary {
    /// Its name; null where the engine names none.
    pub model: Option<String>,
    /// Its figures.
    pub metrics: Metrics,
}

/// One rank.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RankSummary {
    /// Its name.
    pub rank: String,
    /// Its figures.
    pub metrics: Metrics,
}

impl ServerSummary {
    /// Sums up.
    pub fn of(figures: &ServerFigures) -> Self {
        let sum = figures.sum();
        let mut models: BTreeMap<Option<&str>, Counts> = BTreeMap::new();
        for counted in &figures.counted {
            let model = models.entry(counted.source.model.as_deref()).or_default();
            model.add(&counted.counts);
        }
        if models.len() < 2 {
            models.clear();
        }
        let mut ranks: Vec<(&str, Counts)> = figures.by_rank().into_iter().collect();
        let length = |counts: &Counts| counts.length().unwrap_or(f64::INFINITY);
        ranks.sort_by(|(_, one), (_, other)| length(one).total_cmp(&length(other)));
        Self {
            url: figures.url.clone(),
            engine: figures.engine.clone(),
            version: figures.version.clone(),
            k: figures.k,
            from: figures.from.map(Moment),
            to: Moment(figures.to),
            resets: figures.resets,
            trouble: figures.trouble.clone(),
            speculates: figures.speculates,
            catch: figures.catch.clone(),
            metrics: metrics_of(&sum),
            pooled_spec_decode_acceptance_histogram: sum.histogram(),
            survival: survival(&sum),
            models: models
                .into_iter()
                .map(|(model, counts)| ModelSummary {
                    model: model.map(str::to_owned),
                    metrics: metrics_of(&counts),
                })
                .collect(),
            ranks: ranks
                .into_iter()
                .map(|(rank, counts)| RankSummary {
                    rank: rank.to_owned(),
                    metrics: metrics_of(&counts),
                })
                .collect(),
            gauges: figures.gauges.clone(),
        }
    }
}

fn metrics_of(counts: &Counts) -> Metrics {
    let (steps, drafted) = (counts.steps.unwrap_or(0), counts.drafted.unwrap_or(0));
    let total = |count: Option<u64>| count.map(|count| count as f64);
    let generated_per_step = counts
        .generation_tokens
        .filter(|_| steps > 0)
        .map(|tokens| tokens as f64 / steps as f64);
    let mut metrics = Metrics::new();
    for (tag, unit, value, n) in [
        (TOKEN_WEIGHTED_LENGTH, "ratio", counts.length(), steps),
        (
            OVERALL_RATE,
            "%",
            counts.rate().map(|rate| rate * 100.0),
            drafted,
        ),
        (
            "total_spec_decode_steps",
            "count",
            total(counts.steps),
            steps,
        ),
        (
            "total_accepted_draft_tokens",
            "tokens",
            total(counts.accepted),
            steps,
        ),
        ("total_draft_tokens", "tokens", total(counts.drafted), steps),
        (
            "generation_tokens_per_step",
            "tokens",
            generated_per_step,
            steps,
        ),
        (
            "total_generation_tokens",
            "tokens",
            total(counts.generation_tokens),
            counts.requests.unwrap_or(0),
        ),
    ] {
        let metric = value.map(|value| Metric::run_level(unit, value, n));
        put(&mut metrics, tag, metric);
    }
    metrics
}

fn survival(counts: &Counts) -> Vec<PositionShare> {
    let steps = counts.steps.unwrap_or(0);
    if steps == 0 {
        return Vec::new();
    }
    let positions = counts.accepted_at.iter();
    positions
        .map(|(&position, &accepted)| PositionShare {
            position,
            share: accepted as f64 / steps as f64,
            n: steps,
        })
        .collect()
}
