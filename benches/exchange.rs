//! What one exchange costs: all of the tap's work from the request's head to the observation, and each part by itself.

mod captured;

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use captured::body;
use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use http::{Request, Response, request, response};
use prometheus::Registry;
use spectap::clock::Clock;
use spectap::counters::TapCounters;
use spectap::logs;
use spectap::observation::{Observation, ObservationSink};
use spectap::runs::Runs;
use spectap::stats::Statistics;
use spectap::store::ObservationRing;
use spectap::switch::InjectSwitch;
use spectap::tap::{
    AskSglang, ConnectionMemory, End, Exchange, ExposeUsage, Pushed, TagSource, Tap, TapSettings,
};

/// Events of the benchmarked stream, `[DONE]` and the usage event included.
const EVENTS: usize = 40;

const UNARY: &str = r#"{"model":"tiny-model","messages":[{"role":"user","content":"Count the steps, count the drafts, and divide."}],"max_tokens":4096,"temperature":0}"#;

const STREAMED: &str = r#"{"model":"tiny-model","messages":[{"role":"user","content":"Count the steps, count the drafts, and divide."}],"max_tokens":4096,"temperature":0,"stream":true}"#;

fn main() {
    divan::main();
}

/// Takes observations and keeps none.
struct Nowhere;

impl ObservationSink for Nowhere {
    fn record(&self, observation: Arc<Observation>) {
        black_box(observation);
    }
}

/// The sinks of a serving instance without a records file.
#[derive(Default)]
struct Sinks {
    statistics: Statistics,
    ring: ObservationRing,
}

impl ObservationSink for Sinks {
    fn record(&self, observation: Arc<Observation>) {
        logs::exchange(&observation);
        self.statistics.record(Arc::clone(&observation));
        self.ring.record(observation);
    }
}

fn tap(sink: impl ObservationSink + 'static) -> Tap {
    let settings = TapSettings {
        lane: "127.0.0.1:8090".to_owned(),
        engine: None,
        inject: InjectSwitch::new(true),
        expose_usage: ExposeUsage::AsRequested,
        ask_sglang: AskSglang::Auto,
        ask_sglang_unary: false,
        usage_details: false,
        tag: TagSource::default(),
        runs: Runs::new(Clock::system()),
    };
    let counters =
        TapCounters::register(&Registry::new()).unwrap_or_else(|why| panic!("the counters: {why}"));
    Tap::new(settings, counters, Arc::new(sink))
}

fn request(body: &str) -> request::Parts {
    Request::post("/v1/chat/completions")
        .header("host", "127.0.0.1:8090")
        .header("accept", "application/json")
        .header("content-type", "application/json")
        .header("content-length", body.len())
        .header("user-agent", "AsyncOpenAI/Python 2.9.0")
        .header("authorization", "Bearer none")
        .header("x-stainless-lang", "python")
        .body(())
        .unwrap_or_default()
        .into_parts()
        .0
}

fn response(content_type: &str) -> response::Parts {
    Response::builder()
        .header("date", "Tue, 01 Dec 2026 01:10:08 GMT")
        .header("server", "uvicorn")
        .header("content-type", content_type)
        .header("vary", "Origin")
        .body(())
        .unwrap_or_default()
        .into_parts()
        .0
}

/// A request and what comes back, piece by piece.
struct Traffic {
    request: request::Parts,
    sent: Bytes,
    response: response::Parts,
    replied: Vec<Bytes>,
    memory: ConnectionMemory,
}

impl Traffic {
    /// A chat reply of 2 KB with acceptance numbers.
    fn unary() -> Self {
        Self {
            request: request(UNARY),
            sent: Bytes::from_static(UNARY.as_bytes()),
            response: response("application/json"),
            replied: vec![body("ngram-summary/chat-nonstream-long").into()],
            memory: ConnectionMemory::default(),
        }
    }

    /// A stream whose usage was not asked for: it is asked for, read and taken out again. One piece per event.
    fn streamed() -> Self {
        let body = body("ngram-summary/chat-stream-include-usage-very-long");
        let body = String::from_utf8_lossy(&body);
        let events: Vec<&str> = body.split_inclusive("\n\n").collect();
        let (first, last) = (&events[..EVENTS - 3], &events[events.len() - 3..]);
        Self {
            request: request(STREAMED),
            sent: Bytes::from_static(STREAMED.as_bytes()),
            response: response("text/event-stream; charset=utf-8"),
            replied: first
                .iter()
                .chain(last)
                .map(|event| Bytes::copy_from_slice(event.as_bytes()))
                .collect(),
            memory: ConnectionMemory::default(),
        }
    }

