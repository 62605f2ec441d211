//! Windows, runs and facets give exactly what the exchanges that belong to them give, at any time and whatever has left
//! the log of single exchanges. The clock is moved by hand.

#![allow(
    clippy::expect_used,
    reason = "a test fails loudly; clippy sees only the test functions as tests"
)]

mod numbers_support;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use numbers_support::{observation, record, recorded, statistics};
use proptest::prelude::*;
use spectap::clock::Clock;
use spectap::export::{By, Query, Summary, snapshot, summary, summary::of_snapshot};
use spectap::observation::{Observation, ObservationSink, Outcome, Usage};
use spectap::stats::{Facet, Moment, Statistics, Window};
use strum::VariantArray;

const BUCKET: Duration = Duration::from_secs(5);

fn start() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_123)
}

/// An exchange, and how long after the one before it ended.
fn exchange() -> impl Strategy<Value = (Duration, Observation)> {
    let histogram = prop::collection::vec(0_u64..50, 2..7);
    (
        0_u64..120_000_000,
        prop::collection::vec(histogram, 0..3),
        prop::option::of("[abc]"),
        prop::option::of("[xy]"),
        prop::option::of("[rs]"),
        any::<bool>(),
        (0.0..1e4_f64, 0_u64..5_000_000),
        (prop::option::of(0_u64..5_000), prop::option::of(0_u64..500)),
        0_u64..300,
    )
        .prop_map(
            |(
                after,
                sequences,
                model,
                tag,
                run,
                cancelled,
                (latency, length),
                tokens,
                in_flight,
            )| {
                let mut exchange = if sequences.is_empty() {
                    observation()
                } else {
                    let records = sequences.iter().map(|histogram| record(histogram));
                    recorded(records.collect())
                };
                (exchange.model, exchange.tag, exchange.run) = (model, tag, run);
                if cancelled {
                    exchange.outcome = Outcome::Cancelled;
                }
                exchange.timing.request_latency_ms = Some(latency);
                exchange.usage = Usage {
                    prompt_tokens: tokens.0,
                    completion_tokens: tokens.1,
                    cached_tokens: tokens.1,
                    reasoning_tokens: None,
                };
                exchange.in_flight = in_flight;
                let after = Duration::from_micros(after);
                exchange.started_at = start();
                exchange.ended_at = start() + Duration::from_micros(length);
                (after, exchange)
            },
        )
}

/// Lets the exchanges happen one after the other; gives them as they were.
fn happen(
    statistics: &Statistics,
    clock: &Clock,
    exchanges: Vec<(Duration, Observation)>,
) -> Vec<Observation> {
    let place = |(after, mut exchange): (Duration, Observation)| {
        clock.advance(after);
        let length = exchange.ended_at.duration_since(exchange.started_at);
        exchange.ended_at = clock.now();
        exchange.started_at = clock.now() - length.expect("an end after its start");
        statistics.record(Arc::new(exchange.clone()));
        exchange
    };
    exchanges.into_iter().map(place).collect()
}

/// The facets in the order of their variants.
const FACETS: [By; Facet::VARIANTS.len()] = [
    By::Context,
    By::Prompt,
    By::Cached,
    By::Temperature,
    By::Format,
    By::Reasoning,
    By::Stream,
    By::Concurrency,
];

/// Every grouping that there is.
fn groupings() -> impl Iterator<Item = Vec<By>> {
    let with_facet = FACETS.into_iter().map(|facet| vec![By::Model, facet]);
    with_facet.chain([Vec::new(), vec![By::Tag, By::Model, By::Engine, By::Route]])
}

fn summary_of(exchanges: Vec<Observation>) -> Summary {
    summary(&statistics(exchanges), &Query::default())
}

