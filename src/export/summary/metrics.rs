//! Figures by AIPerf's tags: which there are, their units, and when one is left out.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::throughput;
use crate::stats::interval::{self, FEW_REQUESTS, Interval, SEED};
use crate::stats::{Distribution, Group, Pooled, RecordColumn, TrafficColumn, ViewName, gain};

pub(super) const TOKEN_WEIGHTED_LENGTH: &str = "spec_decode_token_weighted_acceptance_length";
pub(super) const OVERALL_RATE: &str = "spec_decode_overall_draft_acceptance_rate";

/// Tag, unit and scale of the per-request figures of the records.
const RECORDS: [(&str, &str, RecordColumn, f64); 6] = [
    (
        "spec_decode_acceptance_length",
        "ratio",
        RecordColumn::AcceptanceLength,
        1.0,
    ),
    (
        "spec_decode_draft_acceptance_rate",
        "%",
        RecordColumn::DraftAcceptanceRate,
        100.0,
    ),
    (
        "spec_decode_accepted_per_verified",
        "ratio",
        RecordColumn::AcceptedPerVerified,
        1.0,
    ),
    ("spec_decode_steps", "count", RecordColumn::Steps, 1.0),
    (
        "spec_decode_accepted_draft_tokens",
        "tokens",
        RecordColumn::AcceptedDraftTokens,
        1.0,
    ),
    (
        "spec_decode_draft_tokens",
        "tokens",
        RecordColumn::DraftTokens,
        1.0,
    ),
];

/// Tag and unit of the per-request figures of the traffic.
const TRAFFIC: [(&str, &str, TrafficColumn); 6] = [
    ("time_to_first_token", "ms", TrafficColumn::TimeToFirstToken),
    (
        "inter_token_latency",
        "ms",
        TrafficColumn::InterTokenLatency,
    ),
    (
        "inter_chunk_latency",
        "ms",
        TrafficColumn::InterChunkLatency,
    ),
    ("request_latency", "ms", TrafficColumn::RequestLatency),
    (
        "output_sequence_length",
        "tokens",
        TrafficColumn::OutputSequenceLength,
    ),
    (
        "input_sequence_length",
        "tokens",
        TrafficColumn::InputSequenceLength,
    ),
];

/// Columns whose values are out at the same time: with more, a summary takes more memory; with fewer, longer.
const COLUMNS_AT_ONCE: usize = 2;

/// Figures by AIPerf's tag. A figure without a value is absent, never 0.
pub type Metrics = BTreeMap<String, Metric>;

/// One figure. Per-request figures have all members but `n`; run-level ones have `unit`, `avg` and `n` only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// Unit of every value but `count` and `n`.
    pub unit: String,
    /// Mean; of a run-level figure its value.
    pub avg: f64,
    /// Smallest value.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub min: Option<f64>,
    /// Largest value.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub max: Option<f64>,
    /// Population standard deviation.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub std: Option<f64>,
    /// Percentiles.
    #[serde(flatten)]
    pub percentiles: Option<Percentiles>,
    /// Sum of the values.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sum: Option<f64>,
    /// Number of values.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub count: Option<u64>,
    /// Whether the percentiles are exact; else they are off by at most 0.5 % of their value.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub exact: Option<bool>,
    /// Records that a run-level figure is made of.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub n: Option<u64>,
    /// Where the true value of a run-level figure lies, as far as chance between requests decides it; absent with fewer
    /// than two requests.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub interval: Option<Interval>,
    /// A run-level ratio of fewer than 30 requests: to be taken with care.
    #[serde(skip_serializing_if = "is_false", default)]
    pub few_requests: bool,
}

fn is_false(mark: &bool) -> bool {
    !mark
}

/// AIPerf's percentiles, by linear interpolation on rank q/100·(n − 1).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Percentiles {
    pub p1: f64,
    pub p5: f64,
    pub p10: f64,
    pub p25: f64,
    pub p50: f64,
    pub p75: f64,
    pub p90: f64,
    pub p95: f64,
    pub p99: f64,
}

impl Metric {
    /// A per-request figure; absent without values. `scale` turns a ratio into percent where AIPerf's tag does.
    fn per_request(unit: &str, distribution: Distribution, scale: f64) -> Option<Self> {
        let statistic = distribution.statistic()?;
        let [p1, p5, p10, p25, p50, p75, p90, p95, p99] =
            statistic.percentiles.map(|value| value * scale);
        Some(Self {
            unit: unit.to_owned(),
            avg: statistic.avg * scale,
            min: Some(statistic.min * scale),
            max: Some(statistic.max * scale),
            std: Some(statistic.std * scale),
            percentiles: Some(Percentiles {
                p1,
                p5,
                p10,
                p25,
                p50,
                p75,
                p90,
                p95,
                p99,
            }),
            sum: Some(statistic.sum * scale),
            count: Some(statistic.count),
            exact: Some(statistic.exact),
            n: None,
            interval: None,
            few_requests: false,
        })
    }

    pub(super) fn run_level(unit: &str, value: f64, n: u64) -> Self {
        Self {
            unit: unit.to_owned(),
            avg: value,
            min: None,
            max: None,
            std: None,
            percentiles: None,
            sum: None,
            count: None,
            exact: None,
            n: Some(n),
            interval: None,
            few_requests: false,
        }
    }
}