    /// The exchange as the hop drives it, up to the response's end.
    fn pass(&self, tap: &Tap) -> Exchange {
        let mut exchange = self.ask(tap);
        let now = Instant::now();
        let mut filter = exchange.head(&self.response, &self.memory, now);
        for piece in &self.replied {
            let mut content = None;
            if let Some(filter) = &mut filter {
                if let Pushed::Content(bytes, found) = filter.push(piece.clone()) {
                    black_box(bytes);
                    content = Some(found);
                }
                while let Some(bytes) = filter.next() {
                    black_box(bytes);
                }
            }
            exchange.see(piece, content, Instant::now());
        }
        if let Some(filter) = &mut filter {
            filter.end();
        }
        exchange
    }

    fn ask(&self, tap: &Tap) -> Exchange {
        let mut exchange = tap.arrive(&self.request, Instant::now());
        if exchange.wants_body() {
            black_box(exchange.body_held(&self.sent));
        }
        exchange.connected(std::time::Duration::ZERO);
        exchange
    }
}

/// The whole exchange, with nobody at its end.
#[divan::bench]
fn unary(bencher: Bencher) {
    whole(bencher, &tap(Nowhere), &Traffic::unary());
}

/// The whole exchange with the sinks of a serving instance.
#[divan::bench]
fn unary_with_sinks(bencher: Bencher) {
    whole(bencher, &tap(Sinks::default()), &Traffic::unary());
}

#[divan::bench]
fn streamed(bencher: Bencher) {
    whole(bencher, &tap(Nowhere), &Traffic::streamed());
}

#[divan::bench]
fn streamed_with_sinks(bencher: Bencher) {
    whole(bencher, &tap(Sinks::default()), &Traffic::streamed());
}

fn whole(bencher: Bencher, tap: &Tap, traffic: &Traffic) {
    // What the engine is, and that it reports, is known from the second exchange on.
    traffic.pass(tap).finish(End::Complete);
    bencher
        .counter(ItemsCount::new(1usize))
        .bench_local(|| traffic.pass(tap).finish(End::Complete));
}

/// The request's head and body are read; nothing is added to one that is not streamed.
#[divan::bench]
fn request_scan(bencher: Bencher) {
    ask(bencher, &Traffic::unary());
}

/// The same, and the option is spliced in.
#[divan::bench]
fn request_scan_and_splice(bencher: Bencher) {
    ask(bencher, &Traffic::streamed());
}

fn ask(bencher: Bencher, traffic: &Traffic) {
    let tap = tap(Nowhere);
    bencher
        .counter(BytesCount::of_slice(&traffic.sent))
        // The exchange is returned, so that its end is not part of the time.
        .bench_local(|| traffic.ask(&tap));
}

/// The response's head and all of its bytes are looked at; a stream is not stripped.
#[divan::bench(args = ["unary", "streamed"])]
fn scan(bencher: Bencher, kind: &str) {
    let tap = tap(Nowhere);
    let traffic = match kind {
        "unary" => Traffic::unary(),
        _ => Traffic::streamed(),
    };
    bencher
        .counter(bytes_of(&traffic.replied))
        .with_inputs(|| traffic.ask(&tap))
        .bench_local_values(|mut exchange| {
            let now = Instant::now();
            black_box(exchange.head(&traffic.response, &traffic.memory, now));
            for piece in &traffic.replied {
                exchange.see(piece, None, now);
            }
            exchange
        });
}

/// A stream is looked for what the added option caused, and that is taken out.
#[divan::bench]
fn strip(bencher: Bencher) {
    let tap = tap(Nowhere);
    let traffic = Traffic::streamed();
    bencher
        .counter(bytes_of(&traffic.replied))
        .with_inputs(|| {
            let mut exchange = traffic.ask(&tap);
            exchange.head(&traffic.response, &traffic.memory, Instant::now())
        })
        .bench_local_values(|filter| {
            let Some(mut filter) = filter else {
                panic!("nothing was added to the request")
            };
            for piece in &traffic.replied {
                filter.push(piece.clone());
                while let Some(bytes) = filter.next() {
                    black_box(bytes);
                }
            }
            filter.end();
            filter
        });
}

/// The end: the facts are put together and the observation is made.
#[divan::bench(args = ["unary", "streamed"])]
fn conclusion(bencher: Bencher, kind: &str) {
    let tap = tap(Nowhere);
    let traffic = match kind {
        "unary" => Traffic::unary(),
        _ => Traffic::streamed(),
    };
    bencher
        .with_inputs(|| traffic.pass(&tap))
        .bench_local_values(|exchange| exchange.finish(End::Complete));
}

fn bytes_of(pieces: &[Bytes]) -> BytesCount {
    BytesCount::new(pieces.iter().map(Bytes::len).sum::<usize>())
}
