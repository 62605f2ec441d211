//! SGLang's shapes: nominal drafts, several sequences, older names, zeros in the place of counters, ordered steps.

use serde_json::{Value, json};

use super::*;
use crate::record::Provenance;

fn details() -> Value {
    json!({"spec_accept_rate": 25.0 / 60.0, "spec_accept_length": 2.3, "spec_num_correct_drafts": 25,
        "spec_num_proposed_drafts": 60, "spec_verify_ct": 20, "spec_correct_drafts_histogram": [8, 4, 3, 5]})
}

fn extension(details: Value) -> Value {
    json!({"choices": [], "usage": null, "sglext": {"spec_tokens_details": details, "routed_experts": null}})
}

fn native(index: Option<u32>, meta_info: Value) -> Value {
    let mut object = json!({"text": "a", "meta_info": meta_info});
    if let Some(index) = index {
        object["index"] = json!(index);
    }
    object
}

#[test]
fn the_mean_is_derived_and_the_accept_length_never_used() {
    let verdict = verdict(&[extension(details())], 1);
    assert_eq!(verdict.acceptance, Acceptance::Recorded);
    assert!(!verdict.contradiction);
    let record = &verdict.records[0];
    assert_eq!(record.mean_acceptance_length, Some(2.25));
    assert_eq!(record.draft_acceptance_rate, Some(25.0 / 60.0));
    assert_eq!(record.num_spec_tokens, Some(3));
    assert_eq!(record.completion_tokens, Some(51));
    assert!(record.nominal_drafts && !record.zero_filled);
    let sent = serde_json::to_value(record).unwrap();
    assert_eq!(sent["nominal_drafts"], true);
    assert_eq!(sent.get("zero_filled"), None);
}

#[test]
fn more_accepted_than_nominally_drafted_is_kept_and_counted() {
    let adaptive = with(
        with(details(), "spec_num_proposed_drafts", json!(20)),
        "spec_accept_rate",
        json!(1.25),
    );
    let verdict = verdict(&[extension(adaptive)], 1);
    assert_eq!(verdict.acceptance, Acceptance::Recorded);
    assert!(verdict.contradiction);
    let record = &verdict.records[0];
    assert_eq!(
        (record.num_accepted_draft_tokens, record.num_draft_tokens),
        (25, 20)
    );
    assert_eq!(record.draft_acceptance_rate, Some(1.25));
    assert_eq!(record.recomputed, None);
}

#[test]
fn a_width_that_does_not_divide_is_unknown() {
    let verdict = verdict(
        &[extension(with(
            details(),
            "spec_num_proposed_drafts",
            json!(59),
        ))],
        1,
    );
    assert_eq!(verdict.records[0].num_spec_tokens, None);
}

#[test]
fn several_sequences_are_a_list_without_indices() {
    let list = json!([details(), {}, details()]);
    let verdict = verdict(&[extension(list)], 3);
    let indices: Vec<_> = verdict.records.iter().map(|r| r.choice_index).collect();
    assert_eq!(indices, [None, None]);
    assert_eq!(verdict.reason, None);
    assert!(
        verdict
            .records
            .iter()
            .all(|r| r.completion_tokens.is_none())
    );
}

#[test]
fn a_second_extension_with_numbers_is_one_too_many() {
    let verdict = verdict(&[extension(details()), extension(details())], 1);
    assert_eq!(verdict.reason, Some(Reason::TwoPayloads));
}

#[test]
fn no_step_is_zero_step_only_if_the_histogram_agrees() {
    let zero = json!({"spec_accept_rate": 0.0, "spec_num_correct_drafts": 0, "spec_num_proposed_drafts": 0,
        "spec_verify_ct": 0, "spec_correct_drafts_histogram": []});
    let verdict_zero = verdict(&[extension(zero.clone())], 1);
    assert_eq!(verdict_zero.acceptance, Acceptance::ZeroStep);
    let filled = with(zero, "spec_correct_drafts_histogram", json!([9]));
    let verdict_filled = verdict(&[extension(filled)], 1);
    assert_eq!(verdict_filled.acceptance, Acceptance::Recorded);
    assert!(verdict_filled.contradiction);
    let record = &verdict_filled.records[0];
    assert!(record.zero_filled);
    assert_eq!(record.num_spec_steps, Some(9));
    // The zero rate is filled in as well: nobody knows it.
    assert_eq!(record.draft_acceptance_rate, None);
    assert_eq!(serde_json::to_value(record).unwrap()["zero_filled"], true);
    // Its own route leaves the counters out, so that nothing contradicts.
    let alone = json!({"spec_correct_drafts_histogram": [9]});
    let verdict_native = verdict(&[native(None, alone)], 1);
    assert_eq!(verdict_native.records[0].num_spec_steps, Some(9));
    assert!(!verdict_native.contradiction && !verdict_native.records[0].zero_filled);
}

#[test]
fn each_broken_payload_has_its_reason() {
    for (payload, reason) in [
        (
            with(details(), "spec_num_correct_drafts", json!(-1)),
            Reason::BadNumber,
        ),
        (
            with(details(), "spec_accept_rate", json!("0.4")),
            Reason::BadNumber,
        ),
        (without(details(), "spec_verify_ct"), Reason::BadNumber),
        (
            with(details(), "spec_verify_ct", json!(19)),
            Reason::IdentitySum,
        ),
        (
            with(details(), "spec_num_correct_drafts", json!(26)),
            Reason::IdentityWeighted,
        ),
        (json!({"spec_new_counter": 3}), Reason::BadNumber),
    ] {
        let verdict = verdict(&[extension(payload.clone())], 1);
        assert_eq!(verdict.acceptance, Acceptance::Malformed, "{payload}");
        assert_eq!(verdict.reason, Some(reason), "{payload}");
        assert_eq!(verdict.engine, Some(EngineName::Sglang), "{payload}");
    }
}

