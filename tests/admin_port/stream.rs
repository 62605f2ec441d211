//! The live feed: who comes when sees what, and nobody holds anybody up.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use spectap::observation::Observation;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::server::{Choice, Server, id, observation, within};

/// A subscriber who reads raw bytes.
struct Feed {
    stream: TcpStream,
    /// What was read and is not taken apart yet, the chunk framing taken off.
    text: String,
    /// Bytes that are left of the chunk.
    raw: Vec<u8>,
}

impl Feed {
    async fn open(server: &Server, query: &str) -> Self {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let head = format!(
            "GET /api/v1/stream{query} HTTP/1.1\r\nHost: {}\r\n\r\n",
            server.address
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut feed = Self {
            stream,
            text: String::new(),
            raw: Vec::new(),
        };
        let end = loop {
            if let Some(end) = find(&feed.raw, b"\r\n\r\n") {
                break end;
            }
            assert!(feed.more().await, "closed before the head");
        };
        let head = String::from_utf8(feed.raw.drain(..end + 4).collect()).unwrap();
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        let head = head.to_ascii_lowercase();
        assert!(head.contains("content-type: text/event-stream"), "{head}");
        assert!(head.contains("cache-control: no-store"), "{head}");
        assert!(head.contains("transfer-encoding: chunked"), "{head}");
        feed
    }

    async fn more(&mut self) -> bool {
        within(self.stream.read_buf(&mut self.raw)).await.unwrap() > 0
    }

    /// The next event, its name and its data; none at the end.
    async fn next(&mut self) -> Option<(String, Value)> {
        loop {
            if let Some(end) = self.text.find("\n\n") {
                let event: String = self.text.drain(..end + 2).collect();
                if event.starts_with(':') {
                    continue;
                }
                let name = event.lines().find_map(|line| line.strip_prefix("event: "));
                let data = event.lines().find_map(|line| line.strip_prefix("data: "));
                let data = serde_json::from_str(data.unwrap()).unwrap();
                return Some((name.unwrap().to_owned(), data));
            }
            if let Some(end) = find(&self.raw, b"\r\n") {
                let size = std::str::from_utf8(&self.raw[..end]).unwrap();
                let size = usize::from_str_radix(size, 16).unwrap();
                if size == 0 {
                    return None;
                }
                while self.raw.len() < end + 2 + size + 2 {
                    assert!(self.more().await, "cut in the middle");
                }
                let chunk: Vec<u8> = self.raw.drain(..end + 2 + size + 2).collect();
                self.text
                    .push_str(std::str::from_utf8(&chunk[end + 2..end + 2 + size]).unwrap());
            } else if !self.more().await {
                return None;
            }
        }
    }

    async fn named(&mut self, wanted: &str) -> Value {
        loop {
            let (name, data) = self.next().await.expect("the feed ended");
            if name == wanted {
                return data;
            }
        }
    }

    /// Follows the state until it is as wished.
    async fn until(&mut self, state: &mut Value, wished: impl Fn(&Value) -> bool) {
        while !wished(state) {
            match self.next().await.expect("the feed ended") {
                (name, data) if name == "snapshot" => *state = data,
                (name, data) if name == "delta" => merge(state, data),
                _ => {}
            }
        }
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|it| it == wanted)
}

/// RFC 7396.
fn merge(target: &mut Value, patch: Value) {
    match patch {
        Value::Object(members) => {
            if !target.is_object() {
                *target = json!({});
            }
            for (name, value) in members {
                if value.is_null() {
                    target.as_object_mut().unwrap().remove(&name);
                } else {
                    merge(&mut target[&name], value);
                }
            }
        }
        other => *target = other,
    }
}

/// Null members count as none.
fn lean(value: &Value) -> Value {
    match value {
        Value::Object(object) => object
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| (name.clone(), lean(value)))
            .collect(),
        Value::Array(items) => items.iter().map(lean).collect(),
        other => other.clone(),
    }
}

fn recorded(state: &Value) -> u64 {
    state["summary"]["n"]["recorded"].as_u64().unwrap_or(0)
}