/// What the same question gives when only these exchanges ever were, with another scope put in.
fn alone(exchanges: Vec<Observation>, query: &Query, like: &Summary) -> Summary {
    let query = Query {
        window: Window::All,
        run: None,
        ..query.clone()
    };
    let mut summary = summary(&statistics(exchanges), &query);
    summary.scope = like.scope.clone();
    summary
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_window_gives_what_the_exchanges_that_ended_in_it_give(
        exchanges in prop::collection::vec(exchange(), 0..60),
        later in 0_u64..90,
        run in prop::option::of("[rs]"),
    ) {
        let clock = Clock::by_hand(start());
        let statistics = Statistics::with_clock(clock.clone());
        let exchanges = happen(&statistics, &clock, exchanges);
        clock.advance(Duration::from_secs(later));
        for &window in Window::VARIANTS {
            for by in groupings() {
                let query = Query { by, window, run: run.clone(), ..Query::default() };
                let seen = summary(&statistics, &query);
                let mut inside = exchanges.clone();
                if let Some(run) = &run {
                    inside.retain(|it| it.run.as_ref() == Some(run));
                }
                if window != Window::All {
                    let (Some(Moment(from)), Some(Moment(to))) = (seen.scope.period.from, seen.scope.period.to) else {
                        panic!("a window without edges");
                    };
                    prop_assert!(to > clock.now() && to <= clock.now() + BUCKET);
                    inside.retain(|it| (from..to).contains(&it.ended_at));
                }
                prop_assert_eq!(&seen, &alone(inside, &query, &seen));
            }
        }
    }

    #[test]
    fn runs_and_facets_keep_what_has_left_the_log_and_windows_say_how_far_they_reach(
        exchanges in prop::collection::vec(exchange(), 0..60),
        run in prop::option::of("[rs]"),
    ) {
        let clock = Clock::by_hand(start());
        // Room for a few exchanges only.
        let statistics = Statistics::with_log(clock.clone(), 500);
        let exchanges = happen(&statistics, &clock, exchanges);
        for &window in Window::VARIANTS {
            for by in groupings() {
                let query = Query { by, window, run: run.clone(), ..Query::default() };
                let seen = summary(&statistics, &query);
                let mut inside = exchanges.clone();
                if let Some(run) = &run {
                    inside.retain(|it| it.run.as_ref() == Some(run));
                }
                if let (false, Some(Moment(from))) = (window == Window::All, seen.scope.period.from) {
                    inside.retain(|it| it.ended_at >= from);
                }
                prop_assert_eq!(&seen, &alone(inside, &query, &seen));
            }
        }
    }

    #[test]
    fn a_value_of_a_facet_gives_what_the_exchanges_that_have_it_give(
        exchanges in prop::collection::vec(exchange(), 0..40),
    ) {
        let clock = Clock::by_hand(start());
        let statistics = Statistics::with_log(clock.clone(), 500);
        let exchanges = happen(&statistics, &clock, exchanges);
        for (&facet, by) in Facet::VARIANTS.iter().zip(FACETS) {
            let query = Query { by: vec![by], ..Query::default() };
            let seen = summary(&statistics, &query);
            let mut counted = 0;
            for group in &seen.groups {
                let value = group.key[&by].as_deref();
                let mut having = exchanges.clone();
                having.retain(|it| Some(facet.of(it).as_str()) == value);
                counted += having.len() as u64;
                let expected = summary_of(having);
                prop_assert_eq!(&group.metrics, &expected.metrics);
                prop_assert_eq!(&group.sequences, &expected.sequences);
                prop_assert_eq!(group.n, expected.n);
            }
            prop_assert_eq!(counted, seen.n.exchanges);
        }
    }

    #[test]
    fn windows_of_two_taps_together_are_the_window_of_all(
        exchanges in prop::collection::vec(exchange(), 0..40),
        cut in any::<prop::sample::Index>(),
    ) {
        let clock = Clock::by_hand(start());
        let whole = Statistics::with_clock(clock.clone());
        let exchanges = happen(&whole, &clock, exchanges);
        let query = Query { by: vec![By::Context], window: Window::FiveMinutes, ..Query::default() };
        let (left, right) = exchanges.split_at(cut.index(exchanges.len() + 1));
        let part = |exchanges: &[Observation]| {
            let statistics = Statistics::with_clock(clock.clone());
            for exchange in exchanges {
                statistics.record(Arc::new(exchange.clone()));
            }
            snapshot(&statistics, &query)
        };
        let (mut both, other) = (part(left), part(right));
        both.groups.extend(other.groups);
        prop_assert_eq!(of_snapshot(&both, &query.by), summary(&whole, &query));
    }
}

