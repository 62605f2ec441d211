//! Hand-computed re-cuts, and when there is no advice.

use super::recut::{deepest_conditional, recut};
use super::*;
use crate::record::{AcceptanceHistogram, AcceptanceRecord, EngineName, Provenance};

/// A reply of ordered steps that each carried k drafts.
fn ordered(k: u64, accepted: &[u64]) -> AcceptanceRecord {
    let steps = accepted.len() as u64;
    let mut histogram = AcceptanceHistogram::new();
    for &accepted in accepted {
        *histogram.entry(accepted as u32).or_default() += 1;
    }
    AcceptanceRecord {
        provenance: Provenance::PerStep,
        acceptance_histogram: histogram,
        num_spec_steps: Some(steps),
        num_spec_tokens: Some(k),
        per_step_accepted: Some(accepted.to_vec()),
        per_step_drafted: Some(vec![k; accepted.len()]),
        ..AcceptanceRecord::of_counts(EngineName::Vllm, accepted.iter().sum(), steps * k)
    }
}

fn without_order(record: AcceptanceRecord) -> AcceptanceRecord {
    AcceptanceRecord {
        provenance: Provenance::Histogram,
        per_step_accepted: None,
        per_step_drafted: None,
        ..record
    }
}

fn stretches(records: &[AcceptanceRecord]) -> Stretches {
    let mut stretches = Stretches::default();
    for record in records {
        stretches.add(&Ordered::of(record, None).unwrap());
    }
    stretches
}

fn advice_on(records: impl IntoIterator<Item = AcceptanceRecord>) -> Advice {
    let statistics = crate::stats::Statistics::new();
    for record in records {
        crate::observation::ObservationSink::record(
            &statistics,
            std::sync::Arc::new(crate::stats::tests::observation(vec![record])),
        );
    }
    let (_, group) = statistics.groups(|_| true).remove(0);
    of(&group.aiperf.pooled, &group.evidence)
}

fn lengths(k: u32, accepted: &[u64]) -> Vec<(f64, f64)> {
    let stretches = stretches(&[ordered(u64::from(k), accepted)]);
    (1..=k)
        .map(|depth| {
            let cut = recut(k, &stretches.by_k[&k], depth);
            (cut.steps, cut.tokens)
        })
        .collect()
}

#[test]
fn steps_that_rejected_are_walked_again_at_the_smaller_depth() {
    // 3 accepted of 4, then 1: places + + + − , + −. At depth 1: (+ +)(+ −)(+ −); at 2: (+ + +)(−)(+ −);
    // at 3: (+ + + −)(+ −).
    assert_eq!(
        lengths(4, &[3, 1]),
        [(3.0, 6.0), (3.0, 6.0), (2.0, 6.0), (2.0, 6.0)]
    );
}

#[test]
fn behind_a_full_step_one_place_is_imputed_with_the_deepest_share() {
    // k = 2. One full step, two that accepted 1: the last position accepts 1 of 3.
    let accepted = [2, 1, 1];
    let stretches = stretches(&[ordered(2, &accepted)]);
    let of_2 = &stretches.by_k[&2];
    assert!((deepest_conditional(2, of_2) - 1.0 / 3.0).abs() < 1e-15);
    // Places + + ? , + − , + −. At depth 1: (+ +), then ? : accepted (1/3): (? +)(−)(+ −), that is 4 steps in all;
    // rejected (2/3): (?)(+ −)(+ −), 4 steps as well.
    assert_eq!(lengths(2, &accepted), [(4.0, 7.0), (3.0, 7.0)]);
    // k = 2: full, then 0 accepted, then 1. Places + + ?, −, + −. Deepest share 1/2. Accepted: (+ +)(? −)(+ −) are 3
    // steps; rejected: (+ +)(?)(−)(+ −) are 4.
    assert_eq!(lengths(2, &[2, 0, 1]), [(3.5, 6.0), (3.0, 6.0)]);
}

