//! The runs endpoint, and questions about runs and windows.

use std::time::{Duration, SystemTime};

use serde_json::json;
use spectap::clock::Clock;
use spectap::runs::{LONGEST_RUN_NAME, MOST_RUNS};

use crate::server::{Choice, Server, observation};

const PATH: &str = "/api/v1/runs";

/// A server whose clock stands at the end of what `observation` gives.
async fn server() -> (Server, Clock) {
    let observed = observation(0).ended_at;
    let clock = Clock::by_hand(observed);
    let choice = Choice {
        clock: clock.clone(),
        ..Choice::default()
    };
    (Server::start_with(choice).await, clock)
}

/// An exchange that ended now and arrived in this run.
fn exchange(number: u128, run: &str, ended_at: SystemTime) -> spectap::observation::Observation {
    let mut exchange = observation(number);
    exchange.run = Some(run.to_owned());
    exchange.started_at = ended_at - Duration::from_millis(109);
    exchange.ended_at = ended_at;
    exchange
}

#[tokio::test]
async fn a_run_begins_when_asked_for_and_ends_the_one_before() {
    let (server, clock) = server().await;
    let first = json!({
        "name": "2026-12-01T09:00:00Z", "start": "2026-12-01T09:00:00.109000Z", "end": null,
        "why": "started", "n": 0
    });
    assert_eq!(server.get(PATH).await.json(), json!({"runs": [first]}));
    clock.advance(Duration::from_secs(60));
    let answer = server.post_json(PATH, r#"{"name":"k = 8"}"#).await;
    let begun = json!({
        "name": "k = 8", "start": "2026-12-01T09:01:00.109000Z", "end": null, "why": "asked", "n": 0
    });
    assert_eq!((answer.status, answer.json()), (201, begun.clone()));
    let runs = server.get(PATH).await.json();
    assert_eq!(runs["runs"][0], begun);
    assert_eq!(runs["runs"][1]["end"], begun["start"]);
    assert_eq!(&*server.runs.current(), "k = 8");
}

#[tokio::test]
async fn a_run_without_a_name_gets_the_time_as_its_name() {
    let (server, clock) = server().await;
    clock.advance(Duration::from_secs(1));
    for body in ["{}", r#"{"name":null}"#] {
        let run = server.post_json(PATH, body).await.json();
        assert!(
            run["name"]
                .as_str()
                .unwrap()
                .starts_with("2026-12-01T09:00:01Z"),
            "{run}"
        );
    }
}

#[tokio::test]
async fn a_wrong_name_or_body_begins_nothing() {
    let (server, _) = server().await;
    let long = json!({"name": "x".repeat(LONGEST_RUN_NAME + 1)}).to_string();
    for body in [
        "",
        "[]",
        r#"{"name":8}"#,
        r#"{"named":"a"}"#,
        r#"{"name":""}"#,
        &long,
    ] {
        let (code, _) = server.post_json(PATH, body).await.error(400);
        assert_eq!(code, "bad_body", "{body}");
    }
    server.post_json(PATH, r#"{"name":"a"}"#).await;
    let (code, message) = server.post_json(PATH, r#"{"name":"a"}"#).await.error(409);
    assert_eq!(code, "conflict");
    assert!(message.contains("already"), "{message}");
    assert_eq!(server.runs.list().len(), 2);
}

#[tokio::test]
async fn no_more_than_the_newest_runs_are_listed() {
    let (server, _) = server().await;
    for number in 0..MOST_RUNS + 5 {
        server.runs.begin(Some(&number.to_string())).unwrap();
    }
    let runs = server.get(PATH).await.json();
    assert_eq!(runs["runs"].as_array().unwrap().len(), MOST_RUNS);
    let (_, message) = server.get("/api/v1/summary?run=3").await.error(400);
    assert!(
        message.contains("run=3") && message.contains("/api/v1/runs"),
        "{message}"
    );
}

#[tokio::test]
async fn summary_and_snapshot_answer_for_a_run_and_a_window() {
    let (server, clock) = server().await;
    let first = server.runs.current().to_string();
    server.record(exchange(0, &first, clock.now()));
    clock.advance(Duration::from_secs(600));
    server.post_json(PATH, r#"{"name":"a b/ü"}"#).await;
    // It arrived in the first run and ended in the second.
    server.record(exchange(1, &first, clock.now()));
    server.record(exchange(2, "a b/ü", clock.now()));
    for (query, exchanges) in [
        ("", 3),
        ("?window=all", 3),
        ("?window=1h", 3),
        ("?window=5m", 2),
        ("?run=a%20b%2F%C3%BC", 1),
        ("?run=2026-12-01T09:00:00Z", 2),
        ("?run=2026-12-01T09:00:00Z&window=5m", 1),
        ("?run=2026-12-01T09:00:00Z&window=5m&model=other", 0),
    ] {
        let summary = server.get(&format!("/api/v1/summary{query}")).await.json();
        assert_eq!(summary["n"]["exchanges"], exchanges, "{query} {summary}");
        let snapshot = server.get(&format!("/api/v1/snapshot{query}")).await.json();
        for member in ["window", "run", "from", "to"] {
            assert_eq!(
                snapshot[member], summary["scope"][member],
                "{query} {member}"
            );
        }
    }
    let summary = server.get("/api/v1/summary?window=5m").await.json();
    assert_eq!(summary["scope"]["window"], "5m");
    assert_eq!(summary["scope"]["from"], "2026-12-01T09:05:05.000000Z");
    assert_eq!(summary["scope"]["to"], "2026-12-01T09:10:05.000000Z");
}

#[tokio::test]
async fn figures_come_by_facet() {
    let (server, clock) = server().await;
    server.record(exchange(0, "r", clock.now()));
    let summary = server.get("/api/v1/summary?by=model,context").await.json();
    assert_eq!(
        summary["groups"][0]["key"],
        json!({"model": "m", "context": "up_to_128"})
    );
    assert_eq!(summary["groups"][0]["n"]["recorded"], 1);
    let (_, message) = server
        .get("/api/v1/summary?by=context,stream")
        .await
        .error(400);
    assert!(message.contains("at most one"), "{message}");
}

#[tokio::test]
async fn engines_that_alternate_are_a_finding() {
    let (server, clock) = server().await;
    for number in 0..20 {
        let mut exchange = exchange(number, "r", clock.now());
        exchange.spec_decode_acceptance[0].num_spec_tokens = Some(4 + 4 * (number as u64 % 2));
        server.runs.ended(&exchange, None);
    }
    let summary = server.get("/api/v1/summary").await.json();
    let finding = &summary["findings"][0];
    assert_eq!(finding["code"], "engine_alternates", "{summary}");
    let text = finding["text"].as_str().unwrap();
    assert!(text.contains("4 and 8 of k"), "{text}");
    assert_eq!(server.runs.list().len(), 1);
}
