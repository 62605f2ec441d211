//! How many bytes per second the observer looks at (real vLLM streams, and JSON replies of 2 KB and of 1 MB), and what the
//! statistics take for each exchange.

#![allow(
    clippy::expect_used,
    reason = "a test fails loudly; clippy sees only the test functions as tests"
)]

mod captured;
#[path = "../tests/numbers_support/mod.rs"]
mod numbers_support;

use std::sync::Arc;
use std::time::Instant;

use captured::body;
use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use numbers_support::traffic;
use spectap::clock::Clock;
use spectap::observation::{Observation, ObservationSink};
use spectap::stats::Statistics;
use spectap::tap::json::Reducer;
use spectap::tap::likeness::LastContent;
use spectap::tap::reply::ReplyObserver;
use spectap::tap::sse::Splitter;

/// Size of one read from a socket, about.
const READ: usize = 16 << 10;

const STREAMS: &[&str] = &[
    "ngram-summary/chat-stream-include-usage-very-long",
    "ngram-summary/completions-stream-include-usage",
    "ngram-summary/generate-stream-include-usage",
    "draft-model-detailed/chat-stream-include-usage-long",
];

fn main() {
    divan::main();
}

#[divan::bench(args = STREAMS)]
fn splitter(bencher: Bencher, case: &str) {
    let body = body(case);
    bencher.counter(BytesCount::of_slice(&body)).bench(|| {
        let mut splitter = Splitter::default();
        let mut blocks = 0;
        for read in body.chunks(READ) {
            splitter.feed(black_box(read), |_| blocks += 1);
        }
        blocks
    });
}

#[divan::bench(args = STREAMS)]
fn splitter_and_needle(bencher: Bencher, case: &str) {
    let body = body(case);
    bencher.counter(BytesCount::of_slice(&body)).bench(|| {
        let mut splitter = Splitter::default();
        let (mut last, mut parsed) = (LastContent::default(), 0);
        for read in body.chunks(READ) {
            splitter.feed(black_box(read), |block| {
                parsed += u32::from(block.data().is_some_and(|data| last.must_parse(&data)));
            });
        }
        parsed
    });
}

#[divan::bench(args = STREAMS)]
fn whole_observer(bencher: Bencher, case: &str) {
    let body = body(case);
    let at = Instant::now();
    bencher.counter(BytesCount::of_slice(&body)).bench(|| {
        let mut observer = ReplyObserver::new_stream();
        for read in body.chunks(READ) {
            observer.see(black_box(read), at);
        }
        observer.finish()
    });
}

/// A stored chat reply of 2 KB.
#[divan::bench]
fn reducer_on_two_kilobytes(bencher: Bencher) {
    let body = body("ngram-summary/chat-nonstream-long");
    bencher.counter(BytesCount::of_slice(&body)).bench(|| {
        let mut reducer = Reducer::new();
        reducer.feed(black_box(&body));
        reducer.read(|json| json.is_object())
    });
}

/// The same with all that is read of it.
#[divan::bench]
fn whole_reply_of_two_kilobytes(bencher: Bencher) {
    let body = body("ngram-summary/chat-nonstream-long");
    let at = Instant::now();
    bencher.counter(BytesCount::of_slice(&body)).bench(|| {
        let mut observer = ReplyObserver::new_json();
        observer.see(black_box(&body), at);
        observer.finish()
    });
}

/// A stored reply with its first choice repeated until it is 1 MB large: text, and log probabilities.
#[divan::bench(args = ["ngram-summary/chat-nonstream-long", "ngram-summary/chat-nonstream-logprobs"])]
fn reducer_on_one_megabyte(bencher: Bencher, case: &str) {
    let mut reply: serde_json::Value = serde_json::from_slice(&body(case)).unwrap_or_default();
    let choice = reply["choices"][0].clone();
    let copies = (1 << 20) / choice.to_string().len();
    reply["choices"] = vec![choice; copies].into();
    let body = reply.to_string().into_bytes();
    bencher.counter(BytesCount::of_slice(&body)).bench(|| {
        let mut reducer = Reducer::new();
        for read in body.chunks(READ) {
            reducer.feed(black_box(read));
        }
        reducer.read(|json| json.is_object())
    });
}

/// Exchanges of as many models and tags.
fn exchanges(count: u64, (models, tags): (u64, u64)) -> Vec<Arc<Observation>> {
    let exchange = |number| Arc::new(traffic::exchange(number, models, tags));
    (0..count).map(exchange).collect()
}

const LABELS: [(u64, u64); 2] = [(1, 1), (100, 50)];

/// What the data path takes to write an exchange down.
#[divan::bench(args = LABELS, sample_count = 20)]
fn statistics_record(bencher: Bencher, labels: (u64, u64)) {
    let exchanges = exchanges(40_000, labels);
    let (before, measured) = exchanges.split_at(20_000);
    bencher
        .counter(ItemsCount::new(measured.len()))
        .with_inputs(|| {
            let statistics = Statistics::new();
            for exchange in before {
                statistics.record(Arc::clone(exchange));
            }
            statistics
        })
        .bench_values(|statistics| {
            for exchange in measured {
                statistics.record(Arc::clone(exchange));
            }
            statistics
        });
}

/// What it takes behind the data path to count an exchange that leaves the log, by run and by each facet.
#[divan::bench(args = LABELS, sample_count = 20)]
fn statistics_settle(bencher: Bencher, labels: (u64, u64)) {
    // So few that they wait.
    const WAITING: usize = 2_000;
    let exchanges = exchanges(20_000 + WAITING as u64, labels);
    let (before, measured) = exchanges.split_at(20_000);
    bencher
        .counter(ItemsCount::new(WAITING))
        .with_inputs(|| {
            let statistics = Statistics::with_log(Clock::system(), 8);
            for exchange in before {
                statistics.record(Arc::clone(exchange));
            }
            statistics.settle();
            for exchange in measured {
                statistics.record(Arc::clone(exchange));
            }
            statistics
        })
        .bench_values(|statistics| {
            statistics.settle();
            statistics
        });
}