#[test]
fn a_reply_that_ends_in_full_steps_counts_its_open_step() {
    // k = 1, all full: the deepest share is 1, and depth 1 is what was observed.
    assert_eq!(lengths(1, &[1, 1, 1]), [(3.0, 6.0)]);
    // k = 3, depth 2: places + + + ? + + + ?; all accept: (+ + +)(? + +)(+ ?) are 3 steps.
    let cut = &lengths(3, &[3, 3])[1];
    assert_eq!(*cut, (3.0, 8.0));
}

#[test]
fn the_observed_depth_gives_back_what_was_observed() {
    let accepted = [0, 5, 5, 2, 5, 1, 5, 5, 5, 3, 0, 0, 5];
    let observed = lengths(5, &accepted)[4];
    let tokens: u64 = accepted.iter().map(|accepted| accepted + 1).sum();
    assert_eq!(observed, (13.0, tokens as f64));
}

#[test]
fn stretches_add_up_in_any_grouping() {
    let records: Vec<AcceptanceRecord> = (0..20_u64)
        .map(|seed| ordered(4, &[seed % 5, 4, (seed * 7) % 5, 4, 4, seed % 3]))
        .collect();
    let mut left = stretches(&records[..7]);
    let right = stretches(&records[7..]);
    left.merge(&right);
    assert_eq!(left, stretches(&records));
    let mut other_way = right.clone();
    other_way.merge(&stretches(&records[..7]));
    assert_eq!(other_way, left);
}

#[test]
fn a_very_long_row_of_full_steps_stays_bounded() {
    let stretches = stretches(&[ordered(2, &vec![2; 100_000])]);
    assert!(stretches.by_k[&2].counts.keys().all(|&row| row <= 255));
    let cut = recut(2, &stretches.by_k[&2], 1);
    // All accept: two tokens a step, as far as the cuts of the row let it.
    assert!((cut.length() - 2.0).abs() < 0.01, "{}", cut.length());
    assert_eq!(cut.tokens, 300_000.0);
}

fn thirty(record: impl Fn(u64) -> AcceptanceRecord) -> Vec<AcceptanceRecord> {
    (0..30).map(record).collect()
}

fn usual(seed: u64) -> AcceptanceRecord {
    let accepted: Vec<u64> = (0..40).map(|step| (step * seed + step) % 5).collect();
    ordered(4, &accepted)
}

#[test]
fn ordered_steps_give_a_range_from_truncated_to_re_cut() {
    let advice = advice_on(thirty(usual));
    assert_eq!(advice.basis, Some(Basis::OrderedSteps));
    assert_eq!((advice.k, advice.n, advice.steps), (Some(4), 30, 1200));
    assert_eq!(advice.depths.len(), 4);
    let last = advice.depths[3];
    assert!(!last.estimate);
    assert_eq!(last.length.high, Some(last.length.low));
    assert!(advice.depths[0].estimate);
    assert!(advice.depths[0].length.low < advice.depths[0].length.high.unwrap());
    assert!(advice.text.starts_with("Estimate from 1200 ordered steps"));
}

#[test]
fn without_order_the_truncated_histogram_is_only_a_lower_end() {
    let advice = advice_on(thirty(|seed| without_order(usual(seed))));
    assert_eq!(advice.basis, Some(Basis::Histogram));
    assert_eq!(advice.depths[0].length.high, None);
    assert!(advice.text.contains("likely pessimistic"));
}

#[test]
fn the_speed_up_weighs_the_length_against_the_cost_of_the_drafts() {
    // Every step accepts 2 of 4: lengths 2, 3, 3, 3 by truncation.
    let advice = advice_on(thirty(|_| without_order(ordered(4, &[2; 40])))).with_draft_cost(0.1);
    let speed_ups: Vec<f64> = advice
        .depths
        .iter()
        .map(|depth| depth.speed_up.unwrap().low)
        .collect();
    for (speed_up, expected) in speed_ups
        .iter()
        .zip([2.0 / 1.1, 3.0 / 1.2, 3.0 / 1.3, 3.0 / 1.4])
    {
        assert!((speed_up - expected).abs() < 1e-12);
    }
    assert_eq!(advice.best, Some([2, 2]));
    // At depth 4 two of four drafts are wasted for three tokens.
    let deepest = advice.depths[3];
    assert!((deepest.drafted_per_token.low - 4.0 / 3.0).abs() < 1e-12);
    assert!((deepest.wasted_per_token.low - 2.0 / 3.0).abs() < 1e-12);
}