#[tokio::test]
async fn the_state_comes_first_then_requests_and_what_changed_and_it_equals_the_summary() {
    let server = Server::start().await;
    server.record(observation(1));
    let mut feed = Feed::open(&server, "?by=tag").await;
    let (name, mut state) = feed.next().await.unwrap();
    assert_eq!(name, "snapshot");
    assert_eq!(recorded(&state), 1, "{state}");
    assert_eq!(state["known"]["models"], json!(["m"]));
    assert_eq!(state["runs"].as_array().unwrap().len(), 1);
    server.record(observation(2));
    server.record(observation(3));
    let told = feed.named("requests").await;
    let ids: Vec<_> = told["requests"].as_array().unwrap().iter().collect();
    assert_eq!(ids.len(), 2, "{told}");
    assert_eq!(ids[0]["id"], json!(id(3)), "newest first");
    assert_eq!(told["skipped"], 0);
    feed.until(&mut state, |state| recorded(state) == 3).await;
    let summary = server.get("/api/v1/summary?by=tag").await.json();
    assert_eq!(lean(&state["summary"]), lean(&summary));
}

#[tokio::test]
async fn a_late_joiner_sees_what_the_first_one_sees() {
    let server = Server::start().await;
    let mut first = Feed::open(&server, "").await;
    let mut of_first = first.named("snapshot").await;
    for number in 0..5 {
        server.record(observation(number));
    }
    first
        .until(&mut of_first, |state| recorded(state) == 5)
        .await;
    let mut late = Feed::open(&server, "").await;
    let mut of_late = late.named("snapshot").await;
    assert_eq!(recorded(&of_late), 5);
    server.record(observation(6));
    first
        .until(&mut of_first, |state| recorded(state) == 6)
        .await;
    late.until(&mut of_late, |state| recorded(state) == 6).await;
    assert_eq!(lean(&of_first["summary"]), lean(&of_late["summary"]));
}

#[tokio::test]
async fn a_filter_holds_for_figures_history_and_requests() {
    let server = Server::start().await;
    let mut feed = Feed::open(&server, "?model=other&window=all").await;
    let mut state = feed.named("snapshot").await;
    server.record(observation(1));
    let mut other = observation(2);
    other.model = Some("other".to_owned());
    server.record(other);
    let told = feed.named("requests").await;
    assert_eq!(told["requests"].as_array().unwrap().len(), 1, "{told}");
    assert_eq!(told["requests"][0]["model"], "other");
    feed.until(&mut state, |state| recorded(state) == 1).await;
    assert_eq!(state["known"]["models"], json!(["m", "other"]));
    let bad = server.get("/api/v1/stream?modell=x").await;
    assert_eq!(bad.error(400).0, "bad_parameter");
    let bad = server.get("/api/v1/stream?run=none").await;
    assert_eq!(bad.error(400).0, "bad_parameter");
}

#[tokio::test]
async fn rows_have_no_step_arrays_and_the_request_itself_has_them() {
    let server = Server::start().await;
    let mut feed = Feed::open(&server, "").await;
    feed.named("snapshot").await;
    let mut with_steps: Observation = observation(1);
    with_steps.spec_decode_acceptance[0].per_step_accepted = Some(vec![1, 1, 2, 3]);
    server.record(with_steps);
    let told = feed.named("requests").await;
    let record = &told["requests"][0]["spec_decode_acceptance"][0];
    assert_eq!(record["num_spec_steps"], 4);
    assert_eq!(record.get("per_step_accepted"), None);
    let whole = server.get(&format!("/api/v1/requests/{}", id(1))).await;
    let record = &whole.json()["spec_decode_acceptance"][0];
    assert_eq!(record["per_step_accepted"], json!([1, 1, 2, 3]));
}

#[tokio::test]
async fn more_requests_than_a_table_takes_in_are_counted_as_skipped() {
    let server = Server::start().await;
    let mut feed = Feed::open(&server, "").await;
    feed.named("snapshot").await;
    (0..1_000).for_each(|number| server.record(observation(number)));
    let (mut told, mut skipped) = (0, 0);
    while told + skipped < 1_000 {
        let data = feed.named("requests").await;
        told += data["requests"].as_array().unwrap().len();
        skipped += data["skipped"].as_u64().unwrap() as usize;
    }
    assert_eq!(told + skipped, 1_000);
    assert!(told >= 100 && skipped > 0, "{told} {skipped}");
}

