//! Which requests find each other, and hand-computed differences of pairs.

use std::time::Duration;

use super::*;
use crate::observation::Outcome;
use crate::record::AcceptanceRecord;
use crate::stats::compare::{Comparison, RunFigures, Verdict, compare, compare_pairs};
use crate::stats::prepared::Prepared;
use crate::stats::tests::{observation, record};
use crate::stats::{Group, MOST_TAGS};

/// A request of ten steps of k = 4.
fn request(id: u64, accepted: u64) -> Observation {
    let record = AcceptanceRecord {
        mean_acceptance_length: None,
        draft_acceptance_rate: None,
        acceptance_histogram: [(accepted as u32, 10)].into(),
        num_accepted_draft_tokens: 10 * accepted,
        num_draft_tokens: 40,
        num_spec_steps: Some(10),
        ..record()
    };
    let mut observation = observation(vec![record]);
    observation.started_at += Duration::from_secs(id);
    observation.x_request_id = Some(format!("request-{id}"));
    observation
}

fn requests(n: u64, accepted: impl Fn(u64) -> u64) -> Vec<Observation> {
    (0..n).map(|id| request(id, accepted(id))).collect()
}

fn paired(base: &[Observation], other: &[Observation]) -> Comparison {
    compare_pairs(&Pairs::find(PairBy::XRequestId, base, other), 1, 7)
}

fn marks(pairs: &Pairs) -> (u64, u64, u64) {
    let it = pairs.pairing;
    (it.pairs, it.unpaired_base, it.unpaired_other)
}

#[test]
fn an_id_that_is_missing_or_occurs_twice_pairs_nothing_and_is_counted() {
    let base = [request(1, 1), request(2, 1), request(3, 1), request(3, 2)];
    let mut nameless = request(9, 1);
    nameless.x_request_id = None;
    let other = [request(1, 2), request(3, 2), nameless];
    let pairs = Pairs::find(PairBy::XRequestId, &base, &other);
    assert_eq!(marks(&pairs), (1, 3, 2));
    assert_eq!(pairs.pairs[0].other.sample.accepted, 20);
}

#[test]
fn a_failed_try_does_not_hide_the_one_that_went_well() {
    let mut failed = request(1, 0);
    failed.outcome = Outcome::Truncated;
    let pairs = Pairs::find(
        PairBy::XRequestId,
        &[failed, request(1, 1)],
        &[request(1, 2)],
    );
    assert_eq!(marks(&pairs), (1, 0, 0));
}

#[test]
fn by_tag_and_place_the_order_of_arrival_decides_and_failures_keep_their_place() {
    let tagged = |id: u64, tag: &str, accepted: u64| Observation {
        tag: Some(tag.to_owned()),
        ..request(id, accepted)
    };
    // Written in the order in which they ended.
    let base = [
        tagged(3, "a", 3),
        tagged(1, "a", 1),
        tagged(2, "b", 2),
        tagged(5, "a", 4),
    ];
    let mut failed = tagged(3, "a", 0);
    failed.outcome = Outcome::Cancelled;
    let other = [tagged(1, "a", 1), failed, tagged(4, "a", 4)];
    let pairs = Pairs::find(PairBy::TagIndex, &base, &other);
    assert_eq!(marks(&pairs), (2, 2, 0));
    let accepted: Vec<_> = pairs
        .pairs
        .iter()
        .map(|pair| (pair.base.sample.accepted, pair.other.sample.accepted))
        .collect();
    assert_eq!(accepted, [(10, 10), (40, 40)]);
}

#[test]
fn a_small_change_of_every_prompt_is_found_where_unpaired_runs_show_none() {
    // Prompts differ by much more than the change.
    let base = requests(60, |id| id % 4);
    let other = requests(60, |id| id % 4 + u64::from(id % 3 == 0));
    let comparison = paired(&base, &other);
    let length = &comparison.differences[0];
    assert_eq!(length.base, Some(2.5));
    assert!((length.difference.unwrap() - 1.0 / 3.0).abs() < 1e-12);
    assert_eq!((length.n_base, length.n_other), (60, 60));
    assert_eq!(length.verdict, Verdict::Higher);
    // The rate's is a quarter of it, in percent.
    let rate = comparison.differences[1].difference.unwrap();
    assert!((rate - 100.0 / 12.0).abs() < 1e-9, "{rate}");
    // Σ infl² = 20·(2/3)² + 40·(1/3)² steps alike: p(1 − p) / 60 · 60 / 59.
    let half = length.interval.unwrap().high - length.difference.unwrap();
    let error = (2.0_f64 / 9.0 / 59.0).sqrt();
    // Student's t of 59 degrees at 1 − 0.05 · 0.8 / 2, by as many draws as there are.
    assert!((half / error - 2.39).abs() < 0.2, "{}", half / error);
    let [base, other] = [base, other].map(|side| {
        let mut group = Group::default();
        side.iter()
            .for_each(|observation| group.add(&Prepared::new(observation)));
        RunFigures {
            whole: group,
            ..RunFigures::default()
        }
    });
    let unpaired = &compare(&base, &other, 1, 7).differences[0];
    assert_eq!(unpaired.difference, length.difference);
    assert_eq!(unpaired.verdict, Verdict::NoEvidence);
}

