//! Exchanges on their way from the log to the cells are counted once, whoever brings them there.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::*;
use crate::clock::Clock;
use crate::observation::ObservationSink;
use crate::stats::tests::{observation, record};
use crate::stats::{Facet, Selection, Statistics};

fn exchange(number: u64) -> Arc<Observation> {
    let mut exchange = observation(vec![record()]);
    exchange.started_at += Duration::from_micros(number);
    exchange.in_flight = number % 40;
    Arc::new(exchange)
}

/// Exchanges, counted by a facet.
fn counted(statistics: &Statistics) -> u64 {
    let selection = Selection {
        facet: Some(Facet::Concurrency),
        ..Selection::default()
    };
    let selected = statistics.select(&selection, |_| true);
    let groups = selected.groups.iter();
    groups
        .flat_map(|group| group.figures.exchanges.values())
        .sum()
}

#[test]
fn whoever_reads_meanwhile_misses_no_exchange_and_sees_none_twice() {
    const EACH: u64 = 2_000;
    let statistics = Statistics::with_log(Clock::system(), 4_000);
    let (begun, done) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..EACH {
                    let number = begun.fetch_add(1, Ordering::SeqCst);
                    statistics.record(exchange(number));
                    done.fetch_add(1, Ordering::SeqCst);
                }
            });
            scope.spawn(|| {
                while done.load(Ordering::SeqCst) < 2 * EACH {
                    let least = done.load(Ordering::SeqCst);
                    let seen = counted(&statistics);
                    let most = begun.load(Ordering::SeqCst);
                    assert!((least..=most).contains(&seen), "{least} {seen} {most}");
                }
            });
        }
    });
    assert_eq!(counted(&statistics), 2 * EACH);
    let cells = &statistics.shared.settled().cells;
    assert!(cells.iter().count() > 10, "nothing had left the log");
}

#[test]
fn what_waits_is_worked_off_without_a_reader() {
    let statistics = Statistics::with_log(Clock::system(), 8);
    for number in 0..8_000 {
        statistics.record(exchange(number));
    }
    let deadline = Instant::now() + Duration::from_secs(60);
    while statistics.shared.state().log.surplus() >= WORTH_IT {
        assert!(Instant::now() < deadline, "nobody works it off");
        thread::yield_now();
    }
    assert!(statistics.shared.settled().cells.iter().count() > 0);
}

#[test]
fn without_a_thread_and_with_too_much_waiting_the_data_path_works_it_off_itself() {
    for (settler, backlog) in [
        (Settler::default(), Backlog::TooMuch),
        (
            Settler {
                wake: OnceLock::from(None),
            },
            Backlog::Due,
        ),
    ] {
        let statistics = Statistics::with_log(Clock::system(), 8);
        for number in 0..10 {
            statistics.record(exchange(number));
        }
        let waits = || statistics.shared.state().log.surplus() > 0;
        assert!(waits());
        settler.work_off(Backlog::Small, &statistics.shared);
        assert!(waits());
        settler.work_off(backlog, &statistics.shared);
        assert!(!waits());
    }
}

#[test]
fn a_group_with_too_many_exchanges_gives_them_up_and_loses_none() {
    let statistics = Statistics::with_log(Clock::system(), 8 << 20);
    let n = crate::stats::interval::MOST_SAMPLES as u64;
    for number in 0..n {
        statistics.record(exchange(number));
    }
    let only = || statistics.groups(|_| true).remove(0).1;
    let exact = |group: &crate::stats::Group| {
        let columns = [crate::stats::RecordColumn::Steps];
        let mut steps = group.records(crate::stats::ViewName::Aiperf, &columns);
        steps.remove(0).statistic().map(|it| (it.count, it.exact))
    };
    assert_eq!(exact(&only()), Some((n, true)));
    statistics.record(exchange(n));
    assert_eq!(exact(&only()), Some((n + 1, false)));
    assert_eq!(only().aiperf.pooled.records, n + 1);
}
