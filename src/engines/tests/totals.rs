//! Engines that tell totals only: no steps but where they are sent, never a histogram, and nothing where both are 0.

use serde_json::{Value, json};

use super::*;
use crate::record::{AcceptanceRecord, Provenance};

const WITH_USAGE_DETAILS: Options = Options {
    usage_details: true,
};

fn with_options(object: &Value, options: Options) -> Verdict {
    let mut payloads = Payloads::new(options);
    payloads.take(object.as_object().unwrap(), None);
    read(&payloads, &Usage::default(), 1)
}

fn only_record(object: &Value) -> AcceptanceRecord {
    let verdict = with_options(object, WITH_USAGE_DETAILS);
    assert_eq!(verdict.acceptance, Acceptance::Recorded, "{object}");
    let [record] = &verdict.records[..] else {
        panic!("one record of {object}, not {:?}", verdict.records)
    };
    record.clone()
}

#[test]
fn totals_give_no_histogram_and_steps_only_where_they_are_sent() {
    let lm_studio = json!({"accepted_draft_tokens_count": 25, "total_draft_tokens_count": 60,
        "rejected_draft_tokens_count": 20, "ignored_draft_tokens_count": 15});
    for (object, engine, steps) in [
        (
            json!({"timings": {"draft_n": 60, "draft_n_accepted": 25, "predicted_n": 26}}),
            EngineName::LlamaCpp,
            None,
        ),
        (
            json!({"timings": {"draft_n": 60, "draft_n_accepted": 25, "draft_rounds": 20}}),
            EngineName::MlxVlm,
            Some(20),
        ),
        (
            json!({"generation_metadata": {"mtp_drafts": 60, "mtp_accepted": 25}}),
            EngineName::VllmMlx,
            None,
        ),
        (
            json!({"meta_info": {"spec_draft_tokens": 60, "spec_accepted_tokens": 25, "spec_verify_ct": 20}}),
            EngineName::TokenSpeed,
            Some(20),
        ),
        (
            json!({"choices": [], "stats": lm_studio}),
            EngineName::LmStudio,
            None,
        ),
        (
            json!({"choices": [], "stats": {}, "usage": lm_studio}),
            EngineName::LmStudio,
            None,
        ),
        (
            json!({"stats": without(lm_studio.clone(), "total_draft_tokens_count")}),
            EngineName::LmStudio,
            None,
        ),
        (
            json!({"usage": {"completion_tokens_details": {"accepted_prediction_tokens": 25, "rejected_prediction_tokens": 35}}}),
            EngineName::UsageDetails,
            None,
        ),
    ] {
        let record = only_record(&object);
        assert_eq!(record.engine, engine, "{object}");
        assert_eq!(record.provenance, Provenance::Counts, "{object}");
        assert_eq!(
            (record.num_accepted_draft_tokens, record.num_draft_tokens),
            (25, 60),
            "{object}"
        );
        assert_eq!(record.num_spec_steps, steps, "{object}");
        assert_eq!(
            record.mean_acceptance_length,
            steps.map(|_| 2.25),
            "{object}"
        );
        assert!(record.acceptance_histogram.is_empty(), "{object}");
        assert_eq!(record.num_spec_tokens, None, "{object}");
    }
}

#[test]
fn accepted_is_never_held_against_the_completion_tokens() {
    let record =
        only_record(&json!({"timings": {"draft_n": 60, "draft_n_accepted": 25, "predicted_n": 5}}));
    assert_eq!(record.completion_tokens, Some(5));
}

#[test]
fn more_accepted_than_really_drafted_is_malformed() {
    for object in [
        json!({"timings": {"draft_n": 3, "draft_n_accepted": 4}}),
        json!({"generation_metadata": {"mtp_drafts": 3, "mtp_accepted": 4}}),
        json!({"stats": {"accepted_draft_tokens_count": 4, "total_draft_tokens_count": 3}}),
    ] {
        let verdict = with_options(&object, Options::default());
        assert_eq!(verdict.reason, Some(Reason::AcceptedGtDrafted), "{object}");
    }
}

