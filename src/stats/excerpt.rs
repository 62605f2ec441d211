//! An excerpt: a copy of what a selection needs, counted while new exchanges come in.

use std::ops::Range;
use std::sync::Arc;

use super::cells::{CellKey, Cells};
use super::facet::FacetValue;
use super::keys::Keys;
use super::log::{Head, Rows};
use super::moment::{Moment, Period};
use super::prepared::Prepared;
use super::selection::{Selected, SelectedGroup, Selection};
use super::window::Window;
use super::{Group, GroupKey, MOST_GROUPS, Shared, row};

/// A copy of what a selection needs.
pub(super) struct Excerpt {
    rows: Rows,
    cells: Vec<(CellKey, Arc<Group>)>,
    keys: Keys,
    /// The number of the run that is asked for; the inner one is none where no exchange of it was seen.
    run: Option<Option<u32>>,
    edges: Option<Range<i64>>,
    folded: u64,
}

impl Excerpt {
    pub(super) fn of(
        shared: &Shared,
        selection: &Selection,
        now: i64,
        wanted: impl Fn(&GroupKey) -> bool,
    ) -> Self {
        // Before the state, so that no exchange is on its way from the one to the other.
        let settled = shared.settled();
        let (rows, keys, run, edges) = {
            let state = shared.state();
            let edges = selection.window.edges(now, state.log.gone_until());
            (
                state.log.rows(edges.clone().unwrap_or(i64::MIN..i64::MAX)),
                state.keys.clone(),
                selection.run.as_ref().map(|name| state.run(name)),
                edges,
            )
        };
        let is_asked = |key: &CellKey| {
            key.facet.map(FacetValue::facet) == selection.facet
                && run.is_none_or(|run| run.is_some() && run == key.run)
                && keys.get(key.group).is_some_and(&wanted)
        };
        let cells = match selection.window {
            Window::All => settled
                .cells
                .iter()
                .filter(|(key, _)| is_asked(key))
                .map(|(key, cell)| (*key, Arc::clone(cell)))
                .collect(),
            _ => Vec::new(),
        };
        Self {
            rows,
            folded: if edges.is_none() {
                settled.cells.folded(selection.facet)
            } else {
                0
            },
            cells,
            keys,
            run,
            edges,
        }
    }

    /// Counts it.
    pub(super) fn count(
        self,
        selection: &Selection,
        wanted: impl Fn(&GroupKey) -> bool,
    ) -> Selected {
        // A reader's own, and gone with the answer.
        let mut groups = Cells::new(MOST_GROUPS, usize::MAX);
        for (key, cell) in self.cells {
            groups.merge(CellKey { run: None, ..key }, &cell, &self.keys);
        }
        let is_asked = |head: &Head| {
            self.run.is_none_or(|run| run.is_some() && run == head.run)
                && self.keys.get(head.group).is_some_and(&wanted)
        };
        self.rows.each(&self.keys, is_asked, |head, observation| {
            let key = CellKey {
                run: None,
                facet: selection.facet.map(|facet| facet.of(&observation)),
                group: head.group,
            };
            groups.add(key, &Prepared::new(&observation), &self.keys);
        });
        let folded = self.folded.saturating_add(groups.folded(selection.facet));
        let mut groups: Vec<SelectedGroup> = groups
            .into_groups()
            .filter_map(|(key, figures)| {
                Some(SelectedGroup {
                    key: self.keys.get(key.group)?.clone(),
                    facet: key.facet,
                    figures,
                })
            })
            .collect();
        groups.sort_by(|left, right| (&left.key, left.facet).cmp(&(&right.key, right.facet)));
        let period = match self.edges {
            Some(edges) => Period {
                from: Some(Moment(row::time_of(edges.start))),
                to: Some(Moment(row::time_of(edges.end))),
            },
            None => Period::of(groups.iter().map(|group| &group.figures)),
        };
        Selected {
            groups,
            period,
            folded,
        }
    }
}
