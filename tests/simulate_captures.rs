//! The simulated vLLM answers the requests of the captures with the captured bytes, but for date, ids and `created`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test may fail by panicking"
)]

mod simulate_support;

use std::path::{Path, PathBuf};
use std::time::Duration;

use simulate_support::{capture, mask, wire};
use spectap::simulate::{Acceptance, Engine, EngineKind, Level, Model, Settings};

const ROOT: &str = "tests/fixtures/captures/vllm-0.32.0";

/// Cases that need what the simulation leaves out: log probabilities, ids of tokens, other routes, upgrades.
const LEFT_OUT: [&str; 6] = [
    "logprobs",
    "token-ids",
    "messages",
    "responses",
    "h2c",
    "realtime",
];

fn settings(k: usize) -> Settings {
    let acceptance = Acceptance::new(vec![0.5; k]).unwrap();
    let model = Model {
        root: "./tiny-model".into(),
        ..Model::new("tiny-model", acceptance)
    };
    Settings {
        max_model_len: 2_048,
        keep_alive: Duration::from_millis(50),
        ..Settings::new(EngineKind::Vllm, vec![model])
    }
}

fn cases(folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(Path::new(ROOT).join(folder)).unwrap();
    let mut cases: Vec<_> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "http")
        })
        .filter(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap();
            // This server could call tools, and ends a text of its own accord in another way.
            let calls_tools = folder == "ngram-detailed"
                && (name.contains("tool-") || name.starts_with("chat-stream-json-schema"));
            name != "metrics"
                && !calls_tools
                && name != "metrics-accept-gzip"
                && !LEFT_OUT.iter().any(|part| name.contains(part))
        })
        .collect();
    cases.sort();
    assert!(!cases.is_empty(), "no captures in {folder}");
    cases
}

/// Sends the request of each case to a simulated engine that follows the capture's script; returns how many there were.
async fn replay(
    folder: &str,
    settings: Settings,
    key: Option<&str>,
    masked: fn(&[u8]) -> String,
) -> usize {
    let cases = cases(folder);
    for path in &cases {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let captured = std::fs::read(path).unwrap();
        let script = capture::script(&captured, settings.models[0].acceptance.k());
        let engine = Engine::start(Settings {
            script,
            ..settings.clone()
        })
        .await
        .unwrap();
        let request = wire::request(path, name, key);
        let answered = wire::exchange(engine.address, &request).await;
        let (wanted, got) = (masked(&captured), masked(&answered));
        if wanted != got {
            let at = wanted
                .bytes()
                .zip(got.bytes())
                .take_while(|(a, b)| a == b)
                .count();
            let near = |text: &str| {
                let bytes = &text.as_bytes()[at.saturating_sub(200)..text.len().min(at + 200)];
                String::from_utf8_lossy(bytes).into_owned()
            };
            panic!(
                "{folder}/{name} differs at byte {at}\nwanted …{}…\n\ngot …{}…",
                near(&wanted),
                near(&got)
            );
        }
        engine.stop().await;
    }
    cases.len()
}

#[tokio::test]
async fn with_a_summary_per_request() {
    let number = replay("ngram-summary", settings(4), None, mask::ids).await;
    assert!(number >= 70, "only {number} cases");
}

#[tokio::test]
async fn with_details_per_request() {
    let settings = Settings {
        level: Level::Detailed,
        ..settings(4)
    };
    assert!(replay("ngram-detailed", settings, None, mask::ids).await >= 20);
}

#[tokio::test]
async fn with_details_of_a_draft_model() {
    let settings_3 = Settings {
        level: Level::Detailed,
        fingerprint: Some("vllm-0.32.0-4cfaa732".into()),
        ..settings(3)
    };
    assert!(replay("draft-model-detailed", settings_3, None, mask::ids).await >= 11);
    let settings_1 = Settings {
        level: Level::Detailed,
        fingerprint: Some("vllm-0.32.0-4cfaa732".into()),
        ..settings(1)
    };
    assert!(replay("draft-model-k1-detailed", settings_1, None, mask::ids).await >= 4);
}

#[tokio::test]
async fn without_a_level() {
    let settings = Settings {
        level: Level::None,
        ..settings(4)
    };
    assert_eq!(
        replay("ngram-level-none", settings, None, mask::ids).await,
        5
    );
}

#[tokio::test]
async fn without_speculation() {
    let settings = Settings {
        fingerprint: Some("vllm-0.32.0-90e009e8".into()),
        ..settings(0)
    };
    assert_eq!(replay("no-speculation", settings, None, mask::ids).await, 5);
}

