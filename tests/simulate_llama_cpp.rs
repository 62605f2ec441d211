//! The simulated llama.cpp answers the requests of the captures with the captured bytes, write by write, but for ids and
//! times; its log, its metrics page and its responses say the same.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test may fail by panicking"
)]

mod simulate_support;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use simulate_support::engines::{chat, completions, json_of, model, sample, series, shape, with};
use simulate_support::wire::{body_of, events, exchange, get, post};
use simulate_support::{llama_cpp, mask};
use spectap::simulate::traffic::{self, Tally, Traffic};
use spectap::simulate::{Acceptance, Engine, EngineKind, Faults, Outcome, Settings};
use tokio_util::sync::CancellationToken;

const ROOT: &str = "tests/fixtures/captures/llama.cpp-11434";

/// Pages of which the simulation has only a part, and a prompt whose length the simulation counts otherwise.
const LEFT_OUT: [&str; 4] = ["metrics", "models", "props", "error-chat-too-long"];

fn settings() -> Settings {
    let model = model("tiny-model", "0.5,0.5,0.5,0.5");
    Settings::new(EngineKind::LlamaCpp, vec![model])
}

fn captures() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(ROOT).unwrap();
    let mut captures: Vec<_> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "http")
        })
        .filter(|path| !LEFT_OUT.contains(&path.file_stem().unwrap().to_str().unwrap()))
        .collect();
    captures.sort();
    captures
}

