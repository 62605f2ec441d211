//! The two texts of `/metrics`, checked by the readers of the people who made the formats.

use std::io::Write;
use std::process::{Command, Stdio};

use prometheus::process_collector::ProcessCollector;
use prometheus::{HistogramOpts, HistogramVec, IntCounter};
use spectap::observation::{Acceptance, Reason};
use spectap::stats::Facet;

use crate::server::{Choice, Server, id, observation};

pub(crate) const PROMETHEUS_2: &str = "Accept: application/openmetrics-text;version=1.0.0;q=0.8,\
    application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1\r\n";

/// Says that a check was left out, or fails where nothing may be left out.
pub(crate) fn skip(test: &str, reason: &str) {
    assert!(
        std::env::var_os("CI").is_none_or(|value| value != "true"),
        "{test}: {reason}, and with CI=true nothing is skipped"
    );
    eprintln!("SKIPPED {test}: {reason}");
}

/// A port with every series of the tap, and labels that need escaping.
pub(crate) async fn with_traffic() -> Server {
    let choice = Choice {
        facet: Some(Facet::Temperature),
        ..Choice::default()
    };
    let server = Server::start_with(choice).await;
    let process = ProcessCollector::for_self();
    server.registry.register(Box::new(process)).unwrap();
    let mut tagged = observation(1);
    tagged.model = Some("org/model \"q8\"\\v1\n".to_owned());
    tagged.tag = Some("math".to_owned());
    server.record(tagged);
    server.record(observation(2));
    let mut absent = observation(3);
    absent.spec_decode_acceptance.clear();
    absent.acceptance = Some(Acceptance::Absent);
    absent.reason = Some(Reason::LevelOff);
    server.record(absent);
    let counters = &server.counters;
    counters.outcomes.with_label_values(&["complete"]).inc_by(3);
    counters
        .injections
        .with_label_values(&["include_usage", "shown"])
        .inc();
    counters
        .injections_skipped
        .with_label_values(&["not_json"])
        .inc();
    counters
        .strips_skipped
        .with_label_values(&["engine_sends_usage"])
        .inc();
    counters.replays.with_label_values(&["same_status"]).inc();
    counters
        .upstream_errors
        .with_label_values(&["connect"])
        .inc();
    counters
        .upstream_connections
        .with_label_values(&["idle"])
        .set(1);
    server
}

/// The same, with a histogram of awkward bounds and a counter whose name lacks the suffix.
pub(crate) async fn with_series() -> Server {
    let server = with_traffic().await;
    server
        .counters
        .requests
        .with_label_values(&["chat_completions", "200"])
        .inc_by(41);
    server
        .counters
        .unobserved
        .with_label_values(&["a \"b\"\\c\nd"])
        .inc();
    server
        .counters
        .requests_in_flight
        .with_label_values(&["completions"])
        .set(3);
    let options = HistogramOpts::new("spectap_test_seconds", "How \"long\" a test takes.")
        .buckets(vec![0.00005, 0.5, 1.0, 2_000_000.0]);
    let histogram = HistogramVec::new(options, &["model_name"]).unwrap();
    for value in [0.25, 0.75, 3_000_000.5] {
        histogram.with_label_values(&["m"]).observe(value);
    }
    server.registry.register(Box::new(histogram)).unwrap();
    let bare = IntCounter::new(
        "spectap_without_suffix",
        "A counter whose name lacks the suffix.",
    )
    .unwrap();
    bare.inc_by(9_007_199_254_740_991);
    server.registry.register(Box::new(bare)).unwrap();
    server
}

#[tokio::test]
async fn a_scraper_gets_the_text_it_prefers() {
    let server = with_series().await;
    let classic = "text/plain; version=0.0.4; charset=utf-8";
    let open = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    for (accept, expected) in [
        ("", classic),
        ("Accept: */*\r\n", classic),
        (
            "Accept: text/plain;version=0.0.4;q=0.5\r\nAccept: */*;q=0.1\r\n",
            classic,
        ),
        (PROMETHEUS_2, open),
        (
            "Accept: text/plain;q=0.3\r\nAccept: application/openmetrics-text\r\n",
            open,
        ),
    ] {
        let answer = server.get_with("/metrics", accept).await;
        assert_eq!(answer.header("content-type"), Some(expected), "{accept}");
        assert_eq!(answer.header("vary"), Some("Accept"));
        assert_eq!(
            answer.body.ends_with("# EOF\n"),
            expected == open,
            "{accept}"
        );
        let sample = "spectap_requests_total{code=\"200\",route=\"chat_completions\"} 41\n";
        assert!(answer.body.contains(sample), "{}", answer.body);
    }
}

