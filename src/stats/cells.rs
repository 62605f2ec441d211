//! Groups by run and facet, bounded: beyond the bound a new one folds into a coarser one, and that is counted.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::Group;
use super::facet::{Facet, FacetValue};
use super::group::THINNED;
use super::keys::{CATCH_ALL, Keys};
use super::pooled::grow;
use super::prepared::Prepared;
use super::room::Room;

/// What the exchanges of a cell have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CellKey {
    /// Number of the run; none: of no run that is still told apart.
    pub(super) run: Option<u32>,
    /// A facet's value; none: whatever the facets.
    pub(super) facet: Option<FacetValue>,
    /// Number of the group's key.
    pub(super) group: u32,
}

/// The cells. A copy of one shares what it holds.
#[derive(Debug)]
pub(super) struct Cells {
    cells: BTreeMap<CellKey, Arc<Group>>,
    most: usize,
    room: Room,
    /// Exchanges that were counted in a coarser cell than their own, by facet.
    folded: BTreeMap<Option<Facet>, u64>,
}

impl Cells {
    /// No cells yet; `most` of them are told apart, and their exchanges may take so many bytes.
    pub(super) fn new(most: usize, most_bytes: usize) -> Self {
        Self {
            cells: BTreeMap::new(),
            most,
            room: Room::new(most_bytes),
            folded: BTreeMap::new(),
        }
    }

    /// Counts an exchange in its cell.
    pub(super) fn add(&mut self, key: CellKey, exchange: &Prepared<'_>, keys: &Keys) {
        self.change(key, keys, |cell| cell.add(exchange));
    }

    /// Counts in a cell what another one holds.
    pub(super) fn merge(&mut self, key: CellKey, other: &Group, keys: &Keys) {
        self.change(key, keys, |cell| cell.merge(other));
    }

    fn change(&mut self, key: CellKey, keys: &Keys, change: impl FnOnce(&mut Group)) {
        let key = if self.has_room(key, self.most) {
            key
        } else {
            let facet = key.facet.map(FacetValue::facet);
            grow(self.folded.entry(facet).or_default(), 1);
            self.coarser(key, keys)
        };
        self.put(key, change);
        if self.room.is_over() {
            self.make_room(keys);
        }
    }

    fn put(&mut self, key: CellKey, change: impl FnOnce(&mut Group)) {
        let cell = Arc::make_mut(self.cells.entry(key).or_default());
        let before = cell.bytes();
        change(cell);
        if cell.is_overfull() {
            cell.take_over(cell.condensed(THINNED));
        }
        self.room.change(before, cell.bytes());
    }

    // First models and tags fold together; where even that gives too many, all but the facet does, which is few.
    fn coarser(&self, key: CellKey, keys: &Keys) -> CellKey {
        let folded = CellKey {
            group: keys.coarser(key.group),
            ..key
        };
        if self.has_room(folded, self.most + self.most / 5) {
            return folded;
        }
        CellKey {
            run: None,
            facet: key.facet,
            group: CATCH_ALL,
        }
    }

    fn has_room(&self, key: CellKey, most: usize) -> bool {
        self.cells.len() < most || self.cells.contains_key(&key)
    }

    /// The largest cells give up their exchanges, and the smallest ones fold together, until there is room again.
    fn make_room(&mut self, keys: &Keys) {
        self.condense();
        if !self.room.is_enough(0) {
            self.fold(keys);
        }
        self.room.settle();
    }

    fn condense(&mut self) {
        let mut cells: Vec<&mut Arc<Group>> = self.cells.values_mut().collect();
        cells.sort_by_cached_key(|cell| Reverse(cell.bytes()));
        for cell in cells {
            if self.room.is_enough(0) {
                break;
            }
            condense(cell, &mut self.room);
        }
    }

    fn fold(&mut self, keys: &Keys) {
        let mut cells: Vec<(u64, CellKey)> = self
            .cells
            .iter()
            .filter(|(key, _)| key.group != keys.coarser(key.group))
            .map(|(key, cell)| (cell.exchanges.values().sum(), *key))
            .collect();
        cells.sort_unstable();
        for (exchanges, key) in cells {
            if self.room.is_enough(0) {
                break;
            }
            let Some(cell) = self.cells.remove(&key) else {
                continue;
            };
            let facet = key.facet.map(FacetValue::facet);
            grow(self.folded.entry(facet).or_default(), exchanges);
            self.room.change(cell.bytes(), 0);
            let coarser = CellKey {
                group: keys.coarser(key.group),
                ..key
            };
            self.put(coarser, |into| into.merge(&cell));
            // Only there is room won.
            if let Some(into) = self.cells.get_mut(&coarser) {
                condense(into, &mut self.room);
            }
        }
        // From now on no more are told apart than there was room for.
        self.most = self.most.min(self.cells.len());
    }

    /// Exchanges that were counted by this facet in a coarser cell than their own.
    pub(super) fn folded(&self, facet: Option<Facet>) -> u64 {
        self.folded.get(&facet).copied().unwrap_or(0)
    }

    /// The cells.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&CellKey, &Arc<Group>)> {
        self.cells.iter()
    }

    /// The cells.
    pub(super) fn into_groups(self) -> impl Iterator<Item = (CellKey, Group)> {
        let cells = self.cells.into_iter();
        cells.map(|(key, cell)| (key, Arc::unwrap_or_clone(cell)))
    }

    /// Turns the cells of runs before this one into cells of no run.
    pub(super) fn forget_runs_before(&mut self, oldest: u32, keys: &Keys) {
        let is_older = |key: &&CellKey| key.run.is_some_and(|run| run < oldest);
        let older: Vec<CellKey> = self.cells.keys().filter(is_older).copied().collect();
        for key in older {
            if let Some(cell) = self.cells.remove(&key) {
                self.room.change(cell.bytes(), 0);
                self.merge(CellKey { run: None, ..key }, &cell, keys);
            }
        }
    }
}

/// A cell gives up exchanges, where that wins room.
fn condense(cell: &mut Arc<Group>, room: &mut Room) {
    if let Some((kept, _)) = cell.would_keep() {
        let cell = Arc::make_mut(cell);
        let before = cell.bytes();
        cell.take_over(cell.condensed(kept));
        room.change(before, cell.bytes());
    }
}

#[cfg(test)]
mod tests;
