//! Whatever the observations: their order changes nothing, and pooled counts are their exact sums.

#![allow(
    clippy::expect_used,
    reason = "a test fails loudly; clippy sees only the test functions as tests"
)]

mod numbers_support;

use numbers_support::{observation, record, recorded, statistics};
use proptest::prelude::*;
use spectap::export::{By, Query, Summary, summary, summary::of_snapshot};
use spectap::observation::{Observation, Outcome, Route};

fn exchanges() -> impl Strategy<Value = Vec<Observation>> {
    let histogram = prop::collection::vec(0_u64..50, 2..7);
    let sequences = prop::collection::vec(histogram, 0..3);
    let exchange = (
        sequences,
        prop::option::of("[abc]"),
        prop::option::of("[xy]"),
        any::<bool>(),
        any::<bool>(),
        0.0..1e4_f64,
    );
    prop::collection::vec(exchange, 0..40).prop_map(|exchanges| {
        exchanges
            .into_iter()
            .map(|(sequences, model, tag, completions, cancelled, latency)| {
                let mut exchange = if sequences.is_empty() {
                    observation()
                } else {
                    recorded(
                        sequences
                            .iter()
                            .map(|histogram| record(histogram))
                            .collect(),
                    )
                };
                exchange.model = model;
                exchange.tag = tag;
                if completions {
                    exchange.route = Route::Completions;
                }
                if cancelled {
                    exchange.outcome = Outcome::Cancelled;
                }
                exchange.timing.request_latency_ms = Some(latency);
                exchange
            })
            .collect()
    })
}

fn every_group() -> Query {
    Query {
        by: vec![By::Model, By::Engine, By::Tag, By::Route],
        ..Query::default()
    }
}

fn summarised(exchanges: Vec<Observation>) -> Summary {
    summary(&statistics(exchanges), &every_group())
}

proptest! {
    #[test]
    fn the_order_of_exchanges_changes_nothing(
        (exchanges, shuffled) in exchanges().prop_flat_map(|all| (Just(all.clone()), Just(all).prop_shuffle()))
    ) {
        prop_assert_eq!(summarised(exchanges), summarised(shuffled));
    }

    #[test]
    fn pooled_counts_are_the_exact_sums_of_the_records(exchanges in exchanges()) {
        let records: Vec<_> = exchanges.iter().flat_map(|it| &it.spec_decode_acceptance).collect();
        let steps: u64 = records.iter().filter_map(|record| record.num_spec_steps).sum();
        let accepted: u64 = records.iter().map(|record| record.num_accepted_draft_tokens).sum();
        let drafted: u64 = records.iter().map(|record| record.num_draft_tokens).sum();
        let zero_step = records.iter().filter(|record| record.is_zero_step()).count();
        let any = records.len() > zero_step;
        let count = exchanges.len() as u64;

        let summary = summarised(exchanges);
        let all = &summary.sequences;
        let value = |tag: &str| all.metrics.get(tag).map(|metric| metric.avg);
        prop_assert_eq!(value("total_spec_decode_steps"), any.then_some(steps as f64));
        prop_assert_eq!(value("total_accepted_draft_tokens"), any.then_some(accepted as f64));
        prop_assert_eq!(value("total_draft_tokens"), any.then_some(drafted as f64));
        prop_assert_eq!(value("spec_decode_zero_step_requests"), (zero_step > 0).then_some(zero_step as f64));
        let histogram = &all.pooled_spec_decode_acceptance_histogram;
        prop_assert_eq!(histogram.values().sum::<u64>(), steps);
        prop_assert_eq!(histogram.iter().map(|(&j, &n)| u64::from(j) * n).sum::<u64>(), accepted);
        prop_assert!(histogram.values().all(|&steps| steps > 0));
        prop_assert_eq!(summary.n.exchanges, count);
        prop_assert_eq!(summary.groups.iter().map(|group| group.n.exchanges).sum::<u64>(), count);
    }

    #[test]
    fn a_filter_gives_what_only_those_exchanges_would_give(exchanges in exchanges()) {
        let only: Vec<_> = exchanges.iter().filter(|it| it.model.as_deref() == Some("a")).cloned().collect();
        let query = Query { model: Some("a".into()), ..Query::default() };
        let filtered = summary(&statistics(exchanges), &query);
        let alone = summary(&statistics(only), &query);
        prop_assert_eq!(filtered, alone);
    }

    #[test]
    fn snapshots_of_two_taps_together_are_the_snapshot_of_all(exchanges in exchanges(), cut in any::<prop::sample::Index>()) {
        let (left, right) = exchanges.split_at(cut.index(exchanges.len() + 1));
        let snapshot = |part: &[Observation]| {
            spectap::export::snapshot(&statistics(part.to_vec()), &Query::default())
        };
        let mut both = snapshot(left);
        let other = snapshot(right);
        both.period.stretch(&other.period);
        both.groups.extend(other.groups);
        prop_assert_eq!(of_snapshot(&both, &every_group().by), summarised(exchanges));
    }
}
