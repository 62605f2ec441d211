//! What the adapters promise: one engine claims a payload, identities hold, and nothing vanishes without a reason.

mod running;
mod sglang;
mod signatures;
mod totals;

use serde_json::{Value, json};

use super::*;
use crate::record::Provenance;

fn vllm() -> Value {
    json!({"mean_acceptance_length": 2.5, "draft_acceptance_rate": 0.5, "acceptance_histogram": [8, 0, 6, 6],
        "num_spec_steps": 20, "num_accepted_draft_tokens": 30, "num_draft_tokens": 60, "num_spec_tokens": 3})
}

fn tensorrt_llm() -> Value {
    json!({"acceptance_rate": 0.5, "total_accepted_draft_tokens": 30, "total_draft_tokens": 60,
        "num_spec_steps": 20, "acceptance_histogram": [8, 0, 6, 6], "num_spec_tokens": 3})
}

fn at_root(payload: Value) -> Value {
    json!({"choices": [], "metrics": {"speculative_decoding": payload}})
}

fn in_choice(index: u32, payload: Value) -> Value {
    json!({"choices": [{"index": index, "speculative_decoding": payload}]})
}

fn verdict(objects: &[Value], n: u32) -> Verdict {
    let mut payloads = Payloads::default();
    for object in objects {
        payloads.take(object.as_object().unwrap(), None);
    }
    let usage = Usage {
        completion_tokens: Some(51),
        ..Usage::default()
    };
    read(&payloads, &usage, n)
}

fn with(mut payload: Value, name: &str, value: Value) -> Value {
    payload[name] = value;
    payload
}

fn without(mut payload: Value, name: &str) -> Value {
    payload.as_object_mut().unwrap().remove(name);
    payload
}

fn reason_of(payload: Value) -> (Acceptance, Option<Reason>) {
    let verdict = verdict(&[at_root(payload)], 1);
    (verdict.acceptance, verdict.reason)
}

#[test]
fn both_engines_are_read_in_both_places() {
    for (payload, engine) in [
        (vllm(), EngineName::Vllm),
        (tensorrt_llm(), EngineName::TensorrtLlm),
    ] {
        for (object, index) in [
            (at_root(payload.clone()), None),
            (in_choice(0, payload.clone()), Some(0)),
        ] {
            let verdict = verdict(&[object], 1);
            assert_eq!(verdict.acceptance, Acceptance::Recorded);
            assert_eq!(verdict.reason, None);
            assert_eq!(verdict.engine, Some(engine));
            assert!(!verdict.contradiction);
            let [record] = &verdict.records[..] else {
                panic!("one record, not {:?}", verdict.records)
            };
            assert_eq!(record.choice_index, index);
            assert_eq!(record.mean_acceptance_length, Some(2.5));
            assert_eq!(record.draft_acceptance_rate, Some(0.5));
            assert_eq!(record.acceptance_histogram, [(0, 8), (2, 6), (3, 6)].into());
            assert_eq!(record.num_spec_tokens, Some(3));
            assert_eq!(record.completion_tokens, Some(51));
            assert_eq!(record.provenance, Provenance::Histogram);
        }
    }
}

#[test]
fn a_payload_with_both_signatures_is_ambiguous() {
    let mut both = vllm();
    for (name, value) in tensorrt_llm().as_object().unwrap() {
        both[name] = value.clone();
    }
    assert_eq!(
        reason_of(both),
        (Acceptance::Ambiguous, Some(Reason::AmbiguousSignature))
    );
}

#[test]
fn a_payload_that_nobody_claims_is_malformed() {
    assert_eq!(
        reason_of(json!({"drafts": 3})),
        (Acceptance::Malformed, Some(Reason::BadNumber))
    );
}

#[test]
fn null_list_and_empty_object_are_nothing() {
    for nothing in [json!(null), json!([]), json!({}), json!("x"), json!(7)] {
        assert_eq!(
            reason_of(nothing.clone()),
            (Acceptance::Absent, None),
            "{nothing}"
        );
        let verdict = verdict(&[in_choice(0, nothing)], 1);
        assert_eq!(verdict.acceptance, Acceptance::Absent);
    }
}

#[test]
fn an_empty_object_at_the_root_hides_the_choice() {
    let mut object = in_choice(0, tensorrt_llm());
    object["metrics"] = json!({"speculative_decoding": {}});
    assert_eq!(verdict(&[object], 1).acceptance, Acceptance::Absent);
}

#[test]
fn each_broken_payload_has_its_reason() {
    use Reason::*;
    let bad = |name: &str, value: Value| with(vllm(), name, value);
    for (payload, reason) in [
        (bad("num_spec_steps", json!("20")), BadNumber),
        (bad("num_spec_steps", json!(true)), BadNumber),
        (bad("num_spec_steps", json!(null)), BadNumber),
        (bad("num_spec_steps", json!(-20)), BadNumber),
        (bad("num_draft_tokens", json!(60.5)), BadNumber),
        (bad("num_draft_tokens", json!((1u64 << 53) + 1)), BadNumber),
        (bad("num_draft_tokens", json!(1e300)), BadNumber),
        (bad("draft_acceptance_rate", json!("0.5")), BadNumber),
        (bad("draft_acceptance_rate", json!(null)), BadNumber),
        (bad("num_spec_tokens", json!("3")), BadNumber),
        (bad("per_step_accepted", json!(3)), BadNumber),
        (bad("per_step_accepted", json!([1, "2"])), BadNumber),
        (
            bad("acceptance_histogram", json!([8.0, 0.0, 6.0, 6.0])),
            BadNumber,
        ),
        (bad("acceptance_histogram", json!({"0": 20})), BadNumber),
        (
            bad("acceptance_histogram", json!([8, 0, 6, 6, 0])),
            HistogramLength,
        ),
        (
            bad("acceptance_histogram", json!([9, 0, 6, 6])),
            IdentitySum,
        ),
        (
            bad("acceptance_histogram", json!([8, 1, 5, 6])),
            IdentityWeighted,
        ),
        (bad("num_draft_tokens", json!(29)), AcceptedGtDrafted),
        (bad("per_step_accepted", json!([30])), IdentityPerStep),
        (without(vllm(), "mean_acceptance_length"), BadNumber),
        (without(vllm(), "acceptance_histogram"), BadNumber),
        (without(vllm(), "num_draft_tokens"), BadNumber),
        (without(tensorrt_llm(), "acceptance_rate"), BadNumber),
        (with(tensorrt_llm(), "num_spec_steps", json!(0)), BadNumber),
        (with(tensorrt_llm(), "num_spec_steps", json!(-1)), BadNumber),
    ] {
        assert_eq!(
            reason_of(payload.clone()),
            (Acceptance::Malformed, Some(reason)),
            "{payload}"
        );
    }
}