#[tokio::test]
async fn a_subscriber_who_does_not_read_loses_the_oldest_is_told_and_is_right_again() {
    let server = Server::start().await;
    let mut reader = Feed::open(&server, "").await;
    let mut of_reader = reader.named("snapshot").await;
    let mut sleeper = Feed::open(&server, "").await;
    let mut number = 0;
    // 16 MiB: far more than the sockets and the outbox hold together. Who keeps up loses nothing of it.
    while number < 16 {
        number += 1;
        let mut large = observation(number);
        large.x_request_id = Some("x".repeat(1 << 20));
        server.record(large);
        loop {
            let (name, data) = reader.next().await.unwrap();
            match name.as_str() {
                "delta" => merge(&mut of_reader, data),
                "requests" => break,
                other => panic!("{other}"),
            }
        }
    }
    let dropped = sleeper.named("dropped").await;
    assert!(dropped["events"].as_u64().unwrap() > 0, "{dropped}");
    assert!(dropped["requests"].as_u64().unwrap() > 0, "{dropped}");
    let mut of_sleeper = sleeper.named("snapshot").await;
    let all = number as u64;
    sleeper
        .until(&mut of_sleeper, |state| recorded(state) == all)
        .await;
    reader
        .until(&mut of_reader, |state| recorded(state) == all)
        .await;
    assert_eq!(lean(&of_sleeper["summary"]), lean(&of_reader["summary"]));
}

#[tokio::test]
async fn feeds_end_when_the_drain_begins_and_none_begins_after_that() {
    let server = Server::start().await;
    let mut feed = Feed::open(&server, "").await;
    feed.named("snapshot").await;
    server.readiness.start_draining();
    let end = feed.named("end").await;
    assert_eq!(end, json!({"why": "draining"}));
    assert_eq!(feed.next().await, None, "the answer is over");
    let refused = server.get("/api/v1/stream").await;
    assert_eq!(refused.error(503).0, "draining");
    assert_eq!(server.get("/api/v1/summary").await.status, 200);
}

#[tokio::test]
async fn a_feed_asks_for_the_token_as_the_rest_does() {
    let server = Server::start_with(Choice {
        token: Some("s3cret"),
        ..Choice::default()
    })
    .await;
    let refused = server.get("/api/v1/stream").await;
    assert_eq!(refused.error(401).0, "unauthorized");
}

#[tokio::test]
async fn beyond_the_most_subscribers_the_next_is_refused_until_one_leaves() {
    let server = Server::start().await;
    let mut feeds = Vec::new();
    for _ in 0..128 {
        feeds.push(Feed::open(&server, "").await);
    }
    let refused = server.get("/api/v1/stream").await;
    assert_eq!(refused.error(503).0, "too_many_subscribers");
    assert_eq!(server.get("/livez").await.status, 200);
    drop(feeds.pop());
    let deadline = Instant::now() + crate::server::DEADLINE;
    // The port notices that a client has gone when it writes next.
    loop {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let head = format!(
            "GET /api/v1/stream HTTP/1.1\r\nHost: {}\r\n\r\n",
            server.address
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut start = [0; 12];
        within(stream.read_exact(&mut start)).await.unwrap();
        if &start == b"HTTP/1.1 200" {
            break;
        }
        assert!(Instant::now() < deadline, "still refused");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn the_history_is_that_of_the_window_and_of_the_one_before() {
    let clock = spectap::clock::Clock::by_hand(observation(1).ended_at);
    let server = Server::start_with(Choice {
        clock: clock.clone(),
        ..Choice::default()
    })
    .await;
    server.record(observation(1));
    let history = server.get("/api/v1/history?window=1m").await.json();
    assert_eq!(history["step_seconds"], 5, "{history}");
    let stretches = history["stretches"].as_object().unwrap();
    assert_eq!(stretches.len(), 1);
    let sums = stretches.values().next().unwrap();
    assert_eq!(sums["histogram"], json!({"1": 2, "2": 1, "3": 1}));
    assert_eq!((&sums["n"], &sums["steps"]), (&json!(1), &json!(4)));
    assert_eq!(history["before"]["n"], 0);
    clock.advance(Duration::from_secs(60));
    let later = server.get("/api/v1/history?window=1m&model=m").await.json();
    assert_eq!(later["before"]["n"], 1, "{later}");
    assert_eq!(later["stretches"], json!({}));
}

#[tokio::test]
async fn fifty_subscribers_of_one_filter_are_told_what_was_computed_once() {
    let server = Server::start().await;
    let mut feeds = Vec::new();
    for _ in 0..50 {
        feeds.push(Feed::open(&server, "?window=1m").await);
    }
    // The moment of a state is taken when it is computed, to the microsecond.
    let mut told: Option<BTreeSet<String>> = None;
    for feed in &mut feeds {
        let mut moments = BTreeSet::new();
        while moments.len() < 4 {
            let (_, data) = feed.next().await.unwrap();
            moments.extend(data["now"].as_str().map(str::to_owned));
        }
        told = Some(match told {
            Some(told) => told.intersection(&moments).cloned().collect(),
            None => moments,
        });
    }
    let told = told.unwrap();
    assert!(told.len() >= 2, "{told:?}");
}
