//! Memory of a million exchanges over every model and tag that is told apart, and how long a summary of them takes.
//! `cargo bench --bench memory`, or with `--profile dev` where a release build takes too long: memory is the same.

#![allow(
    clippy::expect_used,
    reason = "a test fails loudly; clippy sees only the test functions as tests"
)]

#[path = "../tests/numbers_support/mod.rs"]
mod numbers_support;

use std::sync::Arc;
use std::time::Instant;

use numbers_support::traffic::{self, PACE};
use spectap::clock::Clock;
use spectap::export::{By, Query, summary};
use spectap::observation::ObservationSink;
use spectap::stats::{MOST_MODELS, MOST_TAGS, Statistics, Window};

const EXCHANGES: u64 = 1_000_000;

/// What they may take, in bytes.
const MOST_BYTES: u64 = 200_000_000;

/// Memory of this process, in bytes: `VmRSS:` now, `VmHWM:` at its peak.
fn resident(which: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with(which));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kilobytes.expect("a number") * 1024
}

fn main() {
    let clock = Clock::by_hand(traffic::end_of(0));
    let statistics = Statistics::with_clock(clock.clone());
    let before = resident("VmRSS:");
    for number in 0..EXCHANGES {
        let exchange = traffic::exchange(number, MOST_MODELS as u64, MOST_TAGS as u64);
        statistics.record(Arc::new(exchange));
        clock.advance(PACE);
    }
    let used = resident("VmRSS:").saturating_sub(before);
    println!("{EXCHANGES} exchanges: {} MB", used / 1_000_000);
    let all = summary(&statistics, &Query::default());
    assert_eq!(all.n.recorded, EXCHANGES, "nothing is lost");
    for (name, window, by) in [
        ("all", Window::All, vec![]),
        ("all by context", Window::All, vec![By::Context]),
        ("1h by model", Window::Hour, vec![By::Model]),
        (
            "5m by model and context",
            Window::FiveMinutes,
            vec![By::Model, By::Context],
        ),
    ] {
        let query = Query {
            by,
            window,
            ..Query::default()
        };
        let started = Instant::now();
        let n = summary(&statistics, &query).n.exchanges;
        println!("summary {name}: {n} exchanges in {:?}", started.elapsed());
    }
    let peak = resident("VmHWM:").saturating_sub(before);
    println!("at the peak of these: {} MB", peak / 1_000_000);
    assert!(used < MOST_BYTES, "more than {MOST_BYTES} bytes");
}
