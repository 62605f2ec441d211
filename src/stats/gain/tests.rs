//! Hand-computed gains.

use super::*;
use crate::record::{EngineName, Provenance};

fn record(steps: u64, accepted: u64, drafted: u64, completion: Option<u64>) -> AcceptanceRecord {
    AcceptanceRecord {
        provenance: Provenance::Histogram,
        num_spec_steps: Some(steps),
        completion_tokens: completion,
        ..AcceptanceRecord::of_counts(EngineName::Vllm, accepted, drafted)
    }
}

fn gain(records: &[AcceptanceRecord]) -> Gain {
    let (mut pooled, mut output) = (Pooled::default(), Output::default());
    for record in records {
        pooled.add(record);
        output.add(record);
    }
    of(&pooled, &output)
}

#[test]
fn the_figures_of_one_reply_are_those_worked_out_by_hand() {
    // 41 tokens: one from the prompt's pass, 20 from drafts, so 20 passes gave one of their own; 10 of them drafted.
    let gain = gain(&[record(10, 20, 40, Some(41))]);
    assert_eq!(gain.draft_token_share, Some(20.0 / 41.0));
    assert_eq!(gain.wasted_per_accepted, Some(1.0));
    assert_eq!(gain.passes_that_drafted, Some(0.5));
    assert_eq!(gain.tokens_per_pass, Some(2.0));
    assert_eq!(gain.drafts_per_step, Some(4.0));
}

#[test]
fn a_long_length_can_be_few_tokens_per_pass() {
    // Length 4.59, but only about half of the passes drafted.
    let gain = gain(&[record(100, 359, 500, Some(544))]);
    let tokens_per_pass = gain.tokens_per_pass.unwrap();
    assert!((tokens_per_pass - 543.0 / 184.0).abs() < 1e-12);
    assert!((gain.passes_that_drafted.unwrap() - 100.0 / 184.0).abs() < 1e-12);
}

#[test]
fn passes_are_unknown_where_they_would_be_fewer_than_the_steps() {
    // Accepted drafts cut off at the end are in the counts: 30 − 1 − 20 = 9 passes for 10 steps can't be.
    let gain = gain(&[record(10, 20, 40, Some(30))]);
    assert_eq!(gain.passes_that_drafted, None);
    assert_eq!(gain.tokens_per_pass, None);
    assert_eq!(gain.draft_token_share, Some(20.0 / 30.0));
}

#[test]
fn what_no_record_tells_is_absent() {
    assert_eq!(gain(&[]), Gain::default());
    let without_tokens = gain(&[record(10, 0, 40, None)]);
    assert_eq!(without_tokens.draft_token_share, None);
    assert_eq!(without_tokens.wasted_per_accepted, None);
    assert_eq!(without_tokens.drafts_per_step, Some(4.0));
    let totals = gain(&[AcceptanceRecord::of_counts(EngineName::LlamaCpp, 25, 60)]);
    assert_eq!(totals.wasted_per_accepted, Some(35.0 / 25.0));
    assert_eq!(totals.drafts_per_step, None);
}
