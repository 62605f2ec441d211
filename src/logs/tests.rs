//! What the log lines hold and what they never hold.

use std::io::Write;
use std::sync::{Arc, Mutex};

use super::*;

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn logged(format: LogFormat, filter: &str, log: impl FnOnce()) -> String {
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = subscriber(format, filter, false, move || writer.clone()).unwrap();
    tracing::subscriber::with_default(subscriber, log);
    String::from_utf8(lines.0.lock().unwrap().clone()).unwrap()
}

fn observation() -> Observation {
    serde_json::from_value(serde_json::json!({
        "id": "01JAAAAAAAAAAAAAAAAAAAAAAA", "request_id": "chatcmpl-1", "x_request_id": "secret-header",
        "trace_id": null, "started_at": "2026-12-01T09:00:00Z", "ended_at": "2026-12-01T09:00:01Z",
        "lane": "127.0.0.1:8090", "route": "chat_completions", "model": "evil\n\u{1b}[31mname", "tag": "secret-tag",
        "run": null, "stream": true, "n": 1, "prompts": 1, "stream_options_asked": null, "in_flight": 1,
        "status": 200, "outcome": "complete", "acceptance": "absent", "reason": "level_off",
        "finish_reasons": ["stop"], "facets": {"temperature": "0", "format": "none"},
        "usage": {"prompt_tokens": null, "completion_tokens": null, "cached_tokens": null, "reasoning_tokens": null},
        "timing": {"time_to_first_byte_ms": null, "time_to_first_token_ms": null, "inter_token_latency_ms": null,
            "inter_chunk_latency_ms": null, "request_latency_ms": 108.5, "upstream_connect_ms": null},
        "engine_metrics": {}, "content_chunks": 3, "spec_decode_acceptance": []
    }))
    .unwrap()
}

#[test]
fn an_exchange_is_one_json_line_with_numbers_and_no_header_value() {
    let text = logged(
        LogFormat::Json,
        "spectap=debug",
        || exchange(&observation()),
    );
    assert_eq!(text.lines().count(), 1, "{text}");
    let line: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(line["level"], "DEBUG");
    assert_eq!(line["id"], "01JAAAAAAAAAAAAAAAAAAAAAAA");
    assert_eq!(line["route"], "chat_completions");
    assert_eq!(line["status"], 200);
    assert_eq!(line["outcome"], "complete");
    assert_eq!(line["acceptance"], "absent");
    assert_eq!(line["reason"], "level_off");
    assert_eq!(line["latency_ms"], 108.5);
    assert!(!text.contains("secret"), "{text}");
}

#[test]
fn a_text_line_stays_one_line_whatever_the_model_is_called() {
    let text = logged(
        LogFormat::Text,
        "spectap=debug",
        || exchange(&observation()),
    );
    assert_eq!(text.lines().count(), 1, "{text:?}");
    assert!(!text.contains('\u{1b}'), "{text:?}");
    assert!(text.contains("outcome=\"complete\""), "{text:?}");
}

#[test]
fn the_default_filter_is_quiet_about_single_exchanges_and_about_other_crates() {
    let text = logged(LogFormat::Text, DEFAULT_FILTER, || {
        exchange(&observation());
        tracing::info!(target: "hyper", "chatter");
        tracing::info!(target: "spectap", "begins");
    });
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.contains("begins"), "{text}");
}

#[test]
fn a_bad_filter_is_refused_with_what_would_be_right() {
    let error = subscriber(LogFormat::Text, "spectap=loudly", false, std::io::stderr)
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("'spectap=loudly'"), "{error}");
    assert!(error.contains(DEFAULT_FILTER), "{error}");
}