#[test]
fn a_negative_count_is_malformed() {
    for object in [
        json!({"meta_info": {"spec_draft_tokens": 7, "spec_accepted_tokens": -1, "spec_verify_ct": 1}}),
        json!({"timings": {"draft_n": 3, "draft_n_accepted": -1}}),
        json!({"generation_metadata": {"mtp_drafts": "3", "mtp_accepted": 4}}),
        json!({"usage": {"completion_tokens_details": {"accepted_prediction_tokens": -3, "rejected_prediction_tokens": 5}}}),
    ] {
        let verdict = with_options(&object, WITH_USAGE_DETAILS);
        assert_eq!(verdict.acceptance, Acceptance::Malformed, "{object}");
        assert_eq!(verdict.reason, Some(Reason::BadNumber), "{object}");
    }
}

#[test]
fn usage_details_count_only_when_asked_for_and_where_no_engine_speaks() {
    let details = json!({"accepted_prediction_tokens": 25, "rejected_prediction_tokens": 35});
    let usage = json!({"usage": {"completion_tokens_details": details}});
    let verdict = with_options(&usage, Options::default());
    assert_eq!(
        (verdict.acceptance, verdict.reason),
        (Acceptance::Absent, None)
    );
    let mut both = at_root(vllm());
    both["usage"] = usage["usage"].clone();
    assert_eq!(only_record(&both).engine, EngineName::Vllm);
    let zeros = json!({"accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0});
    let verdict = with_options(
        &json!({"usage": {"completion_tokens_details": zeros}}),
        WITH_USAGE_DETAILS,
    );
    assert_eq!(verdict.acceptance, Acceptance::Absent);
}

#[test]
fn two_sources_that_both_speak_are_ambiguous() {
    let object = json!({"timings": {"draft_n": 3, "draft_n_accepted": 1},
        "stats": {"accepted_draft_tokens_count": 1, "total_draft_tokens_count": 3}});
    let verdict = with_options(&object, Options::default());
    assert_eq!(verdict.reason, Some(Reason::TwoPayloads));
}

#[test]
fn the_older_choice_shape_has_a_sparse_histogram() {
    let older = |histogram: Value| {
        let payload = with(vllm(), "acceptance_histogram", histogram);
        json!({"choices": [{"index": 1, "speculative_decoding_stats": payload}]})
    };
    let record = only_record(&older(json!({"0": 8, "2": 6, "3": 6})));
    assert_eq!(record.engine, EngineName::Vllm);
    assert_eq!(record.acceptance_histogram, [(0, 8), (2, 6), (3, 6)].into());
    assert_eq!(record.choice_index, Some(1));
    for (histogram, reason) in [
        (json!({"0": 8, "2": 6, "4": 6}), Reason::HistogramLength),
        (json!({"0": 8, "x": 6}), Reason::BadNumber),
        (json!({"0": 8, "+2": 6}), Reason::BadNumber),
        (json!({"0": 8, "2": 6, "02": 6}), Reason::BadNumber),
        (json!({"0": 9, "2": 6, "3": 6}), Reason::IdentitySum),
    ] {
        let verdict = with_options(&older(histogram.clone()), Options::default());
        assert_eq!(verdict.reason, Some(reason), "{histogram}");
    }
}

#[test]
fn any_event_may_carry_vllms_payload() {
    for object in [
        json!({"metrics": {"speculative_decoding": vllm()}}),
        json!({"type": "response.completed", "metrics": {"speculative_decoding": vllm()}}),
        json!({"type": "response.completed", "response": {"metrics": {"speculative_decoding": vllm()}}}),
    ] {
        assert_eq!(only_record(&object).engine, EngineName::Vllm, "{object}");
    }
}
