//! The history: what windows, runs and facets are counted from. The newest exchanges stand in the log one by one; those
//! that had to leave it are added up by run and by facet, so that only windows lose sight of them.

use std::collections::VecDeque;
use std::ops::Range;

use super::cells::{CellKey, Cells};
use super::facet::FacetValue;
use super::keys::SharedKeys;
use super::log::{Head, Log, Rows};
use super::moment::{Moment, Period};
use super::selection::{Selected, SelectedGroup, Selection};
use super::window::Window;
use super::{Group, GroupKey, MOST_GROUPS, row};
use crate::observation::Observation;

/// Bytes that the rows of the newest exchanges may take.
pub(super) const MOST_LOG_BYTES: usize = 32 << 20;

/// Runs that are told apart: more than are listed, since exchanges of an older one may still be under way.
const MOST_RUNS: usize = 128;

/// What windows, runs and facets are counted from.
#[derive(Debug)]
pub(super) struct History {
    log: Log,
    /// Exchanges that left the log.
    cells: Cells,
    keys: SharedKeys,
    /// Names of the runs with their numbers, oldest first.
    runs: VecDeque<(u32, String)>,
    next_run: u32,
}

/// A copy of what a selection needs, to be counted while new exchanges come in.
pub(super) struct Excerpt {
    rows: Rows,
    cells: Vec<(CellKey, Group)>,
    keys: SharedKeys,
    /// The number of the run that is asked for; the inner one is none where no exchange of it was seen.
    run: Option<Option<u32>>,
    edges: Option<Range<i64>>,
    folded: u64,
}

impl History {
    pub(super) fn new(most_log_bytes: usize) -> Self {
        Self {
            log: Log::new(most_log_bytes),
            cells: Cells::new(MOST_GROUPS),
            keys: SharedKeys::default(),
            runs: VecDeque::new(),
            next_run: 0,
        }
    }

    /// The number of a group.
    pub(super) fn number_group(&mut self, key: &GroupKey) -> u32 {
        self.keys.number(key)
    }

    /// Adds an exchange. What leaves the log for it is given to `count` with each cell that it counts in.
    pub(super) fn add(
        &mut self,
        group: u32,
        observation: &Observation,
        mut count: impl FnMut(&mut Group, &Observation),
    ) {
        let run = observation.run.as_deref().map(|run| self.number_run(run));
        self.log.push(group, run, observation);
        while let Some((head, gone)) = self.log.pop_surplus(&self.keys) {
            self.settle(&head, &gone, &mut count);
        }
    }

    fn settle(
        &mut self,
        head: &Head,
        gone: &Observation,
        count: &mut impl FnMut(&mut Group, &Observation),
    ) {
        let run = head
            .run
            .filter(|run| self.runs.iter().any(|(number, _)| number == run));
        let facets = FacetValue::all_of(gone).map(Some);
        for facet in facets.chain([None]) {
            let key = CellKey {
                run,
                facet,
                group: head.group,
            };
            count(self.cells.of(key, &mut self.keys), gone);
        }
    }

    fn number_run(&mut self, name: &str) -> u32 {
        // Nearly always the newest.
        if let Some((number, _)) = self.runs.iter().rev().find(|(_, known)| known == name) {
            return *number;
        }
        if self.runs.len() >= MOST_RUNS
            && let Some((number, _)) = self.runs.pop_front()
        {
            self.cells.forget_run(number, &mut self.keys);
        }
        let number = self.next_run;
        self.next_run += 1;
        self.runs.push_back((number, name.to_owned()));
        number
    }

    /// Copies what a selection needs.
    pub(super) fn excerpt(
        &self,
        selection: &Selection,
        now: i64,
        wanted: impl Fn(&GroupKey) -> bool,
    ) -> Excerpt {
        let edges = selection.window.edges(now, self.log.gone_until());
        let run = selection.run.as_ref().map(|name| {
            let known = self.runs.iter().find(|(_, known)| known == name);
            known.map(|(number, _)| *number)
        });
        let is_asked = |key: &CellKey| {
            key.facet.map(FacetValue::facet) == selection.facet
                && run.is_none_or(|run| run.is_some() && run == key.run)
                && self.keys.get(key.group).is_some_and(&wanted)
        };
        let cells = match selection.window {
            Window::All => self
                .cells
                .iter()
                .filter(|(key, _)| is_asked(key))
                .map(|(key, cell)| (*key, cell.clone()))
                .collect(),
            _ => Vec::new(),
        };
        Excerpt {
            rows: self.log.rows(edges.clone().unwrap_or(i64::MIN..i64::MAX)),
            folded: if edges.is_none() {
                self.cells.folded(selection.facet)
            } else {
                0
            },
            cells,
            keys: self.keys.clone(),
            run,
            edges,
        }
    }
}

impl Excerpt {
    /// Counts it.
    pub(super) fn count(
        mut self,
        selection: &Selection,
        wanted: impl Fn(&GroupKey) -> bool,
    ) -> Selected {
        let mut groups = Cells::new(MOST_GROUPS);
        for (key, cell) in self.cells {
            let key = CellKey { run: None, ..key };
            groups.of(key, &mut self.keys).merge(&cell);
        }
        let (keys, run) = (self.keys.clone(), self.run);
        let is_asked = |head: &Head| {
            run.is_none_or(|run| run.is_some() && run == head.run)
                && keys.get(head.group).is_some_and(&wanted)
        };
        self.rows.each(&keys, is_asked, |head, observation| {
            let key = CellKey {
                run: None,
                facet: selection.facet.map(|facet| facet.of(&observation)),
                group: head.group,
            };
            groups.of(key, &mut self.keys).add(&observation);
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