#[test]
fn whole_floats_are_counts() {
    let payload = with(vllm(), "num_spec_steps", json!(20.0));
    assert_eq!(reason_of(payload), (Acceptance::Recorded, None));
}

#[test]
fn no_steps_is_zero_step_for_vllm() {
    let zero = json!({"mean_acceptance_length": 1.0, "draft_acceptance_rate": 0.0, "acceptance_histogram": [0, 0],
        "num_spec_steps": 0, "num_accepted_draft_tokens": 0, "num_draft_tokens": 0, "num_spec_tokens": 1});
    let verdict = verdict(&[at_root(zero.clone())], 1);
    assert_eq!(verdict.acceptance, Acceptance::ZeroStep);
    assert_eq!(verdict.records.len(), 1);
    assert_eq!(
        reason_of(with(zero, "num_draft_tokens", json!(4))),
        (Acceptance::Malformed, Some(Reason::ZeroStepsWithDrafts))
    );
}

#[test]
fn two_payloads_for_one_sequence_are_ambiguous() {
    for objects in [
        [at_root(vllm()), at_root(vllm())],
        [in_choice(0, tensorrt_llm()), in_choice(0, tensorrt_llm())],
        [in_choice(0, tensorrt_llm()), at_root(vllm())],
        [at_root(vllm()), in_choice(1, tensorrt_llm())],
        [at_root(json!({"x": 1})), at_root(vllm())],
    ] {
        let verdict = verdict(&objects, 1);
        assert_eq!(verdict.acceptance, Acceptance::Ambiguous, "{objects:?}");
        assert_eq!(verdict.reason, Some(Reason::TwoPayloads));
        assert!(verdict.records.is_empty());
    }
}

#[test]
fn choices_give_one_record_each_without_completion_tokens() {
    let verdict = verdict(
        &[in_choice(1, tensorrt_llm()), in_choice(0, tensorrt_llm())],
        2,
    );
    assert_eq!(verdict.acceptance, Acceptance::Recorded);
    let indices: Vec<_> = verdict.records.iter().map(|r| r.choice_index).collect();
    assert_eq!(indices, [Some(0), Some(1)]);
    assert!(
        verdict
            .records
            .iter()
            .all(|r| r.completion_tokens.is_none())
    );
}

#[test]
fn a_broken_choice_beside_a_valid_one_is_named() {
    let broken = with(tensorrt_llm(), "acceptance_histogram", json!([8, 0, 6, 7]));
    let verdict = verdict(&[in_choice(0, broken), in_choice(1, tensorrt_llm())], 2);
    assert_eq!(verdict.acceptance, Acceptance::Recorded);
    assert_eq!(verdict.records.len(), 1);
    assert_eq!(verdict.reason, Some(Reason::IdentitySum));
}

#[test]
fn a_mean_against_its_counts_is_kept_and_flagged() {
    let verdict = verdict(
        &[at_root(with(vllm(), "mean_acceptance_length", json!(9.0)))],
        1,
    );
    assert_eq!(verdict.acceptance, Acceptance::Recorded);
    assert!(verdict.contradiction);
    let record = &verdict.records[0];
    assert_eq!(record.mean_acceptance_length, Some(9.0));
    assert_eq!(record.recomputed.unwrap().mean_acceptance_length, Some(2.5));
}

#[test]
fn per_step_arrays_make_the_record_per_step_for_vllm_only() {
    let steps = json!([0, 2, 3]);
    let detailed = json!({"mean_acceptance_length": 2.67, "draft_acceptance_rate": 0.56, "acceptance_histogram": [1, 0, 1, 1],
        "num_spec_steps": 3, "num_accepted_draft_tokens": 5, "num_draft_tokens": 9, "num_spec_tokens": 3,
        "per_step_accepted": steps, "per_step_drafted": [3, 3, 3]});
    let verdict_vllm = verdict(&[at_root(detailed)], 1);
    assert_eq!(verdict_vllm.records[0].provenance, Provenance::PerStep);
    let trt = with(tensorrt_llm(), "per_step_accepted", steps);
    let verdict_trt = verdict(&[in_choice(0, trt)], 1);
    assert_eq!(verdict_trt.records[0].per_step_accepted, None);
    assert_eq!(verdict_trt.records[0].provenance, Provenance::Histogram);
}

#[test]
fn endless_choices_stay_bounded() {
    let mut payloads = Payloads::default();
    for index in 0..3000 {
        payloads.take(in_choice(index, tensorrt_llm()).as_object().unwrap(), None);
    }
    assert_eq!(payloads.len(), 1024);
    let verdict = read(&payloads, &Usage::default(), 3000);
    assert_eq!(verdict.reason, Some(Reason::TwoPayloads));
}
