use std::sync::Arc;

use serde_json::json;

use super::super::summary;
use crate::export::Query;
use crate::observation::{Observation, ObservationSink};
use crate::stats::Statistics;

/// An exchange that ended so many seconds after nine, with so many under way.
fn exchange(second: u64, in_flight: u64, reason: Option<&str>) -> Observation {
    let record = json!([{"engine": "tensorrt_llm", "provenance": "histogram", "choice_index": 0,
        "mean_acceptance_length": 2.75, "draft_acceptance_rate": 0.4375,
        "acceptance_histogram": {"1": 2, "2": 1, "3": 1}, "num_accepted_draft_tokens": 7,
        "num_draft_tokens": 16, "num_spec_steps": 4, "num_spec_tokens": 4, "completion_tokens": 48}]);
    let at = format!(
        "2026-12-01T09:{:02}:{:02}.000000Z",
        second / 60,
        second % 60
    );
    let acceptance = if reason.is_some() {
        "absent"
    } else {
        "recorded"
    };
    let records = if reason.is_some() { json!([]) } else { record };
    serde_json::from_value(json!({
        "id": ulid::Ulid::from(u128::from(second)).to_string(), "request_id": null, "x_request_id": null, "trace_id": null,
        "started_at": at, "ended_at": at, "lane": "a", "route": "chat_completions", "model": "m", "tag": null,
        "run": null, "stream": true, "n": 1, "prompts": 1, "stream_options_asked": null, "in_flight": in_flight,
        "status": 200, "outcome": "complete", "acceptance": acceptance, "reason": reason,
        "finish_reasons": ["length"], "facets": {"temperature": "0", "format": "none"},
        "usage": {"prompt_tokens": 22, "completion_tokens": 48, "cached_tokens": null, "reasoning_tokens": null},
        "timing": {"time_to_first_byte_ms": 2.1, "time_to_first_token_ms": 41.0, "inter_token_latency_ms": 1.4,
            "inter_chunk_latency_ms": 2.9, "request_latency_ms": 108.2, "upstream_connect_ms": 0.2},
        "engine_metrics": {}, "content_chunks": 12, "spec_decode_acceptance": records
    }))
    .unwrap()
}

/// The codes and texts of the findings about exchanges of which each second brings one.
fn findings(
    exchanges: impl IntoIterator<Item = (u64, Option<&'static str>)>,
) -> Vec<(String, u64, String)> {
    let statistics = Statistics::new();
    for (second, (in_flight, reason)) in exchanges.into_iter().enumerate() {
        statistics.record(Arc::new(exchange(second as u64, in_flight, reason)));
    }
    let findings = summary(&statistics, &Query::default()).findings;
    let ours = findings
        .into_iter()
        .filter(|it| it.code.contains("missing"));
    ours.map(|it| (it.code, it.n, it.text)).collect()
}

#[test]
fn after_a_minute_the_reasons_are_told_with_their_counts_and_what_to_set() {
    let mixed = |second: u64| match second % 4 {
        0 => Some("n_gt_1"),
        1 => Some("level_off"),
        2 => Some("level_off"),
        _ => None,
    };
    let told = findings((0..100).map(|second| (1, mixed(second))));
    let [(code, 50, text), (_, 25, other)] = &told[..] else {
        panic!("{told:?}")
    };
    assert_eq!(code, "numbers_missing");
    assert!(
        text.contains("level_off") && text.contains("--per-request-spec-decode-metrics"),
        "{text}"
    );
    assert!(other.contains("n_gt_1"), "{other}");
    assert_eq!(findings((0..50).map(|second| (1, mixed(second)))), []);
    // One in two hundred is nothing to talk of.
    let seldom = |second| (second == 7).then_some("aborted");
    assert_eq!(findings((0..200).map(|second| (1, seldom(second)))), []);
}

#[test]
fn absence_that_rises_with_the_requests_under_way_is_named_as_such() {
    let above_eight = |second: u64| {
        let in_flight = second % 16 + 1;
        (in_flight, (in_flight > 8).then_some("not_drafted"))
    };
    let codes = |told: Vec<(String, u64, String)>| {
        told.into_iter().map(|(code, ..)| code).collect::<Vec<_>>()
    };
    let told = findings((0..160).map(above_eight));
    assert!(told[1].2.contains("max_concurrency"), "{told:?}");
    assert_eq!(codes(told), ["numbers_missing", "missing_under_load"]);
    // As often with few as with many.
    let evenly = |second: u64| {
        (
            second / 2 % 16 + 1,
            second.is_multiple_of(2).then_some("not_drafted"),
        )
    };
    assert_eq!(codes(findings((0..160).map(evenly))), ["numbers_missing"]);
}