#[test]
fn data_that_carry_no_advice_get_a_sentence() {
    let obstacle = |records: Vec<AcceptanceRecord>| {
        let advice = advice_on(records);
        assert!(advice.depths.is_empty());
        assert!(advice.text.starts_with("No advice on the draft depth: "));
        advice.obstacle.unwrap()
    };
    assert_eq!(obstacle(vec![usual(1)]), Obstacle::TooFew);
    let totals = AcceptanceRecord::of_counts(EngineName::LlamaCpp, 25, 60);
    assert_eq!(obstacle(thirty(|_| totals.clone())), Obstacle::NoSteps);
    let tree = |seed| AcceptanceRecord {
        num_draft_tokens: 40 * 12,
        ..without_order(usual(seed))
    };
    assert_eq!(obstacle(thirty(tree)), Obstacle::Tree);
    let adaptive = |seed| AcceptanceRecord {
        num_draft_tokens: 40 * 3,
        num_spec_tokens: None,
        ..without_order(usual(seed))
    };
    assert_eq!(obstacle(thirty(adaptive)), Obstacle::Widths);
    let two_settings = |seed| {
        if seed % 2 == 0 {
            usual(seed)
        } else {
            ordered(2, &[1; 40])
        }
    };
    assert_eq!(obstacle(thirty(two_settings)), Obstacle::Widths);
    assert_eq!(
        obstacle(thirty(|_| ordered(1, &[1; 40]))),
        Obstacle::NoSmallerDepth
    );
    assert_eq!(
        obstacle(thirty(|_| ordered(33, &[1; 40]))),
        Obstacle::TooDeep
    );
}

/// Draws from requests of k = 2 without order, each with as many steps that accepted 0 and 2.
fn draws_of(requests: &[(u64, u64)], n: u64) -> Draws {
    let mut evidence = Evidence::default();
    for (number, &(none, both)) in requests.iter().enumerate() {
        let mut accepted = vec![0; none as usize];
        accepted.extend(vec![2; both as usize]);
        let mut exchange =
            crate::stats::tests::observation(vec![without_order(ordered(2, &accepted))]);
        exchange.in_flight = number as u64;
        let prepared = crate::stats::prepared::Prepared::new(&exchange);
        evidence.samples.push(prepared.key, &prepared.row);
    }
    Draws::of(&evidence.samples, 2, None, n)
}

fn depths_of(lengths: &[f64]) -> Vec<Depth> {
    let range = |length: f64| Range {
        low: length,
        high: None,
    };
    (1..)
        .zip(lengths)
        .map(|(depth, &length)| Depth {
            depth,
            length: range(length),
            drafted_per_token: range(0.0),
            wasted_per_token: range(0.0),
            speed_up: None,
            estimate: true,
        })
        .collect()
}

#[test]
fn the_best_depth_is_as_certain_as_the_draws_of_two_requests_make_it() {
    // One request accepts nothing: length 1 at both depths, so depth 1 is best. The other one accepts all: 2 and 3, and at
    // a cost of 0.3 depth 2 is best: 3 / 1.6 against 2 / 1.3. Both together: 2 / 1.6 against 1.5 / 1.3. Of four draws of two,
    // one is the first request twice.
    let draws = draws_of(&[(10, 0), (0, 10)], 2);
    let best = draws.best(&depths_of(&[1.5, 2.0]), &[0.3], [2, 2]).unwrap();
    assert_eq!((best.low, best.high, best.level), (1, 2, 0.95));
    let shares: Vec<u32> = best.shares.iter().map(|it| it.depth).collect();
    assert_eq!(shares, [1, 2]);
    assert!((best.shares[0].share - 0.25).abs() < 0.04, "{best:?}");
    assert!((best.shares[1].share - 0.75).abs() < 0.04, "{best:?}");
    // A sample of a million requests says much more about them: depth 2 it is.
    let many = draws_of(&[(10, 0), (0, 10)], 1_000_000);
    let best = many.best(&depths_of(&[1.5, 2.0]), &[0.3], [2, 2]).unwrap();
    assert_eq!((best.low, best.high), (2, 2));
}