#[tokio::test]
async fn the_strict_reader_takes_the_openmetrics_text_and_reads_the_same_values() {
    const TEST: &str = "the_strict_reader_takes_the_openmetrics_text_and_reads_the_same_values";
    let python = std::env::var("SPECTAP_TEST_PYTHON")
        .unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/.venv/bin/python").to_owned());
    let has_package = Command::new(&python)
        .args(["-c", "import prometheus_client.openmetrics.parser"])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !has_package {
        return skip(TEST, &format!("'{python}' has no prometheus-client (pip)"));
    }
    let text = with_series()
        .await
        .get_with("/metrics", PROMETHEUS_2)
        .await
        .body;
    let script = r#"
import json, sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families
found = {}
for family in text_string_to_metric_families(sys.stdin.read()):
    for s in family.samples:
        e = s.exemplar and [s.exemplar.labels, s.exemplar.value, round(float(s.exemplar.timestamp), 3)]
        found[s.name + json.dumps(s.labels, sort_keys=True)] = [family.name, family.type, family.documentation, s.value, e]
print(json.dumps(found))
"#;
    let (ok, output) = piped(Command::new(python).args(["-c", script]), &text);
    assert!(ok, "{output}\n{text}");
    let found: serde_json::Value = serde_json::from_str(&output).unwrap();
    let expect = |key: &str, family: &str, kind: &str, value: f64| {
        let sample = &found[key];
        assert_eq!(sample[0], family, "{key} in {found}");
        assert_eq!(sample[1], kind, "{key}");
        assert_eq!(sample[3], value, "{key}");
    };
    expect(
        r#"spectap_requests_total{"code": "200", "route": "chat_completions"}"#,
        "spectap_requests",
        "counter",
        41.0,
    );
    expect(
        r#"spectap_unobserved_total{"reason": "a \"b\"\\c\nd"}"#,
        "spectap_unobserved",
        "counter",
        1.0,
    );
    expect(
        r#"spectap_requests_in_flight{"route": "completions"}"#,
        "spectap_requests_in_flight",
        "gauge",
        3.0,
    );
    expect(
        "spectap_without_suffix_total{}",
        "spectap_without_suffix",
        "counter",
        9_007_199_254_740_991.0,
    );
    expect(
        r#"spectap_build_info{"commit": "", "version": "0.1.0"}"#,
        "spectap_build_info",
        "gauge",
        1.0,
    );
    expect(
        r#"spectap_spec_decode_num_drafts_total{"backend": "vllm", "model_name": "m", "temperature": "0"}"#,
        "spectap_spec_decode_num_drafts",
        "counter",
        4.0,
    );
    // The newest exchange of the bucket, and none where no value fell into one.
    let bucket = |bound: &str| {
        let labels = format!(r#"{{"backend": "vllm", "le": "{bound}", "model_name": "m"}}"#);
        &found[format!("spectap_spec_decode_acceptance_length_bucket{labels}")][4]
    };
    let ended_at = 1_796_115_600.109;
    assert_eq!(
        bucket("3.0"),
        &serde_json::json!([{"observation_id": id(2)}, 2.75, ended_at])
    );
    assert_eq!(bucket("2.5"), &serde_json::Value::Null);
    let test_seconds = "spectap_test_seconds";
    expect(
        &format!(r#"{test_seconds}_bucket{{"le": "1.0", "model_name": "m"}}"#),
        test_seconds,
        "histogram",
        2.0,
    );
    expect(
        &format!(r#"{test_seconds}_bucket{{"le": "+Inf", "model_name": "m"}}"#),
        test_seconds,
        "histogram",
        3.0,
    );
    expect(
        &format!(r#"{test_seconds}_sum{{"model_name": "m"}}"#),
        test_seconds,
        "histogram",
        3_000_001.5,
    );
    let help = &found[format!(r#"{test_seconds}_count{{"model_name": "m"}}"#)][2];
    assert_eq!(help, "How \"long\" a test takes.");
}

#[tokio::test]
async fn promtool_finds_nothing_to_say_about_the_classic_text() {
    const TEST: &str = "promtool_finds_nothing_to_say_about_the_classic_text";
    if Command::new("promtool").arg("--version").output().is_err() {
        return skip(TEST, "there is no promtool on PATH");
    }
    let server = with_traffic().await;
    server
        .counters
        .requests
        .with_label_values(&["chat_completions", "200"])
        .inc();
    server
        .counters
        .requests_in_flight
        .with_label_values(&["completions"])
        .set(3);
    server
        .counters
        .unobserved
        .with_label_values(&["encoding"])
        .inc();
    let text = server.get("/metrics").await.body;
    let (ok, output) = piped(Command::new("promtool").args(["check", "metrics"]), &text);
    assert!(ok, "{output}\n{text}");
}

/// Runs a command on a text; whether it succeeded, and what it printed.
fn piped(command: &mut Command, input: &str) -> (bool, String) {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.success(),
        text(&output.stdout) + &text(&output.stderr),
    )
}
