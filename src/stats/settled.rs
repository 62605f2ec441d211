//! What is done behind the data path: exchanges that leave the log are added up by run and by facet, so that only windows
//! lose sight of them, and groups with too many exchanges give up most of them for sketches.
//!
//! Counting an exchange takes a good deal longer than writing it down, so a thread does it that waits for work. Where that
//! can't keep up, or there is none, the data path does it itself: memory stays bounded in any case.

use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, OnceLock, Weak};
use std::thread;

use super::cells::{CellKey, Cells};
use super::facet::FacetValue;
use super::keys::Keys;
use super::log::Head;
use super::prepared::Prepared;
use super::state::State;
use super::{MOST_GROUPS, Shared};
use crate::observation::Observation;

/// Bytes that the single exchanges of all cells together may take.
const MOST_CELL_BYTES: usize = 24 << 20;

/// How much has to wait until it is worth waking the settler.
const WORTH_IT: usize = 256 << 10;

/// How much may wait.
const MOST_WAITING: usize = 8 << 20;

/// What is counted from the exchanges that left the log.
#[derive(Debug)]
pub(super) struct Settled {
    pub(super) cells: Cells,
}

/// What waits for the settler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Backlog {
    /// Nothing, or too little to bother.
    Small,
    /// Enough to wake it.
    Due,
    /// More than may wait.
    TooMuch,
}

impl State {
    pub(super) fn backlog(&self) -> Backlog {
        match self.log.surplus().max(self.room.surplus()) {
            0..WORTH_IT if self.overfull.is_empty() => Backlog::Small,
            0..MOST_WAITING => Backlog::Due,
            _ => Backlog::TooMuch,
        }
    }
}

impl Settled {
    pub(super) fn new() -> Self {
        Self {
            cells: Cells::new(MOST_GROUPS, MOST_CELL_BYTES),
        }
    }

    /// Adds up an exchange that leaves the log. Its run counts where it is told apart.
    fn add(&mut self, head: &Head, run: Option<u32>, gone: &Observation, keys: &Keys) {
        let prepared = Prepared::new(gone);
        let facets = FacetValue::all_of(gone).map(Some);
        for facet in facets.chain([None]) {
            let key = CellKey {
                run,
                facet,
                group: head.group,
            };
            self.cells.add(key, &prepared, keys);
        }
    }
}

impl Shared {
    /// Works off what waits.
    pub(super) fn settle(&self) {
        while self.settle_block() {}
        while self.condense_groups() {}
    }

    /// Adds up the oldest block if the log has too many; false where it has not.
    fn settle_block(&self) -> bool {
        let mut settled = self.settled();
        let (block, keys, oldest_run) = {
            let state = self.state();
            let Some(block) = state.log.surplus_block() else {
                return false;
            };
            (block, state.keys.clone(), state.oldest_run())
        };
        settled.cells.forget_runs_before(oldest_run, &keys);
        let every = |_: &Head| true;
        block.each(&keys, every, |head, gone| {
            let run = head.run.filter(|&run| run >= oldest_run);
            settled.add(head, run, &gone, &keys);
        });
        // A reader that comes now finds the block on one side only: it takes `settled` before it looks.
        self.state().log.pop_block();
        true
    }

    /// Lets the groups that have to give up exchanges; false where none has to.
    fn condense_groups(&self) -> bool {
        // One at a time: what is taken over must be made from what is there.
        let _settled = self.settled();
        let due = self.state().overdue();
        let any = !due.is_empty();
        for (number, group, kept) in due {
            let condensed = group.condensed(kept);
            drop(group);
            let change = |group: &mut super::Group| group.take_over(condensed);
            self.state().change(number, change);
        }
        any
    }
}

/// A thread that works off what waits. It begins when there is work for the first time, and ends with the statistics.
#[derive(Debug, Default)]
pub(super) struct Settler {
    /// Absent where no thread could be had.
    wake: OnceLock<Option<SyncSender<()>>>,
}

impl Settler {
    /// Sees to it that the backlog is worked off.
    pub(super) fn work_off(&self, backlog: Backlog, shared: &Arc<Shared>) {
        match backlog {
            Backlog::Small => {}
            Backlog::Due => match self.wake.get_or_init(|| start(shared)) {
                // Full: it is awake already.
                Some(wake) => drop(wake.try_send(())),
                None => shared.settle(),
            },
            Backlog::TooMuch => shared.settle(),
        }
    }
}

fn start(shared: &Arc<Shared>) -> Option<SyncSender<()>> {
    let (wake, woken) = mpsc::sync_channel(1);
    let shared = Arc::downgrade(shared);
    let thread = thread::Builder::new().name("settler".to_owned());
    thread.spawn(move || work(&shared, &woken)).ok()?;
    Some(wake)
}

fn work(shared: &Weak<Shared>, woken: &Receiver<()>) {
    while woken.recv().is_ok() {
        let Some(shared) = shared.upgrade() else {
            return;
        };
        shared.settle();
    }
}

#[cfg(test)]
mod tests;
