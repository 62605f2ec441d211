//! Hand-computed differences, and when a verdict is withheld.

use std::sync::Arc;

use super::*;
use crate::observation::{Observation, ObservationSink};
use crate::record::AcceptanceRecord;
use crate::stats::Statistics;
use crate::stats::tests::{observation, record};

fn run_of(observations: impl IntoIterator<Item = Observation>) -> RunFigures {
    let statistics = Statistics::new();
    for (number, observation) in observations.into_iter().enumerate() {
        statistics.record(Arc::new(Observation {
            id: format!("{number}"),
            ..observation
        }));
    }
    let groups = statistics.groups(|_| true);
    RunFigures::of(groups.iter().map(|(key, group)| (key, group)))
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

fn run(n: u64, accepted: impl Fn(u64) -> u64) -> RunFigures {
    run_of((0..n).map(|number| observation(vec![request(accepted(number))])))
}

fn with_latency(n: u64, milliseconds: f64, in_flight: u64, drafting: bool) -> RunFigures {
    run_of((0..n).map(|number| {
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
    let other_k = run_of((0..60).map(|number| {
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
    assert!(
        why.starts_with("k is 4 in the base and 8 here, and the rate falls "),
        "{why}"
    );
    assert_eq!(comparison.differences[0].verdict, Verdict::NoEvidence);
}

#[test]
fn the_rate_gets_no_verdict_when_widths_differ_at_an_unknown_k() {
    let narrow = run_of((0..60).map(|number| {
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
            .starts_with("steps carry 4.00 drafts in the base and 2.50 here")
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
    let spread = run(2, |number| number).whole.evidence.positions;
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

fn tagged(tag: Option<&str>, n: u64, accepted: impl Fn(u64) -> u64) -> Vec<Observation> {
    let requests = (0..n).map(|number| Observation {
        tag: tag.map(str::to_owned),
        ..observation(vec![request(accepted(number))])
    });
    requests.collect()
}

#[test]
fn a_category_that_changed_is_found_although_the_whole_hides_it() {
    // One tag gains what the other loses.
    let side = |math: u64, prose: u64| {
        let math = tagged(Some("math"), 60, |number| math + number % 2);
        run_of(
            math.into_iter()
                .chain(tagged(Some("prose"), 60, |number| prose + number % 2)),
        )
    };
    let comparison = compare(&side(1, 2), &side(2, 1), 1, 7);
    assert_eq!(comparison.differences[0].difference, Some(0.0));
    assert_eq!(comparison.differences[0].verdict, Verdict::NoEvidence);
    let [math, prose] = comparison.categories.as_slice() else {
        panic!("two categories: {:?}", comparison.categories);
    };
    assert_eq!(math.tag.as_deref(), Some("math"));
    let length = &math.differences[0];
    assert_eq!((length.base, length.other), (Some(2.5), Some(3.5)));
    assert_eq!((length.n_base, length.n_other), (60, 60));
    assert_eq!(length.verdict, Verdict::Higher);
    assert_eq!(prose.differences[0].verdict, Verdict::Lower);
}

#[test]
fn categories_with_too_few_requests_leave_the_others_their_intervals() {
    let level_beside = |few: u64| {
        let math = tagged(Some("math"), 60, |number| number % 2);
        let side = run_of(
            math.into_iter()
                .chain(tagged(Some("prose"), few, |number| number % 2)),
        );
        let math = &compare(&side, &side, 1, 7).categories[0].differences[0];
        math.interval.unwrap().level
    };
    assert!((level_beside(29) - (1.0 - 0.05 * 0.1 / 2.0)).abs() < 1e-12);
    assert!((level_beside(30) - (1.0 - 0.05 * 0.1 / 4.0)).abs() < 1e-12);
}

#[test]
fn a_category_of_one_side_alone_is_unknown_and_without_tags_there_are_none() {
    let base = run_of(tagged(Some("math"), 60, |number| number % 2));
    let other = run_of(tagged(None, 60, |number| number % 2));
    let comparison = compare(&base, &other, 1, 7);
    let verdicts: Vec<_> = comparison
        .categories
        .iter()
        .map(|it| (it.tag.as_deref(), it.differences[0].verdict))
        .collect();
    assert_eq!(
        verdicts,
        [(None, Verdict::Unknown), (Some("math"), Verdict::Unknown)]
    );
    assert_eq!(compare(&other, &other, 1, 7).categories, []);
}

#[test]
fn a_category_gets_no_verdict_on_its_rate_when_widths_differ() {
    let narrow = tagged(Some("math"), 60, |number| number % 2);
    let wide = narrow.clone().into_iter().map(|mut observation| {
        let record = &mut observation.spec_decode_acceptance[0];
        (record.num_spec_tokens, record.num_draft_tokens) = (Some(8), 80);
        observation
    });
    let comparison = compare(&run_of(narrow.clone()), &run_of(wide), 1, 7);
    let rate = &comparison.categories[0].differences[1];
    assert_eq!(rate.verdict, Verdict::NotComparable);
    assert!(rate.why.as_ref().unwrap().starts_with("k is 4 in the base"));
}

#[test]
fn positions_get_a_verdict_each_and_their_n() {
    let comparison = compare(
        &run(60, |number| number % 3),
        &run(40, |number| 1 + number % 2),
        1,
        7,
    );
    let [first, second] = comparison.positions.as_slice() else {
        panic!("two positions");
    };
    // Two of three accept one draft or more, and all do.
    assert_eq!((first.position, second.position), (0, 1));
    let first = &first.difference;
    assert_eq!((first.base, first.other), (Some(2.0 / 3.0), Some(1.0)));
    assert_eq!((first.n_base, first.n_other), (60, 40));
    assert_eq!(first.verdict, Verdict::Higher);
    // One of three, and half: chance alone can do that.
    let second = &second.difference;
    assert_eq!(second.verdict, Verdict::NoEvidence);
    let level = second.interval.unwrap().level;
    assert!((level - (1.0 - 0.05 * 0.1 / 2.0)).abs() < 1e-12, "{level}");
}

#[test]
fn a_position_that_one_side_never_drafts_is_unknown_there() {
    let deeper = run_of((0..60).map(|number| {
        observation(vec![AcceptanceRecord {
            num_spec_tokens: Some(8),
            num_draft_tokens: 80,
            ..request(4 + number % 3)
        }])
    }));
    let positions = compare(&run(60, |number| 2 + number % 3), &deeper, 1, 7).positions;
    let found: Vec<_> = positions
        .iter()
        .map(|it| (it.difference.base, it.difference.verdict))
        .collect();
    assert_eq!(
        found,
        [
            (Some(1.0), Verdict::NoEvidence),
            (Some(1.0), Verdict::NoEvidence),
            (Some(2.0 / 3.0), Verdict::Higher),
            (Some(1.0 / 3.0), Verdict::Higher),
            (None, Verdict::Unknown),
            (None, Verdict::Unknown),
        ]
    );
}

#[test]
fn positions_get_no_verdict_where_steps_may_not_have_drafted_so_deep() {
    // The same k, but steps that carry less than it on one side.
    let narrow = run_of((0..60).map(|number| {
        observation(vec![AcceptanceRecord {
            num_draft_tokens: 25,
            ..request(number % 3)
        }])
    }));
    let positions = compare(&run(60, |number| number % 4), &narrow, 1, 7).positions;
    assert_eq!(positions.len(), 3);
    for position in &positions {
        assert_eq!(position.difference.verdict, Verdict::NotComparable);
        let why = position.difference.why.as_ref().unwrap();
        assert!(why.starts_with("not every step drafted so deep"), "{why}");
    }
}

#[test]
fn what_differs_by_rounding_alone_is_no_evidence() {
    // All requests alike: no spread at all, and sums of other numbers of them round differently.
    let side = |n: u64| {
        run_of((0..n).map(|_| {
            let mut observation = observation(vec![request(1)]);
            observation.timing.inter_token_latency_ms = Some(0.1);
            observation
        }))
    };
    for n in [31, 47, 60] {
        let comparison = compare(&side(49), &side(n), 1, 7);
        assert_eq!(
            comparison.differences[2].verdict,
            Verdict::NoEvidence,
            "{n}"
        );
    }
}

#[test]
fn more_comparisons_at_once_make_every_interval_wider() {
    let (base, other) = (run(60, |number| number % 3), run(60, |number| number % 4));
    let width = |comparisons| {
        let interval = compare(&base, &other, comparisons, 3).differences[0].interval;
        let interval = interval.unwrap();
        interval.high - interval.low
    };
    assert!(width(4) > 1.1 * width(1));
}