impl Metric {
    /// With the mark of few requests where it is due.
    fn marked(self) -> Self {
        Self {
            few_requests: self.n.is_some_and(|n| n < FEW_REQUESTS),
            ..self
        }
    }
}

/// The figures of the `aiperf` view and of the traffic, and those of the `all` view.
pub(super) fn of_group(group: &Group, with_intervals: bool) -> (Metrics, Metrics) {
    let mut metrics = of_view(group, ViewName::Aiperf);
    // Nearly always the two views are of the same records.
    let all = if group.rest.pooled == Pooled::default() {
        metrics.clone()
    } else {
        of_view(group, ViewName::All)
    };
    if with_intervals {
        put_intervals(&mut metrics, group);
    }
    for part in TRAFFIC.chunks(COLUMNS_AT_ONCE) {
        let columns: Vec<TrafficColumn> = part.iter().map(|(_, _, column)| *column).collect();
        for ((tag, unit, _), values) in part.iter().zip(group.traffic(&columns)) {
            put(&mut metrics, tag, Metric::per_request(unit, values, 1.0));
        }
    }
    throughput::add(&mut metrics, group);
    (metrics, all)
}

fn put_intervals(metrics: &mut Metrics, group: &Group) {
    let intervals = interval::of_run(&group.aiperf.pooled, &group.evidence.samples, SEED);
    for (tag, interval) in [
        (TOKEN_WEIGHTED_LENGTH, intervals.length),
        (
            OVERALL_RATE,
            intervals.rate.map(|interval| interval.scaled(100.0)),
        ),
    ] {
        if let Some(metric) = metrics.get_mut(tag) {
            metric.interval = interval;
        }
    }
}

/// What drafting bought. Ratios are 0 to 1 or above, never percent.
pub(super) fn of_gain(group: &Group) -> Metrics {
    let pooled = &group.aiperf.pooled;
    let output = &group.evidence.output;
    let gain = gain::of(pooled, output);
    let mut metrics = Metrics::new();
    for (tag, unit, value, n) in [
        (
            "draft_token_share",
            "ratio",
            gain.draft_token_share,
            output.records,
        ),
        (
            "wasted_drafts_per_accepted",
            "ratio",
            gain.wasted_per_accepted,
            pooled.records,
        ),
        (
            "passes_that_drafted",
            "ratio",
            gain.passes_that_drafted,
            output.records,
        ),
        (
            "tokens_per_pass",
            "tokens",
            gain.tokens_per_pass,
            output.records,
        ),
        (
            "drafts_per_step",
            "tokens",
            gain.drafts_per_step,
            pooled.records_with_steps,
        ),
    ] {
        let metric = value.map(|value| Metric::run_level(unit, value, n).marked());
        put(&mut metrics, tag, metric);
    }
    metrics
}

/// The acceptance figures of one view.
fn of_view(group: &Group, view: ViewName) -> Metrics {
    let mut metrics = Metrics::new();
    for part in RECORDS.chunks(COLUMNS_AT_ONCE) {
        let columns: Vec<RecordColumn> = part.iter().map(|(_, _, column, _)| *column).collect();
        for ((tag, unit, _, scale), values) in part.iter().zip(group.records(view, &columns)) {
            put(&mut metrics, tag, Metric::per_request(unit, values, *scale));
        }
    }
    match view {
        ViewName::Aiperf => put_run_level(&mut metrics, &group.aiperf.pooled),
        ViewName::All => put_run_level(&mut metrics, &group.all_pooled()),
    }
    metrics
}

fn put_run_level(metrics: &mut Metrics, pooled: &Pooled) {
    let (n, n_steps) = (pooled.records, pooled.records_with_steps);
    let with_n = |n: u64, unit: &str, value: Option<f64>| {
        value
            .filter(|_| n > 0)
            .map(|value| Metric::run_level(unit, value, n))
    };
    put(
        metrics,
        TOKEN_WEIGHTED_LENGTH,
        with_n(n_steps, "ratio", pooled.length()).map(Metric::marked),
    );
    put(
        metrics,
        OVERALL_RATE,
        with_n(n, "%", pooled.rate().map(|rate| rate * 100.0)).map(Metric::marked),
    );
    put(
        metrics,
        "total_spec_decode_steps",
        with_n(n_steps, "count", Some(pooled.steps as f64)),
    );
    put(
        metrics,
        "total_accepted_draft_tokens",
        with_n(n, "tokens", Some(pooled.accepted as f64)),
    );
    put(
        metrics,
        "total_draft_tokens",
        with_n(n, "tokens", Some(pooled.drafted as f64)),
    );
    // Absent while it is 0, as AIPerf has it. Its n is all payloads, since records leave zero-step ones out.
    if pooled.zero_step > 0 {
        let payloads = n.saturating_add(pooled.zero_step);
        put(
            metrics,
            "spec_decode_zero_step_requests",
            with_n(payloads, "requests", Some(pooled.zero_step as f64)),
        );
    }
}

pub(super) fn put(metrics: &mut Metrics, tag: &str, metric: Option<Metric>) {
    if let Some(metric) = metric {
        metrics.insert(tag.to_owned(), metric);
    }
}
