//! Cells keep to their bounds, and whatever folds, no exchange is lost.

use std::time::Duration;

use super::*;
use crate::observation::{Observation, Route};
use crate::stats::GroupKey;
use crate::stats::keys::Numbers;
use crate::stats::tests::{observation, record};

const GROUPS: u64 = 200;

fn exchange(number: u64) -> Observation {
    let mut exchange = observation(vec![record()]);
    exchange.started_at += Duration::from_micros(number);
    exchange.in_flight = 1 + number % 5;
    exchange
}

/// Counts exchanges of so many groups in cells of one facet; after each, `check` may look.
fn counted(cells: &mut Cells, exchanges: u64, mut check: impl FnMut(&Cells)) -> (Keys, Vec<u32>) {
    let (mut keys, mut numbers) = (Keys::new(), Numbers::new());
    let groups: Vec<u32> = (0..GROUPS)
        .map(|model| {
            let key = GroupKey {
                engine: None,
                model: Some(format!("model {model}")),
                tag: None,
                route: Route::Completions,
            };
            keys.number(&key, &mut numbers)
        })
        .collect();
    for number in 0..exchanges {
        let exchange = exchange(number);
        // Some groups have far more than others.
        let group = groups[(number * number % 7_919 % GROUPS) as usize];
        let key = CellKey {
            run: None,
            facet: Some(Facet::Concurrency.of(&exchange)),
            group,
        };
        cells.add(key, &Prepared::new(&exchange), &keys);
        check(cells);
    }
    (keys, groups)
}

fn exchanges(cells: &Cells) -> u64 {
    let cells = cells.cells.values();
    cells.flat_map(|cell| cell.exchanges.values()).sum()
}

fn bytes(cells: &Cells) -> usize {
    cells.cells.values().map(|cell| cell.bytes()).sum()
}

#[test]
fn they_keep_to_their_room_and_lose_no_exchange() {
    const MOST_BYTES: usize = 300 << 10;
    let mut cells = Cells::new(5_000, MOST_BYTES);
    let mut most = 0;
    counted(&mut cells, 20_000, |cells| most = most.max(bytes(cells)));
    assert_eq!(bytes(&cells), cells.room.taken());
    assert!(most <= MOST_BYTES + 1_000, "{most} bytes");
    assert_eq!(exchanges(&cells), 20_000);
    assert!(cells.folded(Some(Facet::Concurrency)) > 0);
    assert_eq!(cells.folded(None), 0);
    // Without the bound it would have taken all of them.
    let mut unbounded = Cells::new(5_000, usize::MAX);
    counted(&mut unbounded, 20_000, |_| {});
    assert!(bytes(&unbounded) > MOST_BYTES + MOST_BYTES / 5);
    assert_eq!(unbounded.folded(Some(Facet::Concurrency)), 0);
}

#[test]
fn with_room_enough_nothing_folds_and_nothing_is_given_up() {
    let mut cells = Cells::new(5_000, 8 << 20);
    counted(&mut cells, 5_000, |_| {});
    assert_eq!(cells.folded(Some(Facet::Concurrency)), 0);
    assert!(cells.cells.values().all(|cell| cell.sketches.is_none()));
}

#[test]
fn more_cells_than_are_told_apart_fold_into_coarser_ones() {
    let mut cells = Cells::new(50, usize::MAX);
    counted(&mut cells, 5_000, |_| {});
    assert!(cells.cells.len() <= 60 + 5, "{} cells", cells.cells.len());
    assert_eq!(exchanges(&cells), 5_000);
    assert!(cells.folded(Some(Facet::Concurrency)) > 4_000);
}

#[test]
fn cells_of_forgotten_runs_become_cells_of_no_run() {
    let mut cells = Cells::new(50, usize::MAX);
    let keys = Keys::new();
    for run in 0..4 {
        let key = CellKey {
            run: Some(run),
            facet: None,
            group: CATCH_ALL,
        };
        cells.add(key, &Prepared::new(&exchange(u64::from(run))), &keys);
    }
    cells.forget_runs_before(2, &keys);
    let runs: Vec<Option<u32>> = cells.cells.keys().map(|key| key.run).collect();
    assert_eq!(runs, [None, Some(2), Some(3)]);
    assert_eq!(exchanges(&cells), 4);
    assert_eq!(bytes(&cells), cells.room.taken());
}