#[test]
fn a_clear_case_has_one_depth_and_a_tie_has_both() {
    let alike = draws_of(&[(0, 10); 8], 8);
    let clear = alike.best(&depths_of(&[2.0, 3.0]), &[0.1], [2, 2]).unwrap();
    assert_eq!((clear.low, clear.high), (2, 2));
    assert_eq!(
        clear.shares,
        [DepthShare {
            depth: 2,
            share: 1.0
        }]
    );
    // 2 / (1 + 1) = 3 / (1 + 2).
    let tie = alike.best(&depths_of(&[2.0, 3.0]), &[1.0], [1, 1]).unwrap();
    assert_eq!((tie.low, tie.high), (1, 2));
    assert_eq!(
        tie.shares.iter().map(|it| it.share).collect::<Vec<_>>(),
        [0.5, 0.5]
    );
}

#[test]
fn a_cost_that_is_uncertain_makes_the_best_depth_uncertain() {
    let alike = draws_of(&[(0, 10); 8], 8);
    let depths = depths_of(&[2.0, 3.0]);
    let best = alike.best(&depths, &[0.5, 2.0], [2, 2]).unwrap();
    assert_eq!((best.low, best.high), (1, 2));
    assert_eq!(best.shares[0].share, 0.5);
}

#[test]
fn fewer_than_two_requests_have_no_certainty() {
    assert_eq!(
        draws_of(&[(0, 10)], 1).best(&depths_of(&[2.0, 3.0]), &[0.1], [2, 2]),
        None
    );
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(16))]

    #[test]
    fn the_interval_holds_the_estimate_and_the_shares_are_whole(
        replies in proptest::collection::vec(proptest::collection::vec(0_u64..6, 34..60), 30..40),
        cost in 0.0..1.0_f64,
        in_order: bool,
    ) {
        let records = replies.iter().map(|accepted| {
            let record = ordered(5, accepted);
            if in_order { record } else { without_order(record) }
        });
        let advice = advice_on(records.clone()).with_draft_cost(cost);
        let best = advice.best.unwrap();
        let certain = advice.best_interval.clone().unwrap();
        proptest::prop_assert!(certain.low <= best[0] && best[1] <= certain.high);
        let sum: f64 = certain.shares.iter().map(|it| it.share).sum();
        proptest::prop_assert!((sum - 1.0).abs() < 1e-9);
        let inside = certain.shares.iter().filter(|it| (certain.low..=certain.high).contains(&it.depth));
        proptest::prop_assert!(inside.map(|it| it.share).sum::<f64>() >= 0.95 - 1e-9);
        // The same requests give the same, in any order.
        let mut backwards: Vec<_> = records.collect();
        backwards.reverse();
        proptest::prop_assert_eq!(advice_on(backwards).with_draft_cost(cost), advice);
    }
}

#[test]
fn of_two_depths_the_deeper_one_with_enough_steps_is_the_source() {
    let mixed = |few: u64| {
        let deep = (0..few).map(usual);
        let shallow = (0..40).map(|_| ordered(2, &[1; 40]));
        advice_on(deep.chain(shallow))
    };
    let advice = mixed(30);
    assert_eq!((advice.k, advice.n), (Some(4), 30));
    assert!(
        advice
            .text
            .ends_with(" 40 requests that ran at other depths are left out."),
        "{}",
        advice.text
    );
    // One request at k = 4 fewer, and there are too few of them.
    let advice = mixed(29);
    assert_eq!((advice.k, advice.n), (Some(2), 40));
}
