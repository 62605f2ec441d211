//! The ring's bounds, its listing and its paging.

use std::sync::Arc;

use proptest::prelude::*;
use ulid::Ulid;

use super::*;
use crate::observation::{Acceptance, Observation, ObservationSink, Outcome};

/// An id that tells its number.
fn id(number: u128) -> String {
    Ulid::from(number).to_string()
}

pub(super) fn observation(number: u128) -> Observation {
    serde_json::from_value(serde_json::json!({
        "id": id(number), "request_id": null, "x_request_id": null, "trace_id": null,
        "started_at": "2026-12-01T09:00:00Z", "ended_at": "2026-12-01T09:00:01Z",
        "lane": "127.0.0.1:8090", "route": "chat_completions", "model": "m", "tag": null, "run": null,
        "stream": true, "n": 1, "prompts": 1, "stream_options_asked": null, "in_flight": 1, "status": 200,
        "outcome": "complete", "acceptance": "recorded", "reason": null, "finish_reasons": ["stop"],
        "facets": {"temperature": "default", "format": "none"},
        "usage": {"prompt_tokens": 1, "completion_tokens": 2, "cached_tokens": null, "reasoning_tokens": null},
        "timing": {"time_to_first_byte_ms": null, "time_to_first_token_ms": null, "inter_token_latency_ms": null,
            "inter_chunk_latency_ms": null, "request_latency_ms": 1.0, "upstream_connect_ms": null},
        "engine_metrics": {}, "content_chunks": 1,
        "spec_decode_acceptance": [{"engine": "vllm", "provenance": "histogram", "mean_acceptance_length": 2.0,
            "draft_acceptance_rate": 0.5, "acceptance_histogram": {"1": 4}, "num_accepted_draft_tokens": 4,
            "num_draft_tokens": 8, "num_spec_steps": 4}]
    }))
    .unwrap()
}

fn with_steps(number: u128, steps: usize) -> Observation {
    let mut observation = observation(number);
    observation.spec_decode_acceptance[0].per_step_accepted = Some(vec![1; steps]);
    observation
}

fn filled(ring: &ObservationRing, observations: impl IntoIterator<Item = Observation>) {
    for observation in observations {
        ring.record(Arc::new(observation));
    }
}

fn ids(page: &Page) -> Vec<String> {
    page.requests.iter().map(|it| it.id.clone()).collect()
}

fn listed(ring: &ObservationRing, query: &ListQuery) -> Vec<String> {
    ids(&ring.list(query).unwrap())
}

/// Walks all pages, and lets `between` happen after each.
fn walked(ring: &ObservationRing, mut query: ListQuery, mut between: impl FnMut()) -> Vec<String> {
    let mut all = Vec::new();
    loop {
        let page = ring.list(&query).unwrap();
        all.extend(ids(&page));
        between();
        match page.next {
            Some(next) => query.after = Some(next),
            None => return all,
        }
    }
}

#[test]
fn the_newest_are_kept_and_the_rest_is_counted() {
    let ring = ObservationRing::with_bounds(3, MOST_BYTES);
    filled(&ring, (0..5).map(observation));
    let page = ring.list(&ListQuery::default()).unwrap();
    assert_eq!(ids(&page), [id(4), id(3), id(2)]);
    assert_eq!((page.dropped, ring.len(), page.next), (2, 3, None));
    assert!(ring.get(&id(1)).is_none());
    assert_eq!(ring.get(&id(2)).unwrap().id, id(2));
}

#[test]
fn the_usual_bound_is_twenty_thousand() {
    let ring = ObservationRing::new();
    let one = observation(0);
    for number in 0..MOST_OBSERVATIONS as u128 + 5 {
        let mut observation = one.clone();
        observation.id = id(number);
        ring.record(Arc::new(observation));
    }
    assert_eq!((ring.len(), ring.dropped()), (MOST_OBSERVATIONS, 5));
    assert!(ring.bytes() <= MOST_BYTES);
}

#[test]
fn when_bytes_run_out_the_oldest_per_step_arrays_go_before_any_observation() {
    let small = ObservationRing::new();
    filled(&small, (0..4).map(observation));
    let room = small.bytes() + 2 * 1000 * size_of::<u64>();
    let ring = ObservationRing::with_bounds(100, room);
    filled(&ring, (0..4).map(|number| with_steps(number, 1000)));
    let kept = |number| {
        ring.get(&id(number)).unwrap().spec_decode_acceptance[0]
            .per_step_accepted
            .is_some()
    };
    assert_eq!([0, 1, 2, 3].map(kept), [false, false, true, true]);
    assert_eq!(
        (ring.per_step_dropped(), ring.dropped(), ring.len()),
        (2, 0, 4)
    );
    assert!(ring.bytes() <= room);
}

#[test]
fn a_reader_keeps_the_arrays_of_what_it_holds() {
    let ring = ObservationRing::with_bounds(100, 10_000);
    filled(&ring, [with_steps(0, 500)]);
    let held = ring.get(&id(0)).unwrap();
    filled(&ring, [with_steps(1, 1000)]);
    assert!(held.spec_decode_acceptance[0].per_step_accepted.is_some());
    let now = ring.get(&id(0)).unwrap();
    assert!(now.spec_decode_acceptance[0].per_step_accepted.is_none());
}