#[test]
fn without_a_histogram_there_are_counts_only() {
    let verdict = verdict(
        &[extension(with(
            details(),
            "spec_correct_drafts_histogram",
            json!([]),
        ))],
        1,
    );
    assert_eq!(verdict.records[0].provenance, Provenance::Counts);
    assert_eq!(verdict.records[0].num_spec_steps, Some(20));
}

#[test]
fn older_names_mean_the_same() {
    for (accepted, drafted, histogram) in [
        (
            "spec_accept_token_num",
            "spec_draft_token_num",
            "spec_accept_histogram",
        ),
        (
            "spec_accepted_drafts",
            "spec_proposed_drafts",
            "spec_correct_drafts_histogram",
        ),
        (
            "spec_accepted_tokens",
            "spec_proposed_drafts",
            "spec_accept_histogram",
        ),
    ] {
        let meta_info = json!({"completion_tokens": 46, accepted: 25, drafted: 60, "spec_verify_ct": 20,
            histogram: [8, 4, 3, 5]});
        let verdict = verdict(&[native(None, meta_info)], 1);
        assert_eq!(verdict.acceptance, Acceptance::Recorded, "{accepted}");
        let record = &verdict.records[0];
        assert_eq!(record.engine, EngineName::Sglang, "{accepted}");
        assert_eq!(record.num_accepted_draft_tokens, 25, "{accepted}");
        assert_eq!(record.num_draft_tokens, 60, "{accepted}");
        assert_eq!(record.completion_tokens, Some(46), "{accepted}");
    }
}

#[test]
fn sequences_of_the_native_route_are_told_apart_and_the_last_of_each_holds() {
    let running = |index, accepted: u64| {
        let meta_info = json!({"spec_num_correct_drafts": accepted, "spec_num_proposed_drafts": 30,
            "spec_verify_ct": 10, "completion_tokens": 11});
        native(Some(index), meta_info)
    };
    let stream = [
        running(1, 2),
        running(0, 3),
        running(1, 4),
        native(Some(0), json!({})),
    ];
    let verdict_stream = verdict(&stream, 2);
    let seen: Vec<_> = verdict_stream
        .records
        .iter()
        .map(|r| {
            (
                r.choice_index,
                r.num_accepted_draft_tokens,
                r.completion_tokens,
            )
        })
        .collect();
    assert_eq!(seen, [(Some(0), 3, Some(11)), (Some(1), 4, Some(11))]);
    let mut payloads = Payloads::default();
    let body = native(
        None,
        json!({"spec_num_correct_drafts": 1, "spec_num_proposed_drafts": 3, "spec_verify_ct": 1}),
    );
    for position in 0..2 {
        payloads.take(body.as_object().unwrap(), Some(position));
    }
    assert_eq!(read(&payloads, &Usage::default(), 2).records.len(), 2);
}

#[test]
fn meta_info_that_two_engines_claim_is_ambiguous() {
    let both = json!({"spec_verify_ct": 1, "spec_accepted_tokens": 1, "spec_draft_tokens": 3, "spec_num_proposed_drafts": 3});
    let verdict = verdict(&[native(None, both)], 1);
    assert_eq!(verdict.acceptance, Acceptance::Ambiguous);
    assert_eq!(verdict.reason, Some(Reason::AmbiguousSignature));
}

#[test]
fn ordered_steps_are_read_in_both_places_and_outrank_the_totals() {
    let ordered =
        json!({"mode": "detailed", "verify_lengths": [4, 4, 2], "accept_lengths": [4, 3, 1]});
    let mut both = extension(details());
    both["sglext"]["speculative_decoding_stats"] = ordered.clone();
    let alone = json!({"sglext": {"speculative_decoding_stats": ordered}});
    let meta_info = native(
        None,
        json!({"spec_verify_ct": 3, "speculative_decoding_stats": ordered}),
    );
    for object in [both, alone, meta_info] {
        let verdict = verdict(std::slice::from_ref(&object), 1);
        assert_eq!(verdict.acceptance, Acceptance::Recorded, "{object}");
        let record = &verdict.records[0];
        assert_eq!(record.provenance, Provenance::PerStep, "{object}");
        assert_eq!(record.per_step_accepted, Some(vec![3, 2, 0]), "{object}");
        assert_eq!(record.per_step_drafted, Some(vec![3, 3, 1]), "{object}");
        assert!(!record.nominal_drafts, "{object}");
    }
}

#[test]
fn ordered_steps_that_cannot_be_read_leave_the_totals() {
    let extended = |stats: Value| {
        let mut object = extension(details());
        object["sglext"]["speculative_decoding_stats"] = stats;
        verdict(&[object], 1).records.len()
    };
    assert_eq!(extended(json!({"mode": "summary", "x": 3})), 1);
    assert_eq!(extended(json!("none")), 1);
    let alone = |stats: Value| {
        let object = json!({"sglext": {"speculative_decoding_stats": stats}});
        verdict(&[object], 1).reason
    };
    for (stats, reason) in [
        (json!({"mode": "summary"}), Reason::BadNumber),
        (
            json!({"verify_lengths": [0], "accept_lengths": [1]}),
            Reason::BadNumber,
        ),
        (
            json!({"verify_lengths": [4, 4], "accept_lengths": [1]}),
            Reason::IdentityPerStep,
        ),
        (
            json!({"verify_lengths": [2], "accept_lengths": [4]}),
            Reason::AcceptedGtDrafted,
        ),
    ] {
        assert_eq!(alone(stats.clone()), Some(reason), "{stats}");
    }
}