#[tokio::test]
async fn with_usage_forced_and_request_id_headers() {
    let settings = Settings {
        force_include_usage: true,
        request_id_headers: true,
        ..settings(4)
    };
    assert_eq!(
        replay(
            "ngram-summary-force-include-usage",
            settings,
            None,
            mask::ids
        )
        .await,
        13
    );
}

#[tokio::test]
async fn with_a_key_and_without_a_fingerprint() {
    let settings = Settings {
        level: Level::Detailed,
        fingerprint: None,
        api_key: Some("sk-test-only".into()),
        ..settings(4)
    };
    let folder = "ngram-detailed-api-key-no-fingerprint";
    let with_key = format!("{folder}/with-key");
    assert_eq!(
        replay(&with_key, settings.clone(), Some("sk-test-only"), mask::ids).await,
        7
    );
    assert_eq!(
        replay(&format!("{folder}/without-key"), settings, None, mask::ids).await,
        4
    );
}

#[tokio::test]
async fn with_times_per_request() {
    let settings = Settings {
        per_request_metrics: true,
        prompt_tokens_details: true,
        ..settings(4)
    };
    assert!(
        replay(
            "ngram-summary-per-request-metrics",
            settings,
            None,
            mask::ids_and_times
        )
        .await
            >= 13
    );
}

#[tokio::test]
async fn connections_are_used_again_and_requests_may_be_written_ahead() {
    let path =
        Path::new(ROOT).join("ngram-summary-connections/chat-pipelined-stream-then-nonstream.http");
    let captured = std::fs::read(path).unwrap();
    let script = capture::script(&captured, 4);
    let settings = Settings {
        script,
        fingerprint: Some("vllm-0.32.0-5f8bd39c".into()),
        ..settings(4)
    };
    let engine = Engine::start(settings).await.unwrap();
    let body =
        |extra: &str| format!(r#"{{"model":"tiny-model","messages":[],"max_tokens":4{extra}}}"#);
    let first = body(r#","stream":true,"stream_options":{"include_usage":true}"#);
    let second = body("");
    let head = |body: &str, connection: &str| {
        format!(
            "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n{connection}\r\n{body}",
            body.len()
        )
    };
    let both = head(&first, "") + &head(&second, "Connection: close\r\n");
    let answered = wire::exchange(engine.address, both.as_bytes()).await;
    assert_eq!(mask::ids(&answered), mask::ids(&captured));
    assert_eq!(engine.log.entries().len(), 2);
}

/// The lines of a metrics page without their values, only those of the families named.
fn lines(response: &[u8], families: &[&str]) -> Vec<String> {
    let of_families = |line: &&str| {
        let name = line
            .trim_start_matches("# HELP ")
            .trim_start_matches("# TYPE ");
        let name = name.split([' ', '{']).next().unwrap();
        let base = name.trim_end_matches("_total").trim_end_matches("_created");
        families
            .iter()
            .any(|family| base == format!("vllm:{family}"))
    };
    let body = wire::body_of(response);
    let lines = body.lines().filter(of_families);
    lines
        .map(|line| {
            if line.starts_with('#') {
                line
            } else {
                line.rsplit_once(' ').unwrap().0
            }
            .to_owned()
        })
        .collect()
}

#[tokio::test]
async fn the_metrics_page_has_the_captured_lines_in_the_captured_order() {
    let families = [
        "spec_decode_num_drafts",
        "spec_decode_num_draft_tokens",
        "spec_decode_num_accepted_tokens",
        "spec_decode_num_accepted_tokens_per_pos",
        "num_requests_running",
        "num_requests_waiting",
        "kv_cache_usage_perc",
        "prompt_tokens",
        "generation_tokens",
        "request_success",
    ];
    for (folder, k) in [
        ("ngram-summary", 4),
        ("draft-model-detailed", 3),
        ("no-speculation", 0),
    ] {
        let captured = std::fs::read(Path::new(ROOT).join(folder).join("metrics.http")).unwrap();
        let engine = Engine::start(settings(k)).await.unwrap();
        let answered = wire::exchange(engine.address, &wire::get("/metrics")).await;
        assert_eq!(
            lines(&answered, &families),
            lines(&captured, &families),
            "{folder}"
        );
        assert!(!lines(&captured, &families).is_empty());
        let head = |response: &[u8]| {
            let text = String::from_utf8_lossy(response).into_owned();
            let head = text.split_once("\r\n\r\n").unwrap().0.to_owned();
            let kept = head
                .lines()
                .filter(|line| !line.starts_with("date") && !line.starts_with("content-length"));
            kept.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(head(&answered), head(&captured));
    }
}
