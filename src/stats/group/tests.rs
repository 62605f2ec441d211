//! What a group keeps once it has given up exchanges, and that parts add up to the same.

use proptest::prelude::*;

use super::*;
use crate::observation::{Observation, Outcome};
use crate::stats::tests::{observation, record};
use crate::stats::{PERCENTILES, Statistic};

/// Exchanges with values that differ; each seventh does not count for AIPerf.
fn exchanges(n: u64) -> Vec<Observation> {
    let one = |number: u64| {
        let mut one = record();
        one.acceptance_histogram = [(0, 1 + number % 5), (3, number % 11)].into();
        let steps = 1 + number % 5 + number % 11;
        one.num_spec_steps = Some(steps);
        one.num_accepted_draft_tokens = 3 * (number % 11);
        one.num_draft_tokens = 4 * steps;
        one.mean_acceptance_length = one.derived_length();
        one.draft_acceptance_rate = one.derived_rate();
        let mut exchange = observation(vec![one]);
        if number % 7 == 3 {
            exchange.outcome = Outcome::Cancelled;
        }
        exchange.in_flight = number;
        exchange.timing.request_latency_ms = Some(10.0 + (number * 7_919 % 1_000) as f64 / 3.0);
        exchange.usage.prompt_tokens = Some(number % 13);
        exchange
    };
    (0..n).map(one).collect()
}

fn of(exchanges: &[Observation]) -> Group {
    let mut group = Group::default();
    for exchange in exchanges {
        group.add(&Prepared::new(exchange));
    }
    group
}

fn condensed(exchanges: &[Observation], kept: usize) -> Group {
    let mut group = of(exchanges);
    group.take_over(group.condensed(kept));
    group
}

const RECORDS: [RecordColumn; 6] = [
    RecordColumn::AcceptanceLength,
    RecordColumn::DraftAcceptanceRate,
    RecordColumn::AcceptedPerVerified,
    RecordColumn::Steps,
    RecordColumn::AcceptedDraftTokens,
    RecordColumn::DraftTokens,
];

fn statistics(group: &Group) -> Vec<Option<Statistic>> {
    let views = [ViewName::Aiperf, ViewName::All];
    let records = views.map(|view| group.records(view, &RECORDS));
    let traffic = group.traffic(&[
        TrafficColumn::TimeToFirstToken,
        TrafficColumn::RequestLatency,
        TrafficColumn::InputSequenceLength,
    ]);
    let all = records.into_iter().flatten().chain(traffic);
    all.map(Distribution::statistic).collect()
}

/// All but what sums of parts may round differently.
fn percentiles(group: &Group) -> Vec<Option<(u64, bool, [f64; PERCENTILES.len()])>> {
    let statistics = statistics(group).into_iter();
    statistics
        .map(|it| it.map(|it| (it.count, it.exact, it.percentiles)))
        .collect()
}

#[test]
fn a_group_that_gave_up_its_exchanges_keeps_its_counts_and_says_that_its_percentiles_are_near() {
    let all = exchanges(2_000);
    let (whole, condensed) = (of(&all), condensed(&all, 100));
    assert_eq!(condensed.evidence.samples.len(), 100);
    assert_eq!(condensed.aiperf.pooled, whole.aiperf.pooled);
    assert_eq!(condensed.rest.pooled, whole.rest.pooled);
    assert!(condensed.rest.pooled.records > 0);
    for (exact, near) in statistics(&whole).into_iter().zip(statistics(&condensed)) {
        let (Some(exact), Some(near)) = (exact, near) else {
            continue;
        };
        assert!(exact.exact && !near.exact);
        assert_eq!(
            (exact.count, exact.min, exact.max),
            (near.count, near.min, near.max)
        );
        for (near, exact) in near.percentiles.iter().zip(exact.percentiles) {
            let error = (near - exact).abs();
            assert!(error <= 0.005 * exact * (1.0 + 1e-9), "{near} for {exact}");
        }
    }
}

#[test]
fn exchanges_that_come_while_others_are_given_up_are_not_lost() {
    let all = exchanges(900);
    let mut group = of(&all[..500]);
    let first = group.condensed(50);
    for exchange in &all[500..700] {
        group.add(&Prepared::new(exchange));
    }
    group.take_over(first);
    assert_eq!(
        percentiles(&group),
        percentiles(&condensed(&all[..700], 50))
    );
    let second = group.condensed(20);
    for exchange in &all[700..] {
        group.add(&Prepared::new(exchange));
    }
    group.take_over(second);
    assert_eq!(percentiles(&group), percentiles(&condensed(&all, 20)));
    // A key that is kept of 700 is kept of 500, so the sample is that of all.
    let mut sample = of(&all).evidence.samples;
    sample.thin_to(group.evidence.samples.len());
    let kept = |samples: &Samples| samples.first(usize::MAX, |_| true);
    assert_eq!(kept(&group.evidence.samples), kept(&sample));
}

#[test]
fn a_group_asks_for_no_room_that_it_would_not_win() {
    assert_eq!(of(&exchanges(100)).would_keep(), None);
    let large = of(&exchanges(5_000));
    let (kept, after) = large.would_keep().unwrap();
    assert_eq!(kept, 5_000 / 8);
    assert!(after < large.bytes());
    let mut small = large;
    while let Some((kept, _)) = small.would_keep() {
        let before = small.bytes();
        small.take_over(small.condensed(kept));
        assert!(small.bytes() < before);
    }
    assert!(small.evidence.samples.len() >= FEWEST_KEPT - 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn parts_add_up_whether_or_not_they_gave_up_exchanges(
        n in 2_usize..400,
        cut in any::<prop::sample::Index>(),
        thin in any::<(bool, bool)>(),
    ) {
        let all = exchanges(n as u64);
        let (left, right) = all.split_at(cut.index(all.len()));
        let part = |exchanges: &[Observation], thin: bool| {
            if thin { condensed(exchanges, 40) } else { of(exchanges) }
        };
        let whole = if thin.0 || thin.1 { condensed(&all, n) } else { of(&all) };
        let mut one_way = part(left, thin.0);
        one_way.merge(&part(right, thin.1));
        let mut other_way = part(right, thin.1);
        other_way.merge(&part(left, thin.0));
        for merged in [&one_way, &other_way] {
            prop_assert_eq!(percentiles(merged), percentiles(&whole));
            prop_assert_eq!(&merged.aiperf.pooled, &whole.aiperf.pooled);
        }
        let kept = |group: &Group| group.evidence.samples.first(usize::MAX, |_| true);
        prop_assert_eq!(kept(&one_way), kept(&other_way));
    }

    #[test]
    fn a_group_goes_through_json_unchanged(n in 0_u64..60, thin: bool) {
        let group = if thin { condensed(&exchanges(n), 10) } else { of(&exchanges(n)) };
        let text = serde_json::to_string(&group).unwrap();
        let read: Group = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(percentiles(&read), percentiles(&group));
        prop_assert_eq!(serde_json::to_string(&read).unwrap(), text);
    }
}
