//! Groups by run and facet, bounded: beyond the bound a new one folds into a coarser one, and that is counted.

use std::collections::BTreeMap;

use super::facet::FacetValue;
use super::{Group, GroupKey, OTHER};
use crate::observation::Route;

/// What the exchanges of a cell have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CellKey {
    /// Number of the run; none: of no run that is still told apart.
    pub(super) run: Option<u32>,
    /// A facet's value; none: whatever the facets.
    pub(super) facet: Option<FacetValue>,
    pub(super) group: GroupKey,
}

/// The cells.
#[derive(Debug)]
pub(super) struct Cells {
    cells: BTreeMap<CellKey, Group>,
    most: usize,
    folded: u64,
}

impl Cells {
    /// No cells yet; `most` of them are told apart.
    pub(super) fn new(most: usize) -> Self {
        Self {
            cells: BTreeMap::new(),
            most,
            folded: 0,
        }
    }

    /// The cell to count an exchange in.
    pub(super) fn of(&mut self, key: CellKey) -> &mut Group {
        let key = self.admit(key);
        self.cells.entry(key).or_default()
    }

    // First models and tags fold together; where even that gives too many, all but the facet does, which is few.
    fn admit(&mut self, key: CellKey) -> CellKey {
        if self.has_room(&key, self.most) {
            return key;
        }
        self.folded = self.folded.saturating_add(1);
        let other = Some(OTHER.to_owned());
        let folded = CellKey {
            group: GroupKey {
                tag: key.group.tag.and(other.clone()),
                model: other.clone(),
                ..key.group
            },
            ..key
        };
        if self.has_room(&folded, self.most + self.most / 5) {
            return folded;
        }
        CellKey {
            run: None,
            facet: folded.facet,
            group: GroupKey {
                engine: None,
                model: other,
                tag: None,
                route: Route::Other,
            },
        }
    }

    fn has_room(&self, key: &CellKey, most: usize) -> bool {
        self.cells.len() < most || self.cells.contains_key(key)
    }

    /// Exchanges that were counted in a coarser cell than their own, once for each cell.
    pub(super) fn folded(&self) -> u64 {
        self.folded
    }

    /// The cells in the order of their keys.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&CellKey, &Group)> {
        self.cells.iter()
    }

    /// The cells in the order of their keys.
    pub(super) fn into_groups(self) -> impl Iterator<Item = (CellKey, Group)> {
        self.cells.into_iter()
    }

    /// Turns the cells of a run into cells of no run.
    pub(super) fn forget_run(&mut self, run: u32) {
        let keys: Vec<CellKey> = self
            .cells
            .keys()
            .filter(|key| key.run == Some(run))
            .cloned()
            .collect();
        for key in keys {
            if let Some(cell) = self.cells.remove(&key) {
                self.of(CellKey { run: None, ..key }).merge(&cell);
            }
        }
    }
}
