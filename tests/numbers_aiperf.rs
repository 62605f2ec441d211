//! On the same payloads, spectap's figures equal AIPerf's: every tag, the pooled histogram, the table and the line below.

#![allow(
    clippy::expect_used,
    reason = "a test fails loudly; clippy sees only the test functions as tests"
)]

mod numbers_support;

use numbers_support::{aiperf_file, aiperf_observations, statistics};
use serde_json::Value;
use spectap::export::{Query, Snapshot, Summary, snapshot, summary, summary::of_snapshot, table};

const ACCEPTANCE_TAGS: [&str; 12] = [
    "spec_decode_acceptance_length",
    "spec_decode_token_weighted_acceptance_length",
    "spec_decode_draft_acceptance_rate",
    "spec_decode_overall_draft_acceptance_rate",
    "spec_decode_accepted_per_verified",
    "spec_decode_steps",
    "spec_decode_zero_step_requests",
    "spec_decode_accepted_draft_tokens",
    "spec_decode_draft_tokens",
    "total_spec_decode_steps",
    "total_accepted_draft_tokens",
    "total_draft_tokens",
];

fn of_run(run: &str) -> Summary {
    summary(&statistics(aiperf_observations(run)), &Query::default())
}

fn assert_equal_to_aiperf(run: &str, tags_expected: usize) {
    let ours = serde_json::to_value(of_run(run)).expect("a summary is JSON");
    let theirs: Value = serde_json::from_str(&aiperf_file(run, "profile_export_aiperf.json"))
        .expect("AIPerf's export is JSON");
    let mut tags_seen = 0;
    for tag in ACCEPTANCE_TAGS
        .into_iter()
        .chain(["output_sequence_length", "input_sequence_length"])
    {
        let (ours, theirs) = (&ours["metrics"][tag], &theirs[tag]);
        assert_eq!(
            ours.is_null(),
            theirs.is_null(),
            "{run}: {tag} is there or not"
        );
        for (member, theirs) in theirs.as_object().into_iter().flatten() {
            assert_member(run, tag, member, &ours[member], theirs);
        }
        tags_seen += usize::from(!theirs.is_null());
    }
    assert_eq!(tags_seen, tags_expected, "{run}: tags compared");
    let histogram = "pooled_spec_decode_acceptance_histogram";
    let nothing = Value::Object(Default::default());
    assert_eq!(&ours[histogram], theirs.get(histogram).unwrap_or(&nothing));
}

fn assert_member(run: &str, tag: &str, member: &str, ours: &Value, theirs: &Value) {
    let Some(theirs) = theirs.as_f64() else {
        assert_eq!(ours, theirs, "{run}: {tag}.{member}");
        return;
    };
    let ours = ours
        .as_f64()
        .unwrap_or_else(|| panic!("{run}: {tag}.{member} is missing"));
    let close = (ours - theirs).abs() <= 1e-9 * theirs.abs();
    assert!(
        close,
        "{run}: {tag}.{member} is {ours}, AIPerf has {theirs}"
    );
}

/// AIPerf's own table, title line left out, and the histogram line where there is one.
fn aiperf_section(run: &str) -> Vec<String> {
    aiperf_file(run, "console.txt")
        .lines()
        .skip_while(|line| !line.contains("LLM Metrics: Spec Decode"))
        .skip(1)
        .take_while(|line| !line.trim().is_empty())
        .map(str::to_owned)
        .collect()
}

fn assert_prints_as_aiperf(run: &str) {
    let printed = table::spec_decode(&of_run(run));
    let mut lines = printed.lines();
    let title = lines.next().expect("a title");
    assert_eq!(title.trim(), "Spec Decode");
    let ours: Vec<&str> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
    assert_eq!(ours, aiperf_section(run), "{run}");
    let width = ours[0].chars().count();
    assert_eq!(
        title.chars().count(),
        width,
        "the title's line is as wide as the table"
    );
    let counts = lines
        .next()
        .expect("a line that says of how many exchanges it is");
    assert!(
        counts.starts_with("  ") && counts.contains(" exchanges, "),
        "{counts}"
    );
}

#[test]
fn every_figure_of_a_vllm_run_equals_aiperf() {
    assert_equal_to_aiperf("aiperf-vllm", 14);
}

#[test]
fn every_figure_of_a_tensorrt_llm_run_equals_aiperf() {
    assert_equal_to_aiperf("aiperf-trtllm", 13);
}

#[test]
fn a_run_with_nothing_but_zero_step_requests_equals_aiperf() {
    assert_equal_to_aiperf("aiperf-zero-only", 3);
}

#[test]
fn a_run_without_numbers_has_no_acceptance_tag_as_in_aiperf() {
    assert_equal_to_aiperf("aiperf-nostats", 2);
}

#[test]
fn the_table_and_the_line_of_a_vllm_run_are_aiperfs_characters() {
    assert_prints_as_aiperf("aiperf-vllm");
}

#[test]
fn the_table_and_the_line_of_a_tensorrt_llm_run_are_aiperfs_characters() {
    assert_prints_as_aiperf("aiperf-trtllm");
}

#[test]
fn the_table_of_zero_step_requests_is_aiperfs_and_has_no_line() {
    assert_prints_as_aiperf("aiperf-zero-only");
}

#[test]
fn a_run_without_numbers_gets_a_sentence_instead_of_a_table() {
    assert!(aiperf_section("aiperf-nostats").is_empty());
    assert_eq!(
        table::spec_decode(&of_run("aiperf-nostats")),
        "No acceptance numbers: 12 exchanges, 12 absent (unknown): the responses give no hint why\n"
    );
}

#[test]
fn payloads_that_aiperf_drops_silently_are_counted_by_reason() {
    let summary = serde_json::to_value(of_run("aiperf-vllm")).expect("JSON");
    let n = &summary["n"];
    assert_eq!(n["exchanges"], 60);
    assert_eq!(n["recorded"], 37);
    assert_eq!(n["zero_step"], 6);
    assert_eq!(
        n["absent"],
        4 + 3,
        "4 without, and an empty, a null and a list payload"
    );
    assert_eq!(n["ambiguous"], 1);
    assert_eq!(n["malformed"], 9);
    assert_eq!(
        summary["reasons"]["malformed"],
        serde_json::json!({
            "identity_sum": 1, "identity_weighted": 1, "accepted_gt_drafted": 1,
            "histogram_length": 1, "zero_steps_with_drafts": 1, "bad_number": 4
        })
    );
    let share = summary["record_share"].as_f64().expect("a share");
    assert!((share - 43.0 / 60.0).abs() < 1e-12);
}

#[test]
fn a_snapshot_that_went_through_json_gives_the_same_summary() {
    let statistics = statistics(aiperf_observations("aiperf-vllm"));
    let direct = summary(&statistics, &Query::default());
    let text = serde_json::to_string(&snapshot(&statistics, &Query::default())).expect("JSON");
    let read: Snapshot = serde_json::from_str(&text).expect("a snapshot");
    let fetched = of_snapshot(&read, &[]);
    assert_eq!(table::spec_decode(&fetched), table::spec_decode(&direct));
    assert_eq!(fetched.n, direct.n);
    assert_eq!(fetched.survival, direct.survival);
    assert_eq!(
        fetched.metrics.keys().collect::<Vec<_>>(),
        direct.metrics.keys().collect::<Vec<_>>()
    );
}
