//! The first request of a fresh tap, which knows nothing of its engine: the client gets the bytes that it would have had
//! without spectap, on every simulated engine.

use std::net::SocketAddr;
use std::time::Duration;

use spectap::simulate::{Acceptance, Engine, EngineKind, Model, Running, Settings};
use tokio::runtime::Runtime;

use crate::support::client::{dechunk, exchange, post};
use crate::support::fixtures::masked;
use crate::support::tap::Tap;

const CLOSE: &str = "Connection: close\r\n";

fn engine(runtime: &Runtime, kind: EngineKind) -> Running {
    let model = Model::new("m", Acceptance::parse("0.8,0.7,0.6").unwrap());
    let mut settings = Settings::new(kind, vec![model]);
    settings.seed = 5;
    settings.step_time = Duration::ZERO;
    runtime.block_on(Engine::start(settings)).unwrap()
}

/// Status line and body, with ids and times masked.
fn answer(address: SocketAddr, request: &str) -> (String, String) {
    let raw = exchange(address, request);
    let at = memchr::memmem::find(&raw, b"\r\n\r\n").unwrap() + 4;
    let head = String::from_utf8_lossy(&raw[..at]).into_owned();
    let body = if head.to_lowercase().contains("transfer-encoding: chunked") {
        dechunk(&raw[at..])
    } else {
        raw[at..].to_vec()
    };
    (
        head.lines().next().unwrap().to_owned(),
        without_times(&masked(&body)),
    )
}

/// Numbers of milliseconds and rates differ between two runs of the same request.
fn without_times(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some(at) = rest
        .find("_ms\":")
        .map(|at| at + 5)
        .into_iter()
        .chain(rest.find("_per_second\":").map(|at| at + 13))
        .min()
    {
        kept.push_str(&rest[..at]);
        rest = rest[at..].trim_start_matches(|c: char| c.is_ascii_digit() || ".e-+".contains(c));
    }
    kept + rest
}

#[test]
fn nothing_of_the_injection_shows_on_any_engine() {
    let runtime = Runtime::new().unwrap();
    let chat = |more: &str| {
        format!(
            r#"{{"model":"m","messages":[{{"role":"user","content":"hi"}}],"max_tokens":24{more}}}"#
        )
    };
    let completions =
        |more: &str| format!(r#"{{"model":"m","prompt":"hi","max_tokens":24{more}}}"#);
    let requests = [
        ("/v1/chat/completions", chat(r#","stream":true"#)),
        (
            "/v1/chat/completions",
            chat(r#","stream":true,"stream_options":{"include_usage":false}"#),
        ),
        (
            "/v1/chat/completions",
            chat(r#","stream":true,"stream_options":null"#),
        ),
        (
            "/v1/chat/completions",
            chat(r#","stream":true,"stream_options":{"continuous_usage_stats":true}"#),
        ),
        (
            "/v1/chat/completions",
            chat(r#","stream":true,"stream_options":{"include_usage":true}"#),
        ),
        ("/v1/chat/completions", chat(r#","stream":true,"n":2"#)),
        ("/v1/chat/completions", chat("")),
        ("/v1/completions", completions(r#","stream":true"#)),
        ("/v1/completions", completions(r#","stream":true,"n":2"#)),
        ("/v1/completions", completions("")),
    ];
    for kind in [
        EngineKind::Vllm,
        EngineKind::TensorrtLlm,
        EngineKind::Sglang,
        EngineKind::LlamaCpp,
    ] {
        for (path, body) in &requests {
            // Each a fresh engine of the same seed, and a fresh tap.
            let (direct, behind) = (engine(&runtime, kind), engine(&runtime, kind));
            let tap = Tap::before(behind.address);
            let request = post(path, body, CLOSE);
            let expected = answer(direct.address, &request);
            assert!(
                expected.0.contains("200"),
                "{} {body}: {expected:?}",
                kind.name()
            );
            assert_eq!(
                answer(tap.data, &request),
                expected,
                "{} {path} {body}",
                kind.name()
            );
        }
    }
}

#[test]
fn a_tap_that_knows_its_engine_shows_no_more_than_a_fresh_one() {
    let runtime = Runtime::new().unwrap();
    for kind in [
        EngineKind::Vllm,
        EngineKind::TensorrtLlm,
        EngineKind::Sglang,
        EngineKind::LlamaCpp,
    ] {
        let (direct, behind) = (engine(&runtime, kind), engine(&runtime, kind));
        let tap = Tap::before(behind.address);
        for (number, more) in [
            r#""stream":false"#,
            r#""stream":true"#,
            r#""stream":true,"n":2"#,
            r#""stream":true"#,
        ]
        .iter()
        .enumerate()
        {
            let body = format!(
                r#"{{"model":"m","messages":[{{"role":"user","content":"hi"}}],"max_tokens":24,{more}}}"#
            );
            let request = post("/v1/chat/completions", &body, CLOSE);
            assert_eq!(
                answer(tap.data, &request),
                answer(direct.address, &request),
                "{} {more}",
                kind.name()
            );
            tap.observations(number + 1);
        }
        // And the numbers are there, where the engine has any.
        let recorded = tap.json("/api/v1/summary")["n"]["recorded"]
            .as_u64()
            .unwrap();
        assert!(recorded >= 1, "{}: nothing was recorded", kind.name());
    }
}
