//! Promises of the simulated engine beyond the captures: rules of what is told, its own truth, and how it ends.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test may fail by panicking"
)]

mod simulate_support;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use simulate_support::engines::{chat, completions, json_of, model, series, until};
use simulate_support::wire::{body_of, events, exchange, get, post};
use spectap::simulate::traffic::{self, Tally, Traffic};
use spectap::simulate::{Acceptance, Counts, Engine, EngineKind, Level, Log, Outcome, Settings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

fn vllm() -> Settings {
    Settings::new(EngineKind::Vllm, vec![model("m", "0.8,0.7,0.6,0.5")])
}

fn trtllm() -> Settings {
    Settings::new(EngineKind::TensorrtLlm, vec![model("m", "0.8,0.7,0.6")])
}

async fn status(address: SocketAddr, request: &[u8]) -> u16 {
    let answered = exchange(address, request).await;
    String::from_utf8_lossy(&answered[9..12]).parse().unwrap()
}

#[tokio::test]
async fn the_payload_on_the_wire_says_what_the_log_says() {
    let engine = Engine::start(Settings {
        level: Level::Detailed,
        ..vllm()
    })
    .await
    .unwrap();
    let body = json_of(&engine, &chat(json!({"max_tokens": 100}))).await;
    let payload = &body["metrics"]["speculative_decoding"];
    let entry = engine.log.entries().remove(0);
    assert_eq!(
        payload["per_step_accepted"],
        json!(entry.sequences[0].accepted)
    );
    assert_eq!(payload["num_spec_steps"], entry.sequences[0].accepted.len());
    assert_eq!(body["usage"]["completion_tokens"], 100);
    assert!(entry.payload_on_the_wire && entry.usage_on_the_wire && !entry.stream);
    assert_eq!(body["id"], entry.id);
}

#[tokio::test]
async fn no_payload_where_vllm_gives_none() {
    let engine = Engine::start(vllm()).await.unwrap();
    let cases = [
        chat(json!({"max_tokens": 40, "n": 2})),
        completions(json!({"max_tokens": 40, "prompt": ["a", "b"]})),
        chat(json!({"max_tokens": 3000, "stop": [" batch"]})),
        chat(json!({"max_tokens": 8, "use_beam_search": true, "n": 2})),
    ];
    for case in &cases {
        assert_eq!(json_of(&engine, case).await["metrics"], Value::Null);
    }
    let stream =
        chat(json!({"max_tokens": 40, "stream": true, "stream_options": {"include_usage": false}}));
    let events = events(&exchange(engine.address, &stream).await);
    assert!(
        events
            .iter()
            .all(|event| event.get("metrics").is_none() && event.get("usage").is_none())
    );
    assert!(events.last().unwrap()["system_fingerprint"].is_string());
    assert!(
        engine
            .log
            .entries()
            .iter()
            .all(|entry| !entry.payload_on_the_wire)
    );
    assert_eq!(engine.log.totals()["m"].on_the_wire, Counts::default());
}

#[tokio::test]
async fn each_of_several_finish_events_has_the_fingerprint_when_no_usage_event_comes() {
    let engine = Engine::start(vllm()).await.unwrap();
    let stream = chat(json!({"max_tokens": 20, "n": 3, "stream": true}));
    let events = events(&exchange(engine.address, &stream).await);
    let finishes: Vec<_> = events
        .iter()
        .filter(|e| e["choices"][0]["finish_reason"].is_string())
        .collect();
    assert_eq!(finishes.len(), 3);
    assert!(
        finishes
            .iter()
            .all(|event| event["system_fingerprint"] == "vllm-0.32.0-5c435f56")
    );
}

#[tokio::test]
async fn one_token_takes_no_step_and_says_so() {
    let engine = Engine::start(vllm()).await.unwrap();
    let body = json_of(&engine, &completions(json!({"max_tokens": 1}))).await;
    let payload = &body["metrics"]["speculative_decoding"];
    assert_eq!(payload["num_spec_steps"], 0);
    assert_eq!(payload["acceptance_histogram"], json!([0, 0, 0, 0, 0]));
    assert_eq!(payload["mean_acceptance_length"].to_string(), "1.0");
    assert_eq!(engine.log.totals()["m"].on_the_wire.zero_step, 1);
}

#[tokio::test]
async fn the_same_seed_gives_the_same_responses() {
    let mut answers = Vec::new();
    for seed in [1, 1, 2] {
        let engine = Engine::start(Settings { seed, ..vllm() }).await.unwrap();
        let mut texts = Vec::new();
        for _ in 0..3 {
            let body = json_of(&engine, &chat(json!({"max_tokens": 60}))).await;
            texts.push((
                body["choices"].to_string(),
                body["metrics"].to_string(),
                body["id"].to_string(),
            ));
        }
        assert_ne!(texts[0], texts[1]);
        answers.push(texts);
    }
    assert_eq!(answers[0], answers[1]);
    assert_ne!(answers[0], answers[2]);
}

/// Traffic of two models on an engine; the log and the metrics page afterwards.
async fn after_traffic(settings: Settings, page: &str) -> (Log, BTreeMap<String, f64>) {
    let engine = Engine::start(settings).await.unwrap();
    let traffic = Traffic {
        base_url: engine.url(),
        models: vec![
            ("m".into(), Acceptance::parse("none").unwrap()),
            ("other".into(), Acceptance::parse("none").unwrap()),
        ],
        categories: Vec::new(),
        leaving: 0,
        collapse: None,
        concurrency: 6,
        requests: Some(120),
        max_tokens: 60,
        seed: 3,
    };
    let outcomes = traffic::run(traffic, Tally::default(), CancellationToken::new()).await;
    assert_eq!((outcomes.complete, outcomes.total()), (120, 120));
    let page = body_of(&exchange(engine.address, &get(page)).await);
    assert_eq!(engine.log.entries().len(), 120);
    (engine.log.clone(), series(&page))
}

#[tokio::test]
async fn the_log_agrees_with_the_metrics_of_vllm() {
    let models = vec![model("m", "0.8,0.7,0.6,0.5"), model("other", "0.4,0.3")];
    let (log, page) = after_traffic(Settings { models, ..vllm() }, "/metrics").await;
    for (name, k) in [("m", 4), ("other", 2)] {
        let all = &log.totals()[name].all;
        let value =
            |family: &str| page[&format!("vllm:{family}{{engine=\"0\",model_name=\"{name}\"}}")];
        assert_eq!(value("spec_decode_num_drafts_total"), all.steps as f64);
        assert_eq!(
            value("spec_decode_num_draft_tokens_total"),
            all.drafted as f64
        );
        assert_eq!(
            value("spec_decode_num_accepted_tokens_total"),
            all.accepted as f64
        );
        assert_eq!(
            value("generation_tokens_total"),
            all.completion_tokens as f64
        );
        assert_eq!(value("prompt_tokens_total"), all.prompt_tokens as f64);
        assert_eq!(value("num_requests_running"), 0.0);
        for position in 0..k {
            let survived: u64 = all.histogram.iter().skip(position + 1).sum();
            let name = format!(
                "vllm:spec_decode_num_accepted_tokens_per_pos_total{{engine=\"0\",model_name=\"{name}\",position=\"{position}\"}}"
            );
            assert_eq!(page[&name], survived as f64);
        }
        assert!(all.steps > 0 && log.totals()[name].on_the_wire.steps < all.steps);
    }
}

#[tokio::test]
async fn the_log_agrees_with_the_metrics_of_tensorrt_llm() {
    let models = vec![model("m", "0.8,0.7,0.6"), model("other", "0.4,0.3")];
    let (log, page) = after_traffic(Settings { models, ..trtllm() }, "/prometheus/metrics").await;
    for name in ["m", "other"] {
        let all = &log.totals()[name].all;
        let labels = format!("{{engine_type=\"trtllm\",model_name=\"{name}\"}}");
        assert_eq!(
            page[&format!("trtllm_spec_decode_num_draft_tokens_total{labels}")],
            all.drafted as f64
        );
        assert_eq!(
            page[&format!("trtllm_spec_decode_num_accepted_tokens_total{labels}")],
            all.accepted as f64
        );
    }
}

#[tokio::test]
async fn tensorrt_llm_tells_each_choice_its_own_numbers() {
    let engine = Engine::start(trtllm()).await.unwrap();
    let body = json_of(&engine, &chat(json!({"max_tokens": 50, "n": 2}))).await;
    let entry = engine.log.entries().remove(0);
    for (index, sequence) in entry.sequences.iter().enumerate() {
        let stats = &body["choices"][index]["speculative_decoding"];
        assert_eq!(
            stats["total_accepted_draft_tokens"],
            sequence.accepted.iter().sum::<u32>()
        );
        assert_eq!(stats["num_spec_steps"], sequence.accepted.len());
        assert_eq!(stats["acceptance_histogram"].as_array().unwrap().len(), 4);
        assert_eq!(stats["num_spec_tokens"], 3);
    }
    assert_eq!(body["usage"]["completion_tokens"], 100);
}

#[tokio::test]
async fn tensorrt_llm_streams_as_its_samples_do() {
    let engine = Engine::start(trtllm()).await.unwrap();
    let options =
        json!({"max_tokens": 30, "stream": true, "stream_options": {"include_usage": true}});
    let raw = body_of(&exchange(engine.address, &chat(options.clone())).await);
    let first = raw.split_inclusive("\n\n").next().unwrap();
    assert!(
        first.ends_with("{\"index\":0,\"delta\":{\"role\":\"assistant\"}}]} \n\n"),
        "{first}"
    );
    assert!(raw.split("\n\n").skip(1).all(|event| !event.ends_with(' ')));
    assert!(!raw.contains("null,"), "chat chunks leave nulls out: {raw}");

    let events = events(&exchange(engine.address, &chat(options)).await);
    let (usage, finish) = (&events[events.len() - 1], &events[events.len() - 2]);
    assert_eq!(
        (&usage["choices"], &usage["usage"]["completion_tokens"]),
        (&json!([]), &json!(30))
    );
    assert_eq!(finish["choices"][0]["finish_reason"], "length");
    assert!(
        finish["choices"][0]["speculative_decoding"]["total_draft_tokens"]
            .as_u64()
            .unwrap()
            > 0
    );
    let told = events
        .iter()
        .filter(|e| e["choices"][0].get("speculative_decoding").is_some())
        .count();
    assert_eq!(told, 1);
}

#[tokio::test]
async fn tensorrt_llm_tells_nothing_where_nothing_was_drafted() {
    let engine = Engine::start(trtllm()).await.unwrap();
    let body = json_of(&engine, &completions(json!({"max_tokens": 1}))).await;
    assert!(body["choices"][0].get("speculative_decoding").is_none());
    assert_eq!(body["choices"][0]["avg_decoded_tokens_per_iter"], 1.0);
    assert!(!engine.log.entries()[0].payload_on_the_wire);
}

#[tokio::test]
async fn an_adaptive_tensorrt_llm_does_not_tell_k() {
    let engine = Engine::start(Settings {
        adaptive: true,
        ..trtllm()
    })
    .await
    .unwrap();
    let body = json_of(&engine, &chat(json!({"max_tokens": 200}))).await;
    let stats = &body["choices"][0]["speculative_decoding"];
    assert_eq!(stats["num_spec_tokens"], Value::Null);
    let drafted = &engine.log.entries()[0].sequences[0].drafted;
    let depth = *drafted.iter().max().unwrap() as usize;
    assert_eq!(
        stats["acceptance_histogram"].as_array().unwrap().len(),
        depth + 1
    );
    assert!(drafted.iter().min() < drafted.iter().max());
}

#[tokio::test]
async fn a_client_that_leaves_ends_its_request() {
    let settings = Settings {
        step_time: Duration::from_millis(5),
        ..vllm()
    };
    let engine = Engine::start(settings).await.unwrap();
    let mut client = TcpStream::connect(engine.address).await.unwrap();
    client
        .write_all(&chat(json!({"max_tokens": 5_000, "stream": true})))
        .await
        .unwrap();
    assert!(client.read(&mut [0; 1_024]).await.unwrap() > 0);
    drop(client);
    until(&engine.log, |log| !log.entries().is_empty()).await;
    let entry = engine.log.entries().remove(0);
    assert_eq!(entry.outcome, Outcome::Cancelled);
    assert!(entry.completion_tokens() < 5_000 && !entry.payload_on_the_wire);
}

#[tokio::test]
async fn an_aborted_request_ends_with_abort_and_without_payload() {
    let settings = Settings {
        step_time: Duration::from_millis(5),
        ..vllm()
    };
    let engine = Engine::start(settings).await.unwrap();
    let options =
        json!({"max_tokens": 20_000, "stream": true, "stream_options": {"include_usage": true}});
    let request = String::from_utf8(chat(options)).unwrap().replacen(
        "Host: x",
        "Host: x\r\nX-Request-Id: cut",
        1,
    );
    let mut client = TcpStream::connect(engine.address).await.unwrap();
    client.write_all(request.as_bytes()).await.unwrap();
    let mut answered = vec![0; 2_000];
    client.read_exact(&mut answered).await.unwrap();
    let abort = post(
        "/inference/v1/abort_requests",
        &json!({"request_ids": ["chatcmpl-cut"]}),
    );
    assert_eq!(status(engine.address, &abort).await, 200);
    client.read_to_end(&mut answered).await.unwrap();
    let events = events(&answered);
    let (usage, finish) = (&events[events.len() - 1], &events[events.len() - 2]);
    assert_eq!(finish["choices"][0]["finish_reason"], "abort");
    assert!(usage["usage"].is_object() && usage.get("metrics").is_none());
}

#[tokio::test]
async fn an_idle_stream_gets_comments() {
    let settings = Settings {
        prefill_time: Duration::from_millis(220),
        sse_keep_alive_interval: Some(Duration::from_millis(50)),
        ..vllm()
    };
    let engine = Engine::start(settings).await.unwrap();
    let body = body_of(
        &exchange(
            engine.address,
            &chat(json!({"max_tokens": 4, "stream": true})),
        )
        .await,
    );
    assert!(
        body.starts_with(": keep-alive\n\n: keep-alive\n\n"),
        "{body}"
    );
    let data = body.split_once("data: ").unwrap().1;
    assert!(!data.contains(": keep-alive"));
}

#[tokio::test]
async fn bad_requests_are_refused_and_cost_nothing() {
    let engine = Engine::start(vllm()).await.unwrap();
    let raw = |text: &str| text.as_bytes().to_vec();
    let cases = [
        (raw("nonsense\r\n\r\n"), 400),
        (
            raw("POST /v1/completions HTTP/1.1\r\nContent-Length: x\r\nConnection: close\r\n\r\n"),
            400,
        ),
        (
            raw("POST /v1/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
            400,
        ),
        (
            raw("POST /v1/completions HTTP/1.1\r\nConnection: close\r\n\r\n"),
            400,
        ),
        (post("/v1/completions", &json!([1, 2])), 400),
        (post("/v1/completions", &json!({"prompt": {}})), 400),
        (completions(json!({"n": 0})), 400),
        (completions(json!({"n": 1_000_000_000_u64})), 400),
        (completions(json!({"max_tokens": 0})), 400),
        (completions(json!({"prompt": []})), 200),
        (
            completions(json!({"max_tokens": "x", "stop": 5, "stream": "yes"})),
            200,
        ),
        (
            completions(json!({"max_tokens": 1_000_000_000_u64, "stop": ["", " the"]})),
            200,
        ),
        (
            post(
                "/inference/v1/generate",
                &json!({"token_ids": [1, -1, "x"], "sampling_params": 5}),
            ),
            200,
        ),
        (post("/v1/completions/", &json!({})), 404),
    ];
    for (request, wanted) in cases {
        let got = status(engine.address, &request).await;
        assert_eq!(got, wanted, "{}", String::from_utf8_lossy(&request));
    }
    let entries = engine.log.entries();
    assert_eq!(entries.len(), 4, "{entries:?}");
}

#[tokio::test]
async fn a_stopped_engine_lets_streams_end_and_takes_no_more() {
    let settings = Settings {
        step_time: Duration::from_millis(2),
        ..vllm()
    };
    let engine = Engine::start(settings).await.unwrap();
    let address = engine.address;
    let mut client = TcpStream::connect(address).await.unwrap();
    client
        .write_all(&chat(json!({"max_tokens": 100, "stream": true})))
        .await
        .unwrap();
    let mut answered = vec![0; 500];
    client.read_exact(&mut answered).await.unwrap();
    engine.stop().await;
    client.read_to_end(&mut answered).await.unwrap();
    assert!(String::from_utf8_lossy(&answered).ends_with("data: [DONE]\n\n\r\n0\r\n\r\n"));
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn a_request_may_bring_the_acceptance_of_its_own_drafts() {
    let models = vec![model("m", "0,0")];
    let engine = Engine::start(Settings { models, ..vllm() }).await.unwrap();
    let accepted = async |brought: Value| {
        let asked = chat(json!({"max_tokens": 30, "simulate_acceptance": brought}));
        let body = json_of(&engine, &asked).await;
        let numbers = &body["metrics"]["speculative_decoding"];
        assert_eq!(numbers["num_spec_tokens"], 2, "the model's k stays");
        numbers["num_accepted_draft_tokens"].as_u64().unwrap()
    };
    assert!(accepted(json!([1.0, 1.0])).await > 0);
    // None, not as many as the model's k, no probability, not a number.
    for other in [
        json!(null),
        json!([1.0]),
        json!([1.0, 2.0]),
        json!([1.0, "1"]),
    ] {
        assert_eq!(accepted(other).await, 0);
    }
}
