//! Runs, windows and facets of traffic that went through.

use std::sync::{Arc, Barrier};

use serde_json::{Value, json};

use crate::support::client::post;
use crate::support::fixtures::capture;
use crate::support::origin::{Origin, Then, json as json_answer};
use crate::support::tap::Tap;

const CHAT: &str = "/v1/chat/completions";
const CLOSE: &str = "Connection: close\r\n";

/// A reply of a vLLM that drafts k tokens, and this fingerprint.
fn reply(k: usize, fingerprint: &str) -> Vec<u8> {
    let mut histogram = vec![0; k + 1];
    histogram[1] = 3;
    let body = json!({
        "id": "chatcmpl-1", "object": "chat.completion", "model": "m", "system_fingerprint": fingerprint,
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "a"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 200, "completion_tokens": 7},
        "metrics": {"speculative_decoding": {
            "mean_acceptance_length": 2.0, "draft_acceptance_rate": 1.0 / k as f64,
            "acceptance_histogram": histogram, "num_accepted_draft_tokens": 3, "num_draft_tokens": 3 * k,
            "num_spec_steps": 3, "num_spec_tokens": k}}
    });
    json_answer("200 OK", &body.to_string())
}

fn runs(tap: &Tap) -> Vec<Value> {
    tap.json("/api/v1/runs")["runs"].as_array().unwrap().clone()
}

#[test]
fn an_exchange_belongs_to_the_run_in_which_its_request_arrived() {
    let run_has_begun = Arc::new(Barrier::new(2));
    let gate = Arc::clone(&run_has_begun);
    let request_is_here = Arc::new(Barrier::new(2));
    let here = Arc::clone(&request_is_here);
    let origin = Origin::start(move |number, _, stream| {
        if number == 0 {
            here.wait();
            gate.wait();
        }
        std::io::Write::write_all(stream, &reply(4, "vllm-0.32.0")).unwrap();
        Then::KeepAlive
    });
    let tap = Tap::before(origin.address);
    let first = runs(&tap)[0]["name"].as_str().unwrap().to_owned();
    let request = post(CHAT, "{}", CLOSE);
    std::thread::scope(|scope| {
        scope.spawn(|| tap.exchange(&request));
        request_is_here.wait();
        tap.begin_run("second");
        run_has_begun.wait();
    });
    tap.observations(1);
    tap.exchange(&request);
    let seen = tap.observations(2);
    let names: Vec<&Value> = seen.iter().map(|seen| &seen["run"]).collect();
    assert_eq!(names, ["second", first.as_str()]);
    crate::support::until("both runs to have their exchange", || {
        runs(&tap).iter().all(|run| run["n"] == 1).then_some(())
    });
    for run in ["second", &first] {
        let summary = tap.json(&format!("/api/v1/summary?run={run}&window=1m"));
        assert_eq!(summary["n"]["recorded"], 1, "{summary}");
        assert_eq!(summary["scope"]["run"], run);
    }
    // Nothing was reset.
    assert_eq!(tap.json("/api/v1/summary")["n"]["recorded"], 2);
    assert_eq!(
        tap.metric("spectap_spec_decode_num_drafts_total{backend=\"vllm\",model_name=\"m\"}"),
        6.0
    );
}

#[test]
fn an_engine_that_was_exchanged_begins_a_run_by_itself() {
    let answers = (0..21).map(|number| reply(if number == 0 { 4 } else { 8 }, "vllm-0.32.0"));
    let origin = Origin::answering(answers.collect());
    let tap = Tap::before(origin.address);
    for number in 1..=20 {
        tap.exchange(post(CHAT, "{}", CLOSE));
        tap.observations(number);
    }
    assert_eq!(runs(&tap).len(), 1);
    tap.exchange(post(CHAT, "{}", CLOSE));
    let runs = crate::support::until("a second run", || {
        let runs = runs(&tap);
        (runs.len() == 2).then_some(runs)
    });
    assert_eq!(runs[0]["why"], "engine_changed");
    let change = runs[0]["change"].as_str().unwrap();
    assert!(
        change.starts_with("k from 4 to 8 on 127.0.0.1:"),
        "{change}"
    );
    assert_eq!(
        (&runs[1]["why"], &runs[1]["n"]),
        (&json!("started"), &json!(21))
    );
}

#[test]
fn facets_come_from_the_request_and_the_usage() {
    let origin = Origin::answering(vec![
        reply(4, "a"),
        capture("ngram-summary/chat-nonstream").raw,
    ]);
    let tap = Tap::before(origin.address);
    let body = r#"{"temperature":0.5,"tools":[{}]}"#;
    tap.exchange(post(CHAT, body, CLOSE));
    tap.observations(1);
    for (facet, value) in [
        ("context", "up_to_256"),
        ("prompt", "up_to_256"),
        ("cached", "unknown"),
        ("temperature", "up_to_0.7"),
        ("format", "tools"),
        ("reasoning", "unknown"),
        ("stream", "false"),
        ("concurrency", "1"),
    ] {
        let summary = tap.json(&format!("/api/v1/summary?by={facet}"));
        assert_eq!(
            summary["groups"][0]["key"],
            json!({facet: value}),
            "{summary}"
        );
        assert_eq!(summary["groups"][0]["n"]["recorded"], 1);
    }
    // What could not be read of a request is unknown, not the default.
    tap.exchange(post(CHAT, "not JSON", CLOSE));
    tap.observations(2);
    let summary = tap.json("/api/v1/summary?by=temperature");
    assert_eq!(
        summary["groups"][0]["key"],
        json!({"temperature": "unknown"})
    );
}
