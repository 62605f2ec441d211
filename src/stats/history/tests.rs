//! The history equals what the exchanges themselves give, however it is brought up to date.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::super::tests::{observation, record};
use super::*;
use crate::clock::Clock;
use crate::observation::{Observation, ObservationSink, Outcome};

const START: u64 = 1_700_000_000;

fn at(second: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(second)
}

fn ended_at(second: u64) -> Observation {
    let mut record = record();
    record.completion_tokens = Some(11);
    Observation {
        started_at: at(second - 1),
        ended_at: at(second),
        ..observation(vec![record])
    }
}

fn shown(statistics: &Statistics, window: Window) -> Shown {
    let mut history = History::new(window, None);
    history.update(statistics, |_| true);
    history.shown()
}

#[test]
fn each_stretch_and_the_window_before_hold_what_ended_in_them() {
    let clock = Clock::by_hand(at(START + 3));
    let statistics = Statistics::with_clock(clock);
    // The window is [START − 55, START + 5), and the one before it ends where it begins.
    for second in [
        START - 116,
        START - 115,
        START - 56,
        START - 55,
        START - 51,
        START + 1,
    ] {
        statistics.record(Arc::new(ended_at(second)));
    }
    let cancelled = Observation {
        outcome: Outcome::Cancelled,
        ..ended_at(START + 2)
    };
    statistics.record(Arc::new(cancelled));
    let shown = shown(&statistics, Window::Minute);
    assert_eq!(shown.period.from, Some(Moment(at(START - 55))));
    assert_eq!(shown.period.to, Some(Moment(at(START + 5))));
    assert_eq!(shown.before.as_ref().map(|before| before.n), Some(2));
    let counted: Vec<_> = shown.stretches.iter().collect();
    let [(first, two), (last, one)] = counted.as_slice() else {
        panic!("{shown:?}");
    };
    assert_eq!((**first, **last), (START as i64 - 55, START as i64));
    assert_eq!(
        (two.n, two.steps, two.drafted, two.accepted),
        (2, 8, 32, 12)
    );
    assert_eq!((two.completion_tokens, two.accepted_in_output), (22, 12));
    assert_eq!(two.histogram, [(0, 2), (2, 6)].into());
    assert_eq!((one.exchanges, one.told, one.n), (2, 2, 1), "cancelled");
}

#[test]
fn a_history_that_is_kept_up_to_date_equals_a_new_one() {
    let clock = Clock::by_hand(at(START));
    let statistics = Statistics::with_clock(clock.clone());
    let mut kept = History::new(Window::Minute, None);
    for second in START..START + 200 {
        statistics.record(Arc::new(ended_at(second)));
        if second % 3 == 0 {
            // Counted a moment late, when its bucket was looked at already.
            statistics.record(Arc::new(ended_at(second - 2)));
        }
        kept.update(&statistics, |_| true);
        if second % 20 == 0 {
            assert_eq!(kept.shown(), shown(&statistics, Window::Minute));
        }
        clock.advance(Duration::from_secs(1));
    }
}

#[test]
fn a_history_of_all_traffic_begins_with_it_and_has_few_stretches() {
    let clock = Clock::by_hand(at(START));
    let statistics = Statistics::with_clock(clock.clone());
    for number in 0..100 {
        statistics.record(Arc::new(ended_at(START + number * 100)));
    }
    clock.advance(Duration::from_secs(10_000));
    let shown = shown(&statistics, Window::All);
    assert_eq!(shown.period.from, Some(Moment(at(START))));
    assert_eq!(shown.before, None);
    assert_eq!(shown.step_seconds, 300);
    assert_eq!(
        shown.stretches.values().map(|sums| sums.n).sum::<u64>(),
        100
    );
}

#[test]
fn where_exchanges_are_gone_the_history_begins_later_and_knows_no_window_before() {
    let clock = Clock::by_hand(at(START + 60));
    let statistics = Statistics::with_log(clock, 4 << 10);
    for number in 0..600 {
        statistics.record(Arc::new(ended_at(START - 60 + number / 5)));
    }
    statistics.settle();
    let shown = shown(&statistics, Window::Minute);
    assert_eq!(shown.before, None);
    let from = shown.period.from.unwrap();
    assert!(from > Moment(at(START + 5)), "{from:?}");
    let kept: u64 = shown.stretches.values().map(|sums| sums.n).sum();
    assert!((1..300).contains(&kept), "{kept}");
    let (first, _) = shown.stretches.first_key_value().unwrap();
    assert!(Moment(at(u64::try_from(*first).unwrap())) >= from);
}

#[test]
fn a_run_and_a_filter_narrow_it() {
    let clock = Clock::by_hand(at(START));
    let statistics = Statistics::with_clock(clock);
    for (run, model) in [("a", "m"), ("b", "m"), ("a", "other")] {
        statistics.record(Arc::new(Observation {
            run: Some(run.to_owned()),
            model: Some(model.to_owned()),
            ..ended_at(START)
        }));
    }
    let mut history = History::new(Window::All, Some("a".to_owned()));
    history.update(&statistics, |key| key.model.as_deref() == Some("m"));
    let sums = history.shown().stretches.into_values().next();
    assert_eq!(sums.map(|sums| sums.n), Some(1));
    let mut of_no_run = History::new(Window::All, Some("c".to_owned()));
    of_no_run.update(&statistics, |_| true);
    assert!(of_no_run.shown().stretches.is_empty());
}