fn request(path: &Path, name: &str) -> Vec<u8> {
    if name == "nonsense" {
        return b"nonsense\r\n\r\n".to_vec();
    }
    let base = name.strip_prefix("error-").unwrap_or(name);
    let (method, target) = match (name, base.split('-').next().unwrap()) {
        ("error-unknown-path", _) => ("GET", "/v1/nothing"),
        ("error-wrong-method", _) => ("GET", "/v1/chat/completions"),
        ("head-health", _) => ("HEAD", "/health"),
        ("options-chat", _) => ("OPTIONS", "/v1/chat/completions"),
        (_, "chat") => ("POST", "/v1/chat/completions"),
        (_, "completions") => ("POST", "/v1/completions"),
        (_, "native") => ("POST", "/completion"),
        _ => ("GET", "/health"),
    };
    let version = if name.contains("http10") {
        "HTTP/1.0"
    } else {
        "HTTP/1.1"
    };
    let connection = if name.contains("keepalive") {
        "keep-alive"
    } else {
        "close"
    };
    let body = std::fs::read_to_string(path.with_extension("request.json")).unwrap_or_default();
    format!(
        "{method} {target} {version}\r\nHost: x\r\nConnection: {connection}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Head and chunks of a response, what can't be equal in two responses blotted out.
fn masked(response: &[u8], blotted: &[&str]) -> Vec<String> {
    let end = response.windows(4).position(|part| part == b"\r\n\r\n");
    let (head, mut rest) = response.split_at(end.unwrap() + 4);
    let mut parts = vec![String::from_utf8_lossy(head).into_owned()];
    if parts[0].contains("Transfer-Encoding: chunked") {
        while !rest.is_empty() {
            let line = rest.windows(2).position(|part| part == b"\r\n").unwrap();
            let size = std::str::from_utf8(&rest[..line]).unwrap();
            let size = usize::from_str_radix(size, 16).unwrap();
            let chunk = &rest[line + 2..line + 2 + size];
            parts.push(String::from_utf8_lossy(chunk).into_owned());
            rest = &rest[line + 2 + size + 2..];
        }
    } else {
        parts.push(String::from_utf8_lossy(rest).into_owned());
    }
    for part in &mut parts {
        mask::erase(part, "Content-Length: ", |c| c.is_ascii_digit());
        // Asked for so that the text ends soon; the simulation ends it where it is told to.
        let bias = r#""logit_bias":[{"bias":13.0,"token":2}]"#;
        *part = part.replace(bias, r#""logit_bias":[]"#);
        mask::erase(part, "\"chatcmpl-", |c| c.is_ascii_alphanumeric());
        for name in ["created", "id_slot"].iter().chain(blotted) {
            mask::erase(part, &format!("\"{name}\":"), |c| {
                c.is_ascii_digit() || c == '-'
            });
        }
        for name in ["prompt", "predicted"] {
            for unit in ["ms", "per_token_ms", "per_second"] {
                mask::erase(part, &format!("\"{name}_{unit}\":"), |c| {
                    c.is_ascii_digit() || ".e-+".contains(c)
                });
            }
        }
    }
    parts
}

#[tokio::test]
async fn requests_are_answered_with_the_captured_bytes() {
    let captures = captures();
    assert!(captures.len() >= 55, "only {} captures", captures.len());
    for path in captures {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let captured = std::fs::read(&path).unwrap();
        let body = std::fs::read_to_string(path.with_extension("request.json"));
        let body: Value = body
            .ok()
            .and_then(|body| serde_json::from_str(&body).ok())
            .unwrap_or_default();
        let engine = Engine::start(Settings {
            script: llama_cpp::script(&captured, body["stop"][0].as_str()),
            fingerprint: Some("b0-unknown".into()),
            keep_alive: Duration::from_millis(50),
            ..settings()
        })
        .await
        .unwrap();
        let answered = exchange(engine.address, &request(&path, name)).await;
        // The simulation counts words, not tokens: where it counts several prompts by itself, it comes to other numbers.
        let counts: &[&str] = if name.contains("two-prompts") {
            &[
                "prompt_tokens",
                "total_tokens",
                "prompt_n",
                "tokens_evaluated",
                "tokens_cached",
            ]
        } else {
            &[]
        };
        let clean = |response: &[u8]| {
            let mut parts = masked(response, counts);
            if !counts.is_empty() {
                for part in &mut parts {
                    mask::erase(part, "\"prompt\":\"", |c| c != '"');
                }
            }
            parts
        };
        let (wanted, got) = (clean(&captured), clean(&answered));
        for (at, wanted) in wanted.iter().enumerate() {
            assert_eq!(got.get(at), Some(wanted), "{name}, part {at}");
        }
        assert_eq!(got.len(), wanted.len(), "{name}");
    }
}

#[tokio::test]
async fn a_prompt_that_is_too_long_is_refused_with_both_lengths() {
    let path = Path::new(ROOT).join("error-chat-too-long.http");
    let captured = std::fs::read(&path).unwrap();
    let engine = Engine::start(Settings {
        max_model_len: 300,
        ..settings()
    })
    .await
    .unwrap();
    let answered = exchange(engine.address, &request(&path, "error-chat-too-long")).await;
    let clean = |response: &[u8]| {
        let mut text = masked(response, &["n_prompt_tokens", "n_ctx"]).concat();
        mask::erase(&mut text, "request (", |c| c.is_ascii_digit());
        mask::erase(&mut text, "context size (", |c| c.is_ascii_digit());
        text
    };
    assert_eq!(clean(&answered), clean(&captured));
    assert!(body_of(&answered).contains("\"n_prompt_tokens\":400,\"n_ctx\":300}}"));
    assert!(engine.log.entries().is_empty());
}

#[tokio::test]
async fn the_pages_are_made_as_the_captured_ones() {
    let engine = Engine::start(settings()).await.unwrap();
    exchange(engine.address, &chat(json!({"max_tokens": 40}))).await;
    let captured = |name: &str| std::fs::read(Path::new(ROOT).join(name)).unwrap();
    let json = |response: &[u8]| serde_json::from_str::<Value>(&body_of(response)).unwrap();

    let answered = exchange(engine.address, &get("/v1/models")).await;
    assert_eq!(
        shape(&json(&answered)),
        shape(&json(&captured("models.http")))
    );
    assert_eq!(json(&answered)["data"][0]["owned_by"], "llamacpp");

    let answered = json(&exchange(engine.address, &get("/props")).await);
    let wanted = json(&captured("props.http"));
    for (name, value) in answered.as_object().unwrap() {
        assert_eq!(value.is_null(), wanted[name].is_null(), "{name}");
        assert!(wanted.get(name).is_some(), "{name}");
    }

    let lines = |response: &[u8]| -> Vec<String> {
        let body = body_of(response);
        let lines = body.lines().map(|line| match line.strip_prefix('#') {
            Some(_) => line.to_owned(),
            None => line.rsplit_once(' ').unwrap().0.to_owned(),
        });
        lines.collect()
    };
    let wanted = lines(&captured("metrics.http"));
    let page = exchange(engine.address, &get("/metrics")).await;
    let mut rest = wanted.iter();
    for line in lines(&page) {
        assert!(
            rest.any(|wanted| *wanted == line),
            "{line} is not captured, or not there"
        );
    }
    assert!(masked(&page, &[])[0].contains("Content-Type: text/plain; version=0.0.4\r\n"));
}

fn sample_file(name: &str) -> String {
    std::fs::read_to_string(Path::new("tests/fixtures/samples/llamacpp").join(name)).unwrap()
}

fn sample_events(name: &str) -> Vec<Value> {
    let text = sample_file(name);
    let data = text
        .split("\n\n")
        .filter_map(|event| event.trim().strip_prefix("data: "));
    data.filter(|data| *data != "[DONE]")
        .map(|data| serde_json::from_str(data).unwrap())
        .collect()
}

async fn scripted(prompt_tokens: usize, texts: &[&str], request: &[u8]) -> Vec<u8> {
    let engine = Engine::start(Settings {
        script: Some(sample(prompt_tokens, texts)),
        ..settings()
    })
    .await
    .unwrap();
    exchange(engine.address, request).await
}

#[tokio::test]
async fn responses_have_the_members_of_the_samples_in_their_order_and_the_same_numbers() {
    let stream = |more: Value| chat(with(json!({"stream": true}), more));
    let usage = json!({"stream_options": {"include_usage": true}});
    let whole: Value = serde_json::from_str(&sample_file("chat.json")).unwrap();
    let answered = scripted(12, &["Sure."], &chat(json!({}))).await;
    let answered: Value = serde_json::from_str(&body_of(&answered)).unwrap();
    assert_eq!(shape(&answered), shape(&whole));
    let counts = |timings: &Value| {
        ["prompt_n", "predicted_n", "draft_n", "draft_n_accepted"].map(|name| timings[name].clone())
    };
    assert_eq!(counts(&answered["timings"]), counts(&whole["timings"]));
    assert_eq!(answered["usage"], whole["usage"]);

    for (name, request) in [
        ("chat_stream_no_usage.sse", stream(json!({}))),
        ("chat_stream_include_usage.sse", stream(usage)),
    ] {
        let (wanted, got) = (
            sample_events(name),
            events(&scripted(12, &["Su", "re."], &request).await),
        );
        let shapes = |events: &[Value]| events.iter().map(shape).collect::<Vec<_>>();
        assert_eq!(shapes(&got), shapes(&wanted), "{name}");
        let (got, wanted) = (got.last().unwrap(), wanted.last().unwrap());
        assert_eq!(
            counts(&got["timings"]),
            counts(&wanted["timings"]),
            "{name}"
        );
    }
}

#[tokio::test]
async fn the_log_agrees_with_the_metrics_and_with_what_was_told() {
    let engine = Engine::start(Settings {
        models: vec![model("m", "0.8,0.7,0.6"), model("other", "0.4,0.3")],
        ..settings()
    })
    .await
    .unwrap();
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
    let page = series(&body_of(&exchange(engine.address, &get("/metrics")).await));
    let totals = engine.log.totals();
    let sum = |read: &dyn Fn(&spectap::simulate::Counts) -> u64| -> f64 {
        totals.values().map(|totals| read(&totals.all)).sum::<u64>() as f64
    };
    let value = |name: &str| page[&format!("llamacpp:{name}")];
    assert_eq!(value("spec_decode_num_drafts_total"), sum(&|all| all.steps));
    assert_eq!(
        value("spec_decode_num_draft_tokens_total"),
        sum(&|all| all.drafted)
    );
    assert_eq!(
        value("spec_decode_num_accepted_tokens_total"),
        sum(&|all| all.accepted)
    );
    assert_eq!(
        value("tokens_predicted_total"),
        sum(&|all| all.completion_tokens)
    );
    for position in 0..3 {
        let survived = sum(&|all| all.histogram.iter().skip(position + 1).sum());
        let name =
            format!("spec_decode_num_accepted_tokens_per_pos_total{{position=\"{position}\"}}");
        assert_eq!(value(&name), survived);
    }
    // A sequence without a draft tells nothing, and of a choice of two in one piece only the first tells.
    let told: u64 = totals
        .values()
        .map(|totals| totals.on_the_wire.sequences)
        .sum();
    assert!(told > 0 && told < sum(&|all| all.sequences) as u64);
    assert_eq!(
        totals
            .values()
            .map(|totals| totals.on_the_wire.zero_step)
            .sum::<u64>(),
        0
    );
}

#[tokio::test]
async fn one_token_tells_no_drafts_and_two_choices_in_one_piece_tell_the_first_ones() {
    let engine = Engine::start(settings()).await.unwrap();
    let body = json_of(&engine, &chat(json!({"max_tokens": 1}))).await;
    assert!(body["timings"].get("draft_n").is_none());
    let body = json_of(&engine, &chat(json!({"max_tokens": 30, "n": 2}))).await;
    let entries = engine.log.entries();
    assert!(!entries[0].payload_on_the_wire && entries[1].payload_on_the_wire);
    let told: Vec<_> = entries[1]
        .sequences
        .iter()
        .map(|sequence| sequence.told)
        .collect();
    assert_eq!(told, [true, false]);
    let accepted: u32 = entries[1].sequences[0].accepted.iter().sum();
    assert_eq!(body["timings"]["draft_n_accepted"], accepted);
    assert_eq!(body["usage"]["completion_tokens"], 30);
    assert_eq!(body["choices"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn each_token_is_an_event_and_tells_the_numbers_so_far_when_asked_to() {
    let engine = Engine::start(settings()).await.unwrap();
    let asked = json!({"max_tokens": 40, "stream": true, "timings_per_token": true});
    let events = events(&exchange(engine.address, &completions(asked)).await);
    let entry = engine.log.entries().remove(0);
    assert_eq!(events.len(), 41);
    for (at, event) in events.iter().take(40).enumerate() {
        assert_eq!(event["timings"]["predicted_n"], at + 1);
    }
    let drafts: Vec<_> = events
        .iter()
        .map(|event| event["timings"]["draft_n"].as_u64().unwrap_or_default())
        .collect();
    assert!(drafts.is_sorted() && drafts[0] == 0);
    let drafted: u32 = entry.sequences[0].drafted.iter().sum();
    assert_eq!(drafts[40], u64::from(drafted));
    assert_eq!(events[40]["usage"]["completion_tokens"], 40);
}

#[tokio::test]
async fn an_idle_stream_gets_a_bare_comment_as_often_as_the_server_or_the_request_says() {
    let settings = Settings {
        prefill_time: Duration::from_millis(220),
        sse_keep_alive_interval: Some(Duration::from_millis(50)),
        ..settings()
    };
    let engine = Engine::start(settings).await.unwrap();
    let asked = |more: Value| chat(with(json!({"max_tokens": 4, "stream": true}), more));
    let body = body_of(&exchange(engine.address, &asked(json!({}))).await);
    assert!(body.starts_with(":\n\n:\n\n"), "{body}");
    assert!(!body.split_once("data: ").unwrap().1.contains(":\n\n"));
    for interval in [-1, 0, 1] {
        let request = asked(json!({"sse_ping_interval": interval}));
        let body = body_of(&exchange(engine.address, &request).await);
        assert!(body.starts_with("data: "), "{interval}: {body}");
    }
}

#[tokio::test]
async fn an_error_in_a_stream_is_its_last_event_and_no_sentinel_follows() {
    let faults = Faults {
        fail_after_pieces: Some(2),
        ..Faults::default()
    };
    let engine = Engine::start(Settings {
        faults,
        ..settings()
    })
    .await
    .unwrap();
    let requests = [
        chat(json!({"max_tokens": 40, "stream": true})),
        post(
            "/completion",
            &json!({"prompt": "hi", "n_predict": 40, "stream": true}),
        ),
    ];
    for request in requests {
        let answered = exchange(engine.address, &request).await;
        let sample = sample_events("chat_stream_ping_error.sse");
        let error = events(&answered).pop().unwrap();
        assert_eq!(shape(&error), shape(sample.last().unwrap()));
        assert!(!body_of(&answered).contains("[DONE]"));
        assert!(answered.ends_with(b"}}\n\n\r\n0\r\n\r\n"));
    }
    let entries = engine.log.entries();
    assert!(entries.iter().all(|entry| entry.outcome == Outcome::Failed));
    assert_eq!(entries.len(), 2);
}

#[tokio::test]
async fn a_key_is_asked_for_everywhere_but_at_the_door() {
    let settings = Settings {
        api_key: Some("sk-test-only".into()),
        ..settings()
    };
    let engine = Engine::start(settings).await.unwrap();
    let status = async |request: &[u8]| {
        let answered = exchange(engine.address, request).await;
        String::from_utf8_lossy(&answered[9..12]).into_owned()
    };
    assert_eq!(status(&get("/health")).await, "200");
    assert_eq!(status(&get("/metrics")).await, "401");
    assert_eq!(status(&chat(json!({"max_tokens": 1}))).await, "401");
    let with_key = String::from_utf8(chat(json!({"max_tokens": 1}))).unwrap();
    let with_key = with_key.replacen(
        "Host: x",
        "Host: x\r\nAuthorization: Bearer sk-test-only",
        1,
    );
    assert_eq!(status(with_key.as_bytes()).await, "200");
}
