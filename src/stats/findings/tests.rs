//! Each finding just at its threshold and just below.

use super::*;
use crate::record::AcceptanceHistogram;
use crate::stats::Pooled;

fn codes(group: &Group) -> Vec<String> {
    of(group).into_iter().map(|finding| finding.code).collect()
}

fn exchanges(counts: &[(Acceptance, u64)]) -> Group {
    Group {
        exchanges: counts.iter().copied().collect(),
        ..Group::default()
    }
}

#[test]
fn nothing_is_said_about_nothing() {
    assert_eq!(codes(&Group::default()), [""; 0]);
}

#[test]
fn a_tenth_of_requests_without_a_step_is_a_finding() {
    let group = |zero_step, records| {
        let mut group = Group::default();
        group.aiperf.pooled = Pooled {
            records,
            zero_step,
            ..Pooled::default()
        };
        group
    };
    assert_eq!(codes(&group(3, 27)), ["seldom_fires"]);
    assert_eq!(codes(&group(2, 28)), [""; 0]);
    assert_eq!(codes(&group(29, 0)), [""; 0], "too few requests");
    assert_eq!(
        of(&group(25, 75))[0].text,
        "Speculation never fired on 25.0 % of 100 requests; they are in no mean."
    );
}

#[test]
fn a_record_share_below_nine_tenths_is_a_finding() {
    let group = |recorded, absent| {
        exchanges(&[
            (Acceptance::Recorded, recorded),
            (Acceptance::Absent, absent),
        ])
    };
    assert_eq!(codes(&group(89, 11)), ["low_record_share"]);
    assert_eq!(of(&group(89, 11))[0].n, 11);
    assert_eq!(codes(&group(90, 10)), [""; 0]);
    assert_eq!(codes(&group(10, 19)), [""; 0], "too few exchanges");
    assert_eq!(codes(&group(0, 100)), [""; 0], "the table says why");
}

#[test]
fn payloads_that_contradict_themselves_are_named_by_reason() {
    let mut group = exchanges(&[
        (Acceptance::Recorded, 95),
        (Acceptance::Malformed, 4),
        (Acceptance::Ambiguous, 1),
    ]);
    group.reasons = [
        (
            Acceptance::Malformed,
            [(Reason::IdentitySum, 1), (Reason::BadNumber, 3)].into(),
        ),
        (Acceptance::Ambiguous, [(Reason::TwoPayloads, 1)].into()),
    ]
    .into();
    let findings = of(&group);
    assert_eq!(findings.len(), 1);
    assert_eq!(
        (findings[0].code.as_str(), findings[0].n),
        ("bad_payload", 5)
    );
    assert!(
        findings[0].text.starts_with("5 of 100 responses")
            && findings[0]
                .text
                .contains("(bad_number 3, two_payloads 1, identity_sum 1)"),
        "{}",
        findings[0].text
    );
}

#[test]
fn a_mean_against_its_counts_is_a_finding() {
    let group = Group {
        contradictions: 2,
        ..Group::default()
    };
    assert_eq!(codes(&group), ["mean_or_rate"]);
}

fn with_steps(histogram: AcceptanceHistogram, width: Option<u32>) -> Group {
    let mut group = Group::default();
    if let Some(width) = width {
        group.evidence.widths.steps = [(width, histogram.clone())].into();
    }
    group.aiperf.pooled.histogram = histogram;
    group
}

#[test]
fn a_position_that_less_than_a_twentieth_of_the_steps_accepts_is_a_finding() {
    let histogram: AcceptanceHistogram = [(0, 500), (1, 451), (2, 49)].into();
    let findings = of(&with_steps(histogram.clone(), Some(2)));
    assert_eq!(findings.len(), 1);
    assert!(
        findings[0].text.starts_with(
            "The draft at position 1 (counted from 0) is accepted in only 4.9 % of 1000 steps"
        ),
        "{}",
        findings[0].text
    );
    assert_eq!(
        codes(&with_steps(histogram, None)),
        [""; 0],
        "a lower bound"
    );
    let enough = [(0, 500), (1, 450), (2, 50)].into();
    assert_eq!(codes(&with_steps(enough, Some(2))), [""; 0]);
    let few = [(0, 999)].into();
    assert_eq!(codes(&with_steps(few, Some(2))), [""; 0], "too few steps");
}
