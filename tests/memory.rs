//! What an exchange takes in memory, measured from outside: alone in its file, since it looks at the whole process.
//! `cargo bench --bench memory` does the same with a million exchanges.

#![cfg(target_os = "linux")]
#![allow(
    clippy::expect_used,
    reason = "a test fails loudly; clippy sees only the test functions as tests"
)]

mod numbers_support;

use std::ops::Range;
use std::sync::Arc;

use numbers_support::traffic;
use spectap::observation::ObservationSink;
use spectap::stats::{MOST_MODELS, MOST_TAGS, Statistics};

/// Memory of this process, in bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kilobytes.expect("a number") * 1024
}

#[test]
fn an_exchange_takes_a_row_in_its_group_and_one_in_the_log_and_no_more() {
    const BEFORE: u64 = 30_000;
    const MORE: u64 = 40_000;
    let statistics = Statistics::new();
    let record = |numbers: Range<u64>| {
        for number in numbers {
            let exchange = traffic::exchange(number, MOST_MODELS as u64, MOST_TAGS as u64);
            statistics.record(Arc::new(exchange));
        }
    };
    // By then there are exchanges of every model and tag.
    record(0..BEFORE);
    let before = resident();
    record(BEFORE..BEFORE + MORE);
    let bytes = resident().saturating_sub(before) / MORE;
    println!("{bytes} bytes for each exchange");
    // About 86 in the log and 40 in the group.
    assert!(bytes < 165, "{bytes} bytes for each exchange");
}
