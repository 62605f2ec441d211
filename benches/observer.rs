//! How many bytes per second the observer looks at (real vLLM streams, and a large JSON reply), and what the statistics
//! take for each exchange.

#![allow(
    clippy::expect_used,
    reason = "a test fails loudly; clippy sees only the test functions as tests"
)]

#[path = "../tests/numbers_support/mod.rs"]
mod numbers_support;

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use numbers_support::traffic;
use spectap::clock::Clock;
use spectap::observation::{Observation, ObservationSink};
use spectap::stats::Statistics;
use spectap::tap::json::Reducer;
use spectap::tap::needle::must_parse;
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

/// Body of a stored response; chunk framing, if any, is taken off line by line.
fn body(case: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/captures/vllm-0.32.0")
        .join(case)
        .with_extension("http");
    let bytes = std::fs::read(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
    let text = String::from_utf8_lossy(&bytes);
    let (_, body) = text.split_once("\r\n\r\n").unwrap_or_default();
    if body.starts_with('{') {
        return body.as_bytes().to_vec();
    }
    body.lines()
        .filter(|line| line.starts_with("data: "))
        .flat_map(|line| [line, "\n\n"])
        .collect::<String>()
        .into_bytes()
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
        let mut parsed = 0;
        for read in body.chunks(READ) {
            splitter.feed(black_box(read), |block| {
                parsed += u32::from(block.data().is_some_and(|data| must_parse(&data)));
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
        reducer.finish()
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
