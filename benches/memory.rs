//! Memory of a million exchanges over every model and tag that is told apart, and how long a summary of them takes.
//! `cargo bench --bench memory`, or with `--profile dev` where a release build takes too long: memory is the same.

#![allow(
    clippy::expect_used,
    reason = "a test fails loudly; clippy sees only the test functions as tests"
)]

#[path = "../tests/numbers_support/mod.rs"]
mod numbers_support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use numbers_support::{observation, record, recorded};
use spectap::clock::Clock;
use spectap::export::{By, Query, summary};
use spectap::observation::{Observation, ObservationSink, Usage};
use spectap::stats::{MOST_MODELS, MOST_TAGS, Statistics, Window};

const EXCHANGES: u64 = 1_000_000;

/// What they may take, in bytes.
const MOST_BYTES: u64 = 200_000_000;

/// Time from one exchange's end to the next one's.
const PACE: Duration = Duration::from_millis(10);

/// Memory of this process, in bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kilobytes.expect("a number") * 1024
}

/// A number below `below` that looks random and is the same in every run.
fn scattered(number: u64, salt: u64, below: u64) -> u64 {
    let mut mixed = (number ^ (salt << 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed ^= mixed >> 29;
    mixed = mixed.wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (mixed ^ (mixed >> 32)) % below
}

/// Exchanges with times and counts as real traffic has them: no two alike.
fn exchange(number: u64) -> Observation {
    let random = |salt, below| scattered(number, salt, below);
    let steps = 20 + random(1, 200);
    let deep = random(2, steps);
    let mut exchange = recorded(vec![record(&[
        steps - deep,
        deep / 2,
        deep / 4,
        deep - deep / 2 - deep / 4,
        random(3, 9),
    ])]);
    exchange.model = Some(format!("model {}", random(4, MOST_MODELS as u64)));
    exchange.tag = Some(format!("tag {}", random(5, MOST_TAGS as u64)));
    exchange.run = Some("a run".into());
    exchange.in_flight = 1 + random(6, 100);
    exchange.stream = random(7, 3) > 0;
    let completion = 50 + random(8, 1_000);
    exchange.usage = Usage {
        prompt_tokens: Some(10 + random(9, 30_000)),
        completion_tokens: Some(completion),
        cached_tokens: Some(random(10, 10)),
        reasoning_tokens: None,
    };
    let first = 20.0 + random(11, 1_000_000) as f64 / 997.0;
    let latency = first + completion as f64 * (5.0 + random(12, 100_000) as f64 / 9_973.0);
    exchange.timing.time_to_first_token_ms = Some(first);
    exchange.timing.request_latency_ms = Some(latency);
    exchange.timing.inter_token_latency_ms = Some((latency - first) / (completion - 1) as f64);
    exchange.timing.inter_chunk_latency_ms = Some((latency - first) / steps as f64);
    exchange
}

fn main() {
    let clock = Clock::by_hand(observation().ended_at);
    let statistics = Statistics::with_clock(clock.clone());
    let before = resident();
    for number in 0..EXCHANGES {
        clock.advance(PACE);
        let mut exchange = exchange(number);
        exchange.ended_at = clock.now();
        exchange.started_at = clock.now() - Duration::from_secs(2);
        statistics.record(Arc::new(exchange));
    }
    let used = resident().saturating_sub(before);
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
    assert!(used < MOST_BYTES, "more than {MOST_BYTES} bytes");
}
