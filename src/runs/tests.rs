//! When a run begins, by whom, and when it does not.

use std::time::Duration;

use super::watch::{ALTERNATES_AFTER, GONE_AFTER};
use super::*;

fn start() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000)
}

fn exchange(run: &str) -> Observation {
    serde_json::from_value(serde_json::json!({
        "id": "", "request_id": null, "x_request_id": null, "trace_id": null,
        "started_at": "2026-12-01T09:00:00.000000Z", "ended_at": "2026-12-01T09:00:00.109000Z",
        "lane": "127.0.0.1:8090", "route": "chat_completions", "model": "m", "tag": null, "run": run,
        "stream": true, "n": 1, "prompts": 1, "stream_options_asked": null, "in_flight": 1, "status": 200,
        "outcome": "complete", "acceptance": "recorded", "reason": null, "finish_reasons": ["length"],
        "facets": {"temperature": "0", "format": "none"},
        "usage": {"prompt_tokens": null, "completion_tokens": null, "cached_tokens": null, "reasoning_tokens": null},
        "timing": {}, "engine_metrics": {}, "content_chunks": 12,
        "spec_decode_acceptance": [{"engine": "vllm", "provenance": "histogram",
            "mean_acceptance_length": 1.0, "draft_acceptance_rate": 0.0, "acceptance_histogram": {"0": 1},
            "num_accepted_draft_tokens": 0, "num_draft_tokens": 4, "num_spec_steps": 1, "num_spec_tokens": 4}]
    }))
    .unwrap()
}

/// An exchange whose engine drafts k tokens.
fn with_k(runs: &Runs, k: u64) -> Observation {
    let mut observation = exchange(&runs.current());
    observation.spec_decode_acceptance[0].num_spec_tokens = Some(k);
    observation
}

fn names(runs: &Runs) -> Vec<String> {
    let newest_first = runs.list();
    newest_first
        .iter()
        .map(|run| run.name.to_string())
        .collect()
}

#[test]
fn the_first_run_begins_with_the_process_and_the_next_ends_it() {
    let clock = Clock::by_hand(start());
    let runs = Runs::new(clock.clone());
    assert_eq!(&*runs.current(), "2023-11-14T22:13:20Z");
    clock.advance(Duration::from_secs(60));
    let asked = runs.begin(Some("k = 8")).unwrap();
    assert_eq!((asked.why, asked.ended_at), (Why::Asked, None));
    let [second, first] = runs.list().try_into().unwrap();
    assert_eq!(second, asked);
    assert_eq!(first.why, Why::Started);
    assert_eq!(first.started_at, start());
    assert_eq!(first.ended_at, Some(second.started_at));
    assert_eq!(second.started_at, start() + Duration::from_secs(60));
}

#[test]
fn a_name_is_short_printable_and_nobody_elses() {
    let runs = Runs::new(Clock::by_hand(start()));
    for wrong in ["", "a\nb", &"x".repeat(LONGEST_RUN_NAME + 1)] {
        assert_eq!(runs.begin(Some(wrong)), Err(RunError::Name), "{wrong:?}");
    }
    assert!(runs.begin(Some(&"x".repeat(LONGEST_RUN_NAME))).is_ok());
    assert!(runs.begin(Some("größer")).is_ok());
    assert_eq!(runs.begin(Some("größer")), Err(RunError::Taken));
    assert_eq!(&*runs.current(), "größer");
}

#[test]
fn runs_without_a_name_in_one_second_get_different_ones() {
    let runs = Runs::new(Clock::by_hand(start()));
    runs.begin(None).unwrap();
    runs.begin(None).unwrap();
    let time = "2023-11-14T22:13:20Z";
    assert_eq!(
        names(&runs),
        [format!("{time}-3"), format!("{time}-2"), time.to_owned()]
    );
}

#[test]
fn the_oldest_runs_go() {
    let runs = Runs::new(Clock::by_hand(start()));
    for number in 0..MOST_RUNS {
        runs.begin(Some(&number.to_string())).unwrap();
    }
    let names = names(&runs);
    assert_eq!(names.len(), MOST_RUNS);
    assert_eq!((names[0].as_str(), names[99].as_str()), ("99", "0"));
}

