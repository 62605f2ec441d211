//! What AIPerf said of its recorded runs is what spectap says after the same responses went through a serving instance.
//!
//! The responses are rebuilt, byte for byte in the engine's shape, from the engine's own log of each run, and sent by a
//! raw-socket engine; the figures are read where a user reads them, at the admin port and from `spectap report`.
//! `make parity` does the same with a live AIPerf; this stays when that AIPerf can no longer be installed.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that can not go on fails"
)]

#[allow(dead_code, reason = "the wire tests use the rest")]
#[path = "wire/support/mod.rs"]
mod support;

#[path = "parity_artifacts/artifacts.rs"]
mod artifacts;
#[path = "parity_artifacts/replayed.rs"]
mod replayed;

use std::collections::BTreeMap;

use artifacts::{Artifacts, RECORD_MEMBERS, TAGS};
use replayed::Replayed;
use serde_json::{Value, json};

/// Every tag is in both or in neither, and every member that AIPerf gives is equal.
fn assert_figures(replayed: &Replayed, tags_expected: usize) {
    let run = replayed.run();
    let artifacts = Artifacts::of(run);
    let (ours, theirs) = (replayed.summary(), artifacts.summary());
    let mut tags_seen = 0;
    for tag in TAGS {
        let (own, other) = (ours["metrics"].get(tag), theirs.get(tag));
        assert_eq!(own.is_some(), other.is_some(), "{run}: {tag} is there");
        for (member, value) in other.and_then(Value::as_object).into_iter().flatten() {
            assert_close(
                &format!("{run}: {tag}.{member}"),
                &own.unwrap()[member],
                value,
            );
        }
        tags_seen += usize::from(other.is_some());
    }
    assert_eq!(tags_seen, tags_expected, "{run}: tags compared");
    let histogram = "pooled_spec_decode_acceptance_histogram";
    let wanted = theirs.get(histogram).cloned().unwrap_or(json!({}));
    assert_eq!(ours[histogram], wanted, "{run}");
}

fn assert_close(what: &str, ours: &Value, theirs: &Value) {
    let Some(wanted) = theirs.as_f64() else {
        return assert_eq!(ours, theirs, "{what}");
    };
    let own = ours.as_f64().unwrap_or_else(|| panic!("{what} is missing"));
    assert!(
        (own - wanted).abs() <= 1e-9 * wanted.abs(),
        "{what}: {own}, AIPerf has {wanted}"
    );
}

/// Each request's record and token counts are those of AIPerf's trace; the numbers of records and of requests without.
fn assert_records(replayed: &Replayed) -> (usize, usize) {
    let run = replayed.run();
    let artifacts = Artifacts::of(run);
    let seen: BTreeMap<String, Value> = replayed
        .observations()
        .into_iter()
        .map(|seen| (seen["x_request_id"].as_str().unwrap().to_owned(), seen))
        .collect();
    let (mut with, mut without) = (0, 0);
    for line in artifacts.trace() {
        let id = line["metadata"]["x_request_id"].as_str().unwrap();
        let seen = &seen[id];
        for (count, tag) in [
            ("completion_tokens", "output_sequence_length"),
            ("prompt_tokens", "input_sequence_length"),
        ] {
            let theirs = &line["metrics"][tag]["value"];
            assert_eq!(&seen["usage"][count], theirs, "{run}: {id}: {count}");
        }
        let records = seen["spec_decode_acceptance"].as_array().unwrap();
        let record = records.iter().find(|one| one["num_spec_steps"] != 0);
        let theirs = &line["spec_decode_acceptance"];
        assert_eq!(record.is_none(), theirs.is_null(), "{run}: {id}: a record");
        for member in RECORD_MEMBERS {
            let own = record.map_or(&Value::Null, |record| &record[member]);
            assert_eq!(own, &theirs[member], "{run}: {id}: {member}");
        }
        *(if record.is_some() {
            &mut with
        } else {
            &mut without
        }) += 1;
    }
    (with, without)
}

/// `spectap report` prints AIPerf's characters, the title aside.
fn assert_report(replayed: &Replayed, lines_expected: usize) {
    let (run, report) = (replayed.run(), replayed.report());
    let (title, rest) = report.split_once('\n').unwrap();
    assert_eq!(title.trim(), "Spec Decode", "{run}");
    // What follows the blank line is spectap's own: how many exchanges these are.
    let ours: Vec<&str> = rest.lines().take_while(|line| !line.is_empty()).collect();
    let theirs = Artifacts::of(run).section();
    assert_eq!(theirs.len(), lines_expected, "{run}: lines compared");
    assert_eq!(ours, theirs, "{run}");
}

#[test]
fn a_vllm_run_has_aiperfs_figures_records_and_characters() {
    let replayed = Replayed::of("aiperf-vllm");
    assert_figures(&replayed, 14);
    assert_eq!(assert_records(&replayed), (37, 23));
    assert_report(&replayed, 13);
}

#[test]
fn a_tensorrt_llm_run_has_aiperfs_figures_records_and_characters() {
    let replayed = Replayed::of("aiperf-trtllm");
    assert_figures(&replayed, 13);
    assert_eq!(assert_records(&replayed), (37, 23));
    assert_report(&replayed, 12);
}

#[test]
fn the_profiling_phase_of_a_run_with_warm_up_has_aiperfs_figures_records_and_characters() {
    let replayed = Replayed::of("aiperf-vllm-warmup");
    assert_figures(&replayed, 14);
    assert_eq!(assert_records(&replayed), (37, 23));
    assert_report(&replayed, 13);
}

#[test]
fn a_run_with_nothing_but_zero_step_requests_has_one_row_and_no_line_below_the_table() {
    let replayed = Replayed::of("aiperf-zero-only");
    assert_figures(&replayed, 3);
    assert_eq!(assert_records(&replayed), (0, 12));
    assert_report(&replayed, 5);
}

#[test]
fn a_run_without_numbers_has_no_tag_and_a_sentence_for_a_table() {
    let replayed = Replayed::of("aiperf-nostats");
    assert_figures(&replayed, 2);
    assert_eq!(assert_records(&replayed), (0, 12));
    assert!(Artifacts::of(replayed.run()).section().is_empty());
    let report = replayed.report();
    assert!(
        report.starts_with("No acceptance numbers: 12 exchanges, 12 absent"),
        "{report}"
    );
}

#[test]
fn what_aiperf_drops_in_silence_is_counted_by_reason() {
    let summary = Replayed::of("aiperf-vllm").summary();
    let mut n = summary["n"].clone();
    assert_eq!(
        n.as_object_mut().unwrap().remove("exchanges"),
        Some(json!(60))
    );
    assert_eq!(
        n,
        json!({"recorded": 37, "zero_step": 6, "absent": 7, "malformed": 9, "ambiguous": 1, "unobserved": 0})
    );
    assert_eq!(
        summary["reasons"]["malformed"],
        json!({
            "identity_sum": 1, "identity_weighted": 1, "accepted_gt_drafted": 1, "histogram_length": 1,
            "zero_steps_with_drafts": 1, "bad_number": 4
        })
    );
    assert_eq!(summary["reasons"]["ambiguous"], json!({"two_payloads": 1}));
}
