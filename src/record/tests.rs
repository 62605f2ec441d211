use super::*;

fn honest() -> AcceptanceRecord {
    AcceptanceRecord {
        engine: EngineName::Vllm,
        provenance: Provenance::Histogram,
        choice_index: None,
        mean_acceptance_length: Some(2.25),
        draft_acceptance_rate: Some(25.0 / 60.0),
        acceptance_histogram: [(0, 8), (1, 4), (2, 3), (3, 5)].into(),
        num_accepted_draft_tokens: 25,
        num_draft_tokens: 60,
        num_spec_steps: Some(20),
        num_spec_tokens: Some(3),
        completion_tokens: Some(46),
        per_step_accepted: None,
        per_step_drafted: None,
        recomputed: None,
        nominal_drafts: false,
        zero_filled: false,
    }
}

#[test]
fn an_honest_record_passes_every_identity() {
    assert_eq!(honest().check(), Ok(()));
    assert!(!honest().note_contradiction());
    assert_eq!(honest().derived_length(), Some(2.25));
    assert_eq!(honest().accepted_per_verified(), Some(45.0 / 80.0));
}

#[test]
fn each_broken_identity_is_named() {
    let broken = |change: fn(&mut AcceptanceRecord)| {
        let mut record = honest();
        change(&mut record);
        record.check().unwrap_err()
    };
    assert_eq!(
        broken(|r| r.num_spec_steps = Some(19)),
        Violation::IdentitySum
    );
    assert_eq!(
        broken(|r| r.num_accepted_draft_tokens = 24),
        Violation::IdentityWeighted
    );
    assert_eq!(
        broken(|r| r.num_draft_tokens = 24),
        Violation::AcceptedGtDrafted
    );
    assert_eq!(
        broken(|r| {
            r.acceptance_histogram.clear();
            r.num_spec_steps = Some(0);
            r.num_accepted_draft_tokens = 0;
        }),
        Violation::ZeroStepsWithDrafts
    );
    assert_eq!(
        broken(|r| r.per_step_accepted = Some(vec![25])),
        Violation::IdentityPerStep
    );
    assert_eq!(
        broken(|r| r.per_step_drafted = Some(vec![2; 20])),
        Violation::IdentityPerStep
    );
    assert_eq!(
        broken(|r| {
            let mut accepted = vec![0; 20];
            accepted[0] = 4;
            accepted[1..8].fill(3);
            r.per_step_accepted = Some(accepted);
            r.per_step_drafted = Some(vec![3; 20]);
        }),
        Violation::IdentityPerStep
    );
}

#[test]
fn a_rate_that_contradicts_its_counts_is_kept_and_marked() {
    let mut record = honest();
    record.draft_acceptance_rate = Some(0.25);
    assert!(record.note_contradiction());
    assert_eq!(record.draft_acceptance_rate, Some(0.25));
    assert_eq!(
        record.recomputed.unwrap().draft_acceptance_rate,
        Some(25.0 / 60.0)
    );
}

#[test]
fn steps_without_drafts_have_a_length_but_no_rate() {
    let mut record = honest();
    record.acceptance_histogram = [(0, 6)].into();
    (
        record.num_accepted_draft_tokens,
        record.num_draft_tokens,
        record.num_spec_steps,
    ) = (0, 0, Some(6));
    assert_eq!(record.check(), Ok(()));
    assert_eq!(
        (record.derived_length(), record.derived_rate()),
        (Some(1.0), None)
    );
}

#[test]
fn a_contradiction_begins_at_one_in_a_million() {
    for (factor, expected) in [(1.0 + 1e-7, false), (1.0 + 1e-5, true), (1.0 - 1e-5, true)] {
        for mean in [true, false] {
            let mut record = honest();
            let sent = if mean {
                &mut record.mean_acceptance_length
            } else {
                &mut record.draft_acceptance_rate
            };
            *sent = sent.map(|value| value * factor);
            assert_eq!(record.note_contradiction(), expected, "{factor} {mean}");
        }
    }
}