#[test]
fn a_window_is_as_long_as_it_says_and_its_edges_are_round() {
    let clock = Clock::by_hand(start());
    let statistics = Statistics::with_clock(clock.clone());
    for (window, seconds) in [
        (Window::Minute, 60),
        (Window::FiveMinutes, 300),
        (Window::Quarter, 900),
        (Window::Hour, 3_600),
    ] {
        let query = Query {
            window,
            ..Query::default()
        };
        let period = summary(&statistics, &query).scope.period;
        let (Some(Moment(from)), Some(Moment(to))) = (period.from, period.to) else {
            panic!("no edges");
        };
        assert_eq!(to, from + Duration::from_secs(seconds));
        let since = to.duration_since(SystemTime::UNIX_EPOCH).expect("after");
        assert_eq!(since.as_nanos() % BUCKET.as_nanos(), 0);
    }
}

#[test]
fn an_exchange_leaves_a_window_when_its_bucket_does() {
    let clock = Clock::by_hand(start());
    let statistics = Statistics::with_clock(clock.clone());
    happen(
        &statistics,
        &clock,
        vec![(Duration::ZERO, recorded(vec![record(&[1, 2])]))],
    );
    let query = Query {
        window: Window::Minute,
        ..Query::default()
    };
    let count = || summary(&statistics, &query).n.exchanges;
    assert_eq!(count(), 1);
    clock.advance(Duration::from_secs(55));
    assert_eq!(count(), 1);
    clock.advance(BUCKET);
    assert_eq!(count(), 0);
}

#[test]
fn a_window_begins_where_exchanges_are_still_kept_and_a_run_keeps_them_all() {
    let clock = Clock::by_hand(start());
    let statistics = Statistics::with_log(clock.clone(), 2_000);
    let exchanges = (0..200).map(|_| {
        let mut exchange = recorded(vec![record(&[1, 2])]);
        exchange.run = Some("r".into());
        (Duration::from_secs(1), exchange)
    });
    let exchanges = happen(&statistics, &clock, exchanges.collect());
    let of = |window, run: Option<&str>| {
        let query = Query {
            window,
            run: run.map(str::to_owned),
            ..Query::default()
        };
        summary(&statistics, &query)
    };
    let hour = of(Window::Hour, None);
    let Some(Moment(from)) = hour.scope.period.from else {
        panic!("no edge");
    };
    assert!(from > exchanges[0].ended_at, "nothing has left the log");
    let inside = exchanges.iter().filter(|it| it.ended_at >= from).count();
    assert!(inside > 0);
    assert_eq!(hour.n.exchanges, inside as u64);
    assert_eq!(of(Window::All, Some("r")).n.exchanges, 200);
    assert_eq!(of(Window::All, Some("s")).n.exchanges, 0);
}

#[test]
fn bands_of_a_facet_stand_in_their_natural_order() {
    let exchanges = [1_000, 200, 100, 5_000].map(|tokens| {
        let mut exchange = observation();
        exchange.usage.prompt_tokens = Some(tokens);
        exchange
    });
    let query = Query {
        by: vec![By::Prompt],
        ..Query::default()
    };
    let summary = summary(&statistics(exchanges), &query);
    let bands = summary
        .groups
        .iter()
        .map(|group| group.key[&By::Prompt].as_deref());
    assert_eq!(
        bands.collect::<Vec<_>>(),
        ["up_to_128", "up_to_256", "up_to_1024", "up_to_8192"].map(Some)
    );
}

#[test]
fn figures_by_facet_are_bounded_and_the_rest_is_counted() {
    let statistics = Statistics::with_log(Clock::by_hand(start()), 1_000);
    for model in 0..100 {
        for tag in 0..50 {
            let mut exchange = recorded(vec![record(&[1, 2])]);
            exchange.model = Some(format!("model {model}"));
            exchange.tag = Some(format!("tag {tag}"));
            statistics.record(Arc::new(exchange));
        }
    }
    let query = Query {
        by: vec![By::Stream],
        ..Query::default()
    };
    let summary = summary(&statistics, &query);
    assert_eq!(summary.n.exchanges, 5_000);
    assert_eq!(summary.n.recorded, 5_000);
    let folded = summary
        .findings
        .iter()
        .find(|it| it.code == "groups_folded");
    assert!(folded.expect("a finding").n > 0);
    assert!(snapshot(&statistics, &query).groups.len() <= 6_000);
}