#[test]
fn an_observation_larger_than_the_whole_room_is_let_go_and_counted() {
    let ring = ObservationRing::with_bounds(100, 100);
    filled(&ring, [with_steps(0, 10)]);
    assert_eq!((ring.len(), ring.bytes(), ring.dropped()), (0, 0, 1));
    assert!(ring.is_empty());
    assert!(
        ring.list(&ListQuery::default())
            .unwrap()
            .requests
            .is_empty()
    );
}

#[test]
fn filters_leave_only_what_they_name() {
    let ring = ObservationRing::new();
    filled(
        &ring,
        (0..6).map(|number| {
            let mut it = observation(number);
            it.model = Some(if number % 2 == 0 { "even" } else { "odd" }.to_owned());
            it.tag = (number > 2).then(|| "late".to_owned());
            if number == 5 {
                it.outcome = Outcome::Cancelled;
                it.acceptance = Some(Acceptance::Absent);
            }
            it
        }),
    );
    let query = ListQuery {
        model: Some("odd".into()),
        ..ListQuery::default()
    };
    assert_eq!(listed(&ring, &query), [id(5), id(3), id(1)]);
    let query = ListQuery {
        tag: Some("late".into()),
        ..query
    };
    assert_eq!(listed(&ring, &query), [id(5), id(3)]);
    let query = ListQuery {
        outcome: Some(Outcome::Complete),
        ..query
    };
    assert_eq!(listed(&ring, &query), [id(3)]);
    let query = ListQuery {
        acceptance: Some(Acceptance::Absent),
        ..ListQuery::default()
    };
    assert_eq!(listed(&ring, &query), [id(5)]);
}

#[test]
fn the_slowest_and_the_shortest_come_first_and_those_without_a_value_last() {
    let ring = ObservationRing::new();
    filled(
        &ring,
        [3.0, 9.0, f64::NAN, 5.0]
            .into_iter()
            .enumerate()
            .map(|(number, value)| {
                let mut it = observation(number as u128);
                if value.is_nan() {
                    it.timing.request_latency_ms = None;
                    it.spec_decode_acceptance.clear();
                } else {
                    it.timing.request_latency_ms = Some(value);
                    it.spec_decode_acceptance[0].num_accepted_draft_tokens = value as u64;
                }
                it
            }),
    );
    let by = |sort| {
        listed(
            &ring,
            &ListQuery {
                sort,
                ..ListQuery::default()
            },
        )
    };
    assert_eq!(by(Sort::Latency), [id(1), id(3), id(0), id(2)]);
    assert_eq!(by(Sort::Length), [id(0), id(3), id(1), id(2)]);
    assert_eq!(by(Sort::Newest), [id(3), id(2), id(1), id(0)]);
}

#[test]
fn a_walk_lists_each_observation_once_while_new_ones_arrive_and_old_ones_go() {
    for sort in [Sort::Newest, Sort::Latency, Sort::Length] {
        let ring = ObservationRing::with_bounds(1500, MOST_BYTES);
        filled(&ring, (0..1000).map(observation));
        let mut next = 1000;
        let query = ListQuery {
            limit: Some(70),
            sort,
            ..ListQuery::default()
        };
        let all = walked(&ring, query, || {
            filled(&ring, (next..next + 20).map(observation));
            next += 20;
        });
        let mut unique = all.clone();
        unique.sort();
        unique.dedup();
        assert_eq!(unique.len(), all.len(), "{sort:?}");
        for number in 0..1000 {
            assert!(all.contains(&id(number)), "{sort:?} {number}");
        }
    }
}

#[test]
fn nothing_follows_a_cursor_that_is_gone_and_a_sorted_page_says_so() {
    let ring = ObservationRing::with_bounds(2, MOST_BYTES);
    filled(&ring, (0..4).map(observation));
    let query = ListQuery {
        after: Some(id(0)),
        ..ListQuery::default()
    };
    let page = ring.list(&query).unwrap();
    assert_eq!((page.requests.len(), page.next), (0, None));
    let query = ListQuery {
        sort: Sort::Latency,
        ..query
    };
    assert_eq!(ring.list(&query).unwrap_err(), StaleCursor);
}

#[test]
fn threads_that_record_and_list_at_once_lose_nothing() {
    let ring = ObservationRing::with_bounds(500, MOST_BYTES);
    std::thread::scope(|scope| {
        for thread in 0..3_u128 {
            let ring = &ring;
            scope.spawn(move || filled(ring, (0..400).map(|it| observation(thread * 1000 + it))));
        }
        for _ in 0..50 {
            let _ = ring.list(&ListQuery::default()).unwrap();
        }
    });
    assert_eq!((ring.len(), ring.dropped()), (500, 700));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn the_bounds_hold_whatever_comes(
        sizes in proptest::collection::vec(0_usize..400, 0..60),
        most in 1_usize..20,
        room in 500_usize..40_000,
    ) {
        let ring = ObservationRing::with_bounds(most, room);
        for (number, steps) in sizes.iter().enumerate() {
            filled(&ring, [with_steps(number as u128, *steps)]);
            prop_assert!(ring.len() <= most && ring.bytes() <= room);
            prop_assert_eq!(ring.len() as u64 + ring.dropped(), number as u64 + 1);
        }
        let kept = walked(&ring, ListQuery { limit: Some(3), ..ListQuery::default() }, || ());
        let expected: Vec<_> = (0..sizes.len()).rev().take(ring.len()).map(|it| id(it as u128)).collect();
        prop_assert_eq!(kept, expected);
    }
}
