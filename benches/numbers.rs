//! What an observation costs once it is made, and what reading the numbers costs: the sinks one by one, a scrape at the
//! full budget of series, a summary.

#![allow(
    clippy::expect_used,
    reason = "a benchmark ends at the first surprise; clippy sees only the test functions as tests"
)]

#[path = "../tests/numbers_support/mod.rs"]
mod numbers_support;

use std::sync::Arc;

use divan::{Bencher, black_box};
use numbers_support::{record, recorded};
use prometheus::{Registry, TextEncoder};
use spectap::clock::Clock;
use spectap::counters::TapCounters;
use spectap::export::prometheus::{BuildInfo, register};
use spectap::export::{By, Query, openmetrics, summary};
use spectap::logs;
use spectap::observation::{Observation, ObservationSink};
use spectap::runs::Runs;
use spectap::stats::Statistics;
use spectap::store::ObservationRing;

/// The default of `--max-series`.
const MOST_SERIES: usize = 5_000;

fn main() {
    divan::main();
}

fn exchange() -> Arc<Observation> {
    Arc::new(recorded(vec![record(&[11, 3, 10, 8, 7])]))
}

/// Statistics of so many models, each with so many tags.
fn statistics(models: usize, tags: usize) -> Arc<Statistics> {
    let statistics = Statistics::new();
    for number in 0..models * tags * 20 {
        let mut exchange = recorded(vec![record(&[11, 3, 10, 8, 7])]);
        exchange.model = Some(format!("model {}", number % models));
        exchange.tag = Some(format!("tag {}", number / models % tags));
        statistics.record(Arc::new(exchange));
    }
    Arc::new(statistics)
}

#[divan::bench]
fn statistics_record(bencher: Bencher) {
    let (statistics, exchange) = (Statistics::new(), exchange());
    bencher.bench_local(|| statistics.record(Arc::clone(&exchange)));
}

/// The ring is full, so that each observation drives another one out.
#[divan::bench]
fn ring_record(bencher: Bencher) {
    let ring = ObservationRing::new();
    let mut number = 0u64;
    let mut next = || {
        number += 1;
        let mut exchange = Observation::clone(&exchange());
        exchange.id = format!("01J{number:023}");
        Arc::new(exchange)
    };
    for _ in 0..20_000 {
        ring.record(next());
    }
    bencher
        .with_inputs(next)
        .bench_local_values(|exchange| ring.record(exchange));
}

/// Nobody asked for a log of exchanges.
#[divan::bench]
fn log_line_that_is_off(bencher: Bencher) {
    let exchange = exchange();
    bencher.bench_local(|| logs::exchange(black_box(&exchange)));
}

#[divan::bench]
fn runs_ended(bencher: Bencher) {
    let (runs, exchange) = (Runs::new(Clock::system()), exchange());
    bencher.bench_local(|| runs.ended(&exchange, Some("vllm-0.32.0-5c435f56")));
}

/// All series that the budget allows, as classic text and as OpenMetrics.
#[divan::bench(args = ["classic", "openmetrics"])]
fn scrape(bencher: Bencher, kind: &str) {
    let registry = Registry::new();
    let build = BuildInfo {
        version: "0".to_owned(),
        commit: String::new(),
    };
    TapCounters::register(&registry).expect("a new registry");
    let exemplars =
        register(&registry, statistics(100, 10), &build, MOST_SERIES).expect("a new registry");
    bencher.bench_local(|| {
        let families = registry.gather();
        if kind == "classic" {
            TextEncoder::new().encode_to_string(&families)
        } else {
            Ok(openmetrics::render(&families, &exemplars.now()))
        }
    });
}

/// Of all traffic together, and by model.
#[divan::bench(args = ["all", "by model"])]
fn summary_of_twenty_models(bencher: Bencher, kind: &str) {
    let statistics = statistics(20, 1);
    let mut query = Query::default();
    if kind == "by model" {
        query.by = vec![By::Model];
    }
    bencher.bench_local(|| summary(black_box(&statistics), &query));
}
