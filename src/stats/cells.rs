//! Groups by run and facet, bounded: beyond the bound a new one folds into a coarser one, and that is counted.

use std::collections::BTreeMap;

use super::facet::{Facet, FacetValue};
use super::keys::Keys;
use super::pooled::grow;
use super::{Group, GroupKey, OTHER};
use crate::observation::Route;

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

/// The cells.
#[derive(Debug)]
pub(super) struct Cells {
    cells: BTreeMap<CellKey, Group>,
    most: usize,
    /// Exchanges that were counted in a coarser cell than their own, by facet.
    folded: BTreeMap<Option<Facet>, u64>,
}

impl Cells {
    /// No cells yet; `most` of them are told apart.
    pub(super) fn new(most: usize) -> Self {
        Self {
            cells: BTreeMap::new(),
            most,
            folded: BTreeMap::new(),
        }
    }

    /// The cell to count an exchange in.
    pub(super) fn of(&mut self, key: CellKey, keys: &mut impl AsMut<Keys>) -> &mut Group {
        let key = if self.has_room(key, self.most) {
            key
        } else {
            let facet = key.facet.map(FacetValue::facet);
            grow(self.folded.entry(facet).or_default(), 1);
            self.coarser(key, keys.as_mut())
        };
        self.cells.entry(key).or_default()
    }

    // First models and tags fold together; where even that gives too many, all but the facet does, which is few.
    fn coarser(&self, key: CellKey, keys: &mut Keys) -> CellKey {
        let other = Some(OTHER.to_owned());
        if let Some(group) = keys.get(key.group).cloned() {
            let folded = CellKey {
                group: keys.number(&GroupKey {
                    tag: group.tag.and(other.clone()),
                    model: other.clone(),
                    ..group
                }),
                ..key
            };
            if self.has_room(folded, self.most + self.most / 5) {
                return folded;
            }
        }
        CellKey {
            run: None,
            facet: key.facet,
            group: keys.number(&GroupKey {
                engine: None,
                model: other,
                tag: None,
                route: Route::Other,
            }),
        }
    }

    fn has_room(&self, key: CellKey, most: usize) -> bool {
        self.cells.len() < most || self.cells.contains_key(&key)
    }

    /// Exchanges that were counted by this facet in a coarser cell than their own.
    pub(super) fn folded(&self, facet: Option<Facet>) -> u64 {
        self.folded.get(&facet).copied().unwrap_or(0)
    }

    /// The cells.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&CellKey, &Group)> {
        self.cells.iter()
    }

    /// The cells.
    pub(super) fn into_groups(self) -> impl Iterator<Item = (CellKey, Group)> {
        self.cells.into_iter()
    }

    /// Turns the cells of a run into cells of no run.
    pub(super) fn forget_run(&mut self, run: u32, keys: &mut impl AsMut<Keys>) {
        let of_run: Vec<CellKey> = self
            .cells
            .keys()
            .filter(|key| key.run == Some(run))
            .copied()
            .collect();
        for key in of_run {
            if let Some(cell) = self.cells.remove(&key) {
                self.of(CellKey { run: None, ..key }, keys).merge(&cell);
            }
        }
    }
}