#[test]
fn positions_of_pairs_have_the_error_of_their_differences() {
    let base = requests(60, |id| id % 2);
    let same = paired(&base, &base);
    let position = &same.positions[0].difference;
    assert_eq!(position.difference, Some(0.0));
    let interval = position.interval.unwrap();
    assert_eq!((interval.low, interval.high), (0.0, 0.0));
    assert_eq!(position.verdict, Verdict::NoEvidence);
    // Ten of thirty prompts that accepted none now accept one.
    let other = requests(60, |id| u64::from(id % 2 == 1 || id % 6 == 0));
    let comparison = paired(&base, &other);
    let position = &comparison.positions[0].difference;
    assert!((position.difference.unwrap() - 1.0 / 6.0).abs() < 1e-12);
    let half = position.interval.unwrap().high - position.difference.unwrap();
    // p(1 − p) / 59 with p = 1/6, at 1 − 0.05 · 0.1.
    let error = (5.0_f64 / 36.0 / 59.0).sqrt();
    assert!((half / error - 2.916).abs() < 0.02, "{}", half / error);
}

#[test]
fn a_category_holds_the_pairs_whose_requests_both_have_its_tag() {
    let tagged = |id: u64, tag: &str| Observation {
        tag: Some(tag.to_owned()),
        ..request(id, id % 2)
    };
    let base = [tagged(1, "a"), tagged(2, "a"), tagged(3, "b")];
    let other = [tagged(1, "a"), tagged(2, "b"), tagged(3, "b")];
    let categories = paired(&base, &other).categories;
    let found: Vec<_> = categories
        .iter()
        .map(|it| (it.tag.as_deref(), it.differences[0].n_base))
        .collect();
    assert_eq!(found, [(Some("a"), 1), (Some("b"), 1)]);
}

#[test]
fn a_tag_for_each_prompt_does_not_make_a_category_for_each() {
    let tagged = requests(200, |id| id % 3)
        .into_iter()
        .map(|request| Observation {
            tag: request.x_request_id.clone(),
            ..request
        });
    let base: Vec<Observation> = tagged.collect();
    let pairs = Pairs::find(PairBy::TagIndex, &base, &base);
    assert_eq!(marks(&pairs), (200, 0, 0));
    let categories = compare_pairs(&pairs, 1, 7).categories;
    let n: u64 = categories.iter().map(|it| it.differences[0].n_base).sum();
    assert_eq!((categories.len(), n), (MOST_TAGS + 1, 200));
}

#[test]
fn latencies_of_a_pair_count_where_both_arrived_at_about_the_same_concurrency() {
    let timed = |milliseconds: f64, concurrency: fn(u64) -> u64| -> Vec<Observation> {
        let timed = requests(80, |id| id % 3).into_iter().zip(0..);
        timed
            .map(|(mut observation, id)| {
                observation.timing.inter_token_latency_ms = Some(milliseconds + (id % 7) as f64);
                observation.in_flight = concurrency(id);
                observation
            })
            .collect()
    };
    let comparison = paired(
        &timed(17.0, |_| 4),
        &timed(7.0, |id| if id % 2 == 0 { 5 } else { 64 }),
    );
    let latency = &comparison.differences[2];
    assert_eq!((latency.n_base, latency.n_other), (40, 40));
    let base = latency.base.unwrap();
    assert!((base - latency.other.unwrap() - 10.0).abs() < 1e-9);
    assert_eq!(latency.verdict, Verdict::Lower);
    let speed_up = comparison.speed_up.unwrap();
    assert!((speed_up.value - base / (base - 10.0)).abs() < 1e-9);

    let apart = paired(&timed(17.0, |_| 1), &timed(7.0, |_| 64));
    assert_eq!(apart.differences[2].verdict, Verdict::NotComparable);
}

#[test]
fn the_rate_of_pairs_gets_no_verdict_when_k_differs() {
    let base = requests(60, |id| id % 3);
    let mut other = base.clone();
    for observation in &mut other {
        let record = &mut observation.spec_decode_acceptance[0];
        (record.num_spec_tokens, record.num_draft_tokens) = (Some(8), 80);
    }
    let rate = &paired(&base, &other).differences[1];
    assert_eq!(rate.verdict, Verdict::NotComparable);
    assert!(
        rate.why
            .as_ref()
            .unwrap()
            .starts_with("k is 4 in the base and 8 here")
    );
}

#[test]
fn a_base_without_speculation_gives_the_speed_up_of_pairs() {
    let mut base = requests(60, |_| 0);
    for observation in &mut base {
        observation.spec_decode_acceptance.clear();
        observation.acceptance = Some(Acceptance::Absent);
        observation.n = 1;
        observation.timing.inter_token_latency_ms = Some(20.0);
    }
    let mut other = requests(60, |id| id % 3);
    for observation in &mut other {
        observation.timing.inter_token_latency_ms = Some(10.0);
    }
    let comparison = paired(&base, &other);
    assert_eq!(comparison.differences[0].verdict, Verdict::Unknown);
    assert_eq!(comparison.differences[2].verdict, Verdict::Lower);
    assert_eq!(comparison.speed_up.unwrap().value, 2.0);
}

#[test]
fn without_a_single_pair_nothing_is_known() {
    let comparison = paired(&[request(1, 1)], &[request(2, 1)]);
    let verdicts = comparison.differences.iter().map(|it| it.verdict);
    assert!(verdicts.into_iter().all(|it| it == Verdict::Unknown));
    assert_eq!(
        (comparison.positions.len(), comparison.categories.len()),
        (0, 0)
    );
}