#[test]
fn an_exchange_counts_in_the_run_in_which_it_arrived() {
    let runs = Runs::new(Clock::by_hand(start()));
    let early = exchange(&runs.current());
    runs.begin(Some("next")).unwrap();
    runs.ended(&early, None);
    runs.ended(&exchange("next"), None);
    let mut refused = exchange("next");
    refused.status = Some(400);
    runs.ended(&refused, None);
    let counts: Vec<u64> = runs.list().iter().map(|run| run.n).collect();
    assert_eq!(counts, [1, 1]);
}

#[test]
fn a_value_that_changed_for_good_begins_a_run() {
    let runs = Runs::new(Clock::by_hand(start()));
    runs.ended(&with_k(&runs, 4), None);
    for _ in 1..GONE_AFTER {
        runs.ended(&with_k(&runs, 8), None);
    }
    assert_eq!(runs.list().len(), 1);
    runs.ended(&with_k(&runs, 8), None);
    let begun = &runs.list()[0];
    assert_eq!(begun.why, Why::EngineChanged);
    assert_eq!(
        begun.change.as_deref(),
        Some("k from 4 to 8 on 127.0.0.1:8090")
    );
    for _ in 0..2 * GONE_AFTER {
        runs.ended(&with_k(&runs, 8), None);
    }
    assert_eq!(runs.list().len(), 2);
    assert_eq!(runs.alternations(), []);
}

#[test]
fn models_with_different_k_behind_one_engine_are_no_alternation_and_each_is_watched() {
    let runs = Runs::new(Clock::by_hand(start()));
    let of = |model: &str, k: u64| Observation {
        model: Some(model.to_owned()),
        ..with_k(&runs, k)
    };
    for _ in 0..10 * ALTERNATES_AFTER {
        runs.ended(&of("small", 3), None);
        runs.ended(&of("large", 5), None);
    }
    assert_eq!(runs.alternations(), []);
    assert_eq!(runs.list().len(), 1);
    for _ in 0..GONE_AFTER {
        runs.ended(&of("small", 3), None);
        runs.ended(&of("large", 6), None);
    }
    let change = runs.list()[0].change.clone().unwrap();
    assert_eq!(change, "k from 5 to 6 on 127.0.0.1:8090");
}

#[test]
fn a_fingerprint_that_changed_begins_a_run_and_its_absence_says_nothing() {
    let runs = Runs::new(Clock::by_hand(start()));
    runs.ended(&with_k(&runs, 4), Some("vllm-0.31.0"));
    for _ in 0..2 * GONE_AFTER {
        runs.ended(&with_k(&runs, 4), None);
    }
    assert_eq!(runs.list().len(), 1);
    for _ in 0..GONE_AFTER {
        runs.ended(&with_k(&runs, 4), Some("vllm-0.32.0"));
    }
    assert_eq!(runs.list()[0].why, Why::EngineChanged);
}

#[test]
fn values_by_turns_are_several_engines_and_begin_no_run() {
    let runs = Runs::new(Clock::by_hand(start()));
    for _ in 0..200 {
        runs.ended(&with_k(&runs, 4), None);
        runs.ended(&with_k(&runs, 8), None);
    }
    assert_eq!(runs.list().len(), 1);
    let [found] = runs.alternations().try_into().unwrap();
    assert_eq!(found.property, Property::K);
    assert_eq!(found.values, ["4", "8"]);
    assert_eq!(found.n, 199);
}

#[test]
fn a_few_stragglers_of_the_old_engine_are_no_alternation() {
    let runs = Runs::new(Clock::by_hand(start()));
    for _ in 0..GONE_AFTER {
        runs.ended(&with_k(&runs, 8), None);
    }
    for _ in 0..ALTERNATES_AFTER - 1 {
        runs.ended(&with_k(&runs, 4), None);
        runs.ended(&with_k(&runs, 8), None);
    }
    assert_eq!(runs.alternations(), []);
    runs.ended(&with_k(&runs, 4), None);
    runs.ended(&with_k(&runs, 8), None);
    assert_eq!(runs.alternations().len(), 1);
    for _ in 0..100 {
        runs.ended(&with_k(&runs, 8), None);
    }
    assert_eq!(runs.alternations(), []);
}

#[test]
fn a_value_that_is_new_each_time_says_nothing() {
    let runs = Runs::new(Clock::by_hand(start()));
    for number in 0..200 {
        runs.ended(&with_k(&runs, 4), Some(&format!("fp_{number}")));
    }
    assert_eq!(runs.list().len(), 1);
    assert_eq!(runs.alternations(), []);
}
