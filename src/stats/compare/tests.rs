//! Hand-computed differences, and when a verdict is withheld.

use super::*;
use crate::observation::{Observation, ObservationSink};
use crate::record::AcceptanceRecord;
use crate::stats::Statistics;
use crate::stats::tests::{observation, record};

fn group(observations: impl IntoIterator<Item = Observation>) -> Group {
    let statistics = Statistics::new();
    for (number, observation) in observations.into_iter().enumerate() {
        statistics.record(std::sync::Arc::new(Observation {
            id: format!("{number}"),
            ..observation
        }));
    }
    let mut whole = Group::default();
    for (_, group) in statistics.groups(|_| true) {
        whole.merge(&group);
    }
    whole
}

/// A request of ten steps of k = 4.
fn request(accepted: u64) -> AcceptanceRecord {
    AcceptanceRecord {
        mean_acceptance_length: None,
        draft_acceptance_rate: None,
        acceptance_histogram: [(accepted as u32, 10)].into(),
        num_accepted_draft_tokens: 10 * accepted,
        num_draft_tokens: 40,
        num_spec_steps: Some(10),
        ..record()
    }
}

fn run(n: u64, accepted: impl Fn(u64) -> u64) -> Group {
    group((0..n).map(|number| observation(vec![request(accepted(number))])))
}

fn with_latency(n: u64, milliseconds: f64, in_flight: u64, drafting: bool) -> Group {
    group((0..n).map(|number| {
        let records = if drafting {
            vec![request(number % 3)]
        } else {
            vec![]
        };
        let mut observation = observation(records);
        if !drafting {
            observation.acceptance = Some(crate::observation::Acceptance::Absent);
            observation.n = 1;
        }
        observation.timing.inter_token_latency_ms = Some(milliseconds + (number % 5) as f64);
        observation.in_flight = in_flight;
        observation
    }))
}

#[test]
fn a_clear_difference_is_found_and_has_its_size() {
    let comparison = compare(
        &run(60, |number| number % 3),
        &run(60, |number| 1 + number % 3),
        1,
        7,
    );
    let [length, rate, latency] = comparison.differences.as_slice() else {
        panic!("three figures");
    };
    assert_eq!((length.base, length.other), (Some(2.0), Some(3.0)));
    assert_eq!((length.difference, length.relative), (Some(1.0), Some(0.5)));
    assert_eq!(length.verdict, Verdict::Higher);
    let interval = length.interval.unwrap();
    assert!(interval.low < 1.0 && 1.0 < interval.high && interval.low > 0.0);
    assert_eq!((rate.base, rate.other), (Some(25.0), Some(50.0)));
    assert_eq!(rate.verdict, Verdict::Higher);
    assert_eq!(latency.verdict, Verdict::Unknown);
    assert_eq!(comparison.speed_up, None);
}

#[test]
fn fewer_than_30_requests_get_no_verdict() {
    let comparison = compare(
        &run(29, |number| number % 3),
        &run(60, |number| 1 + number % 3),
        1,
        7,
    );
    assert_eq!(comparison.differences[0].verdict, Verdict::TooFew);
    assert!(comparison.differences[0].interval.is_some());
}

#[test]
fn the_rate_gets_no_verdict_when_k_differs_and_the_reason_is_said() {
    let other_k = group((0..60).map(|number| {
        observation(vec![AcceptanceRecord {
            num_spec_tokens: Some(8),
            num_draft_tokens: 80,
            ..request(number % 3)
        }])
    }));
    let comparison = compare(&run(60, |number| number % 3), &other_k, 1, 7);
    let rate = &comparison.differences[1];
    assert_eq!(rate.verdict, Verdict::NotComparable);
    let why = rate.why.as_ref().unwrap();
    assert!(why.starts_with("k is 4 here and 8 there"), "{why}");
    assert_eq!(comparison.differences[0].verdict, Verdict::NoEvidence);
}

#[test]
fn the_rate_gets_no_verdict_when_widths_differ_at_an_unknown_k() {
    let narrow = group((0..60).map(|number| {
        observation(vec![AcceptanceRecord {
            num_spec_tokens: None,
            num_draft_tokens: 25,
            ..request(number % 3)
        }])
    }));
    let rate = &compare(&run(60, |number| number % 3), &narrow, 1, 7).differences[1];
    assert_eq!(rate.verdict, Verdict::NotComparable);
    assert!(
        rate.why
            .as_ref()
            .unwrap()
            .starts_with("steps carry 4.00 drafts here and 2.50 there")
    );
}

#[test]
fn a_base_without_speculation_gives_the_speed_up() {
    let base = with_latency(60, 18.0, 4, false);
    let other = with_latency(60, 8.0, 5, true);
    let comparison = compare(&base, &other, 1, 7);
    assert_eq!(comparison.differences[0].verdict, Verdict::Unknown);
    let latency = &comparison.differences[2];
    assert_eq!((latency.base, latency.other), (Some(20.0), Some(10.0)));
    assert_eq!(latency.verdict, Verdict::Lower);
    let speed_up = comparison.speed_up.unwrap();
    assert_eq!(speed_up.value, 2.0);
    assert!(speed_up.interval.unwrap().excludes(1.0));
}

#[test]
fn latencies_at_different_concurrency_are_not_compared() {
    let comparison = compare(
        &with_latency(60, 18.0, 1, true),
        &with_latency(60, 8.0, 64, true),
        1,
        7,
    );
    let latency = &comparison.differences[2];
    assert_eq!(latency.verdict, Verdict::NotComparable);
    assert_eq!(latency.difference, None);
}

#[test]
fn positions_have_the_variance_of_a_ratio_over_requests() {
    // Two requests of ten steps; all steps of one and none of the other accept position 0: p = 1/2,
    // Σ(x − p·s)² = 25 + 25, over 20², times 2 / 1.
    let spread = run(2, |number| number).evidence.positions;
    let share = spread.share(0).unwrap();
    assert_eq!(share.share, 0.5);
    assert!((share.variance - 50.0 / 400.0 * 2.0).abs() < 1e-15);
    // Positions nobody accepted are there with 0.
    assert_eq!(spread.share(7).unwrap().share, 0.0);
}

#[test]
fn the_same_seed_gives_the_same_comparison() {
    let (base, other) = (run(60, |number| number % 3), run(60, |number| number % 4));
    assert_eq!(compare(&base, &other, 1, 3), compare(&base, &other, 1, 3));
}
