//! How many bytes per second the observer looks at: real vLLM streams, and JSON replies of 2 KB and of 1 MB.

mod captured;

use std::time::Instant;

use captured::body;
use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use spectap::tap::json::Reducer;
use spectap::tap::needle::Needle;
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
        let (mut needle, mut parsed) = (Needle::default(), 0);
        for read in body.chunks(READ) {
            splitter.feed(black_box(read), |block| {
                parsed += u32::from(block.data().is_some_and(|data| needle.must_parse(&data)));
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
