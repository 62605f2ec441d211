//! Statistics: what all observations together say, kept while the tap runs.
//!
//! [`Statistics`] takes each finished observation and keeps one [`Group`] per engine, model, tag and route. Pooled
//! counts and histograms are exact for ever; distributions of per-request values are exact up to
//! [`distribution::MOST_EXACT_VALUES`] each and a sketch beyond. Only exchanges on observed routes with a 2xx status
//! count; everything else is for the counters of the tap itself.
//!
//! Windows, runs and facets are counted when somebody asks, from the newest exchanges themselves and from sums over the
//! older ones, see [`Statistics::select`].
//!
//! Memory is bounded: names by [`MOST_MODELS`] and [`MOST_TAGS`], groups by [`MOST_GROUPS`], exact values and
//! samples of all groups together by [`MOST_EXACT_VALUES_TOGETHER`], and the newest exchanges by their bytes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::clock::Clock;
use crate::observation::{Observation, ObservationSink};

pub mod advice;
mod bins;
mod buckets;
mod cells;
pub mod compare;
mod counts;
pub mod distribution;
mod evidence;
mod facet;
pub mod findings;
pub mod gain;
mod group;
mod history;
pub mod interval;
mod keys;
mod log;
mod moment;
mod moments;
mod names;
mod pooled;
pub mod progress;
pub mod relation;
mod row;
mod selection;
mod sketch;
pub mod survival;
mod traffic;
mod values;
mod view;
mod window;

pub use buckets::{Histograms, RecordHistogram};
pub use counts::{Counts, FacetCounts};
pub use distribution::{Distribution, PERCENTILES, Statistic};
pub use evidence::Evidence;
pub use facet::{Facet, FacetValue};
pub use findings::Finding;
pub use group::{Group, GroupKey};
pub use moment::{Moment, Period};
pub use names::OTHER;
pub use pooled::{Pooled, steps_in};
pub use selection::{Selected, SelectedGroup, Selection};
pub use traffic::Traffic;
pub use view::View;
pub use window::Window;

use counts::ByFacet;
use history::{History, MOST_LOG_BYTES};
use names::BoundedNames;

/// Model names that are told apart; further ones count as [`OTHER`].
pub const MOST_MODELS: usize = 100;

/// Tags that are told apart; further ones count as [`OTHER`].
pub const MOST_TAGS: usize = 50;

/// Groups that are kept; further ones fold into those of model and tag [`OTHER`].
pub const MOST_GROUPS: usize = 5_000;

/// Exact values that all groups together may hold (40 MB); the group that goes beyond turns into sketches.
pub const MOST_EXACT_VALUES_TOGETHER: usize = 5_000_000;

/// Everything that the observations of one instance add up to.
///
/// One lock guards all of it. It is held for one observation, or for a copy of the groups, in which long runs of
/// values are shared rather than copied.
#[derive(Debug, Default)]
pub struct Statistics {
    state: Mutex<State>,
    clock: Clock,
}

#[derive(Debug)]
struct State {
    groups: BTreeMap<GroupKey, Group>,
    history: History,
    by_facet: Option<ByFacet>,
    models: BoundedNames,
    tags: BoundedNames,
    exact_values: usize,
    folded: u64,
}

impl State {
    fn new(most_log_bytes: usize) -> Self {
        Self {
            groups: BTreeMap::new(),
            history: History::new(most_log_bytes),
            by_facet: None,
            models: BoundedNames::new(MOST_MODELS),
            tags: BoundedNames::new(MOST_TAGS),
            exact_values: 0,
            folded: 0,
        }
    }
}

impl Default for State {
    fn default() -> Self {
        Self::new(MOST_LOG_BYTES)
    }
}

impl Statistics {
    /// Statistics of nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Statistics of nothing yet whose windows go by this clock.
    pub fn with_clock(clock: Clock) -> Self {
        Self {
            clock,
            ..Self::default()
        }
    }

    /// Statistics that keep fewer bytes of single exchanges than usual.
    pub fn with_log(clock: Clock, most_log_bytes: usize) -> Self {
        Self {
            state: Mutex::new(State::new(most_log_bytes)),
            clock,
        }
    }

    /// The same, which also keep counts by this facet from now on.
    #[must_use]
    pub fn counting_by(self, facet: Facet) -> Self {
        self.lock().by_facet = Some(ByFacet::new(facet));
        self
    }

    /// The groups of a part of the traffic for which `wanted` says so.
    ///
    /// A window's figures are exactly those of the exchanges that ended between its edges. New observations wait only
    /// while the state is copied; the counting is done afterwards.
    pub fn select(&self, selection: &Selection, wanted: impl Fn(&GroupKey) -> bool) -> Selected {
        if *selection == Selection::default() {
            let groups: Vec<SelectedGroup> = self
                .groups(&wanted)
                .into_iter()
                .map(|(key, figures)| SelectedGroup {
                    key,
                    facet: None,
                    figures,
                })
                .collect();
            return Selected {
                period: Period::of(groups.iter().map(|group| &group.figures)),
                groups,
                folded: self.lock().folded,
            };
        }
        let now = row::nanoseconds(self.clock.now());
        let excerpt = self.lock().history.excerpt(selection, now, &wanted);
        excerpt.count(selection, wanted)
    }

    /// A copy of the groups for which `wanted` says so, in the order of their keys.
    pub fn groups(&self, wanted: impl Fn(&GroupKey) -> bool) -> Vec<(GroupKey, Group)> {
        self.lock()
            .groups
            .iter()
            .filter(|(key, _)| wanted(key))
            .map(|(key, group)| (key.clone(), group.clone()))
            .collect()
    }

    /// Looks at the groups, and at the counts by a facet where such are kept, without copying them. New observations wait
    /// meanwhile: be quick.
    pub fn look<R>(
        &self,
        look: impl FnOnce(&BTreeMap<GroupKey, Group>, Option<&FacetCounts>) -> R,
    ) -> R {
        let state = self.lock();
        look(&state.groups, state.by_facet.as_ref().map(ByFacet::counts))
    }

    // A panic while the lock was held can have spoiled one observation's numbers at most: keep counting.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ObservationSink for Statistics {
    fn record(&self, observation: Arc<Observation>) {
        if observation.is_success() && observation.route.is_observed() {
            self.lock().add(&observation);
        }
    }
}

impl State {
    fn add(&mut self, observation: &Observation) {
        let key = self.key_of(observation);
        if let Some(by_facet) = &mut self.by_facet {
            by_facet.add(&key, observation);
        }
        let number = self.history.number_group(&key);
        let exact_values = &mut self.exact_values;
        add_within_bounds(
            self.groups.entry(key).or_default(),
            observation,
            exact_values,
        );
        self.history.add(number, observation, |cell, gone| {
            add_within_bounds(cell, gone, exact_values);
        });
    }

    fn key_of(&mut self, observation: &Observation) -> GroupKey {
        let key = GroupKey {
            engine: observation
                .spec_decode_acceptance
                .first()
                .map(|record| record.engine),
            model: observation
                .model
                .as_deref()
                .map(|name| self.models.admit(name)),
            tag: observation.tag.as_deref().map(|tag| self.tags.admit(tag)),
            route: observation.route,
        };
        if self.groups.len() < MOST_GROUPS || self.groups.contains_key(&key) {
            return key;
        }
        self.folded = self.folded.saturating_add(1);
        GroupKey {
            model: Some(OTHER.to_owned()),
            tag: key.tag.map(|_| OTHER.to_owned()),
            ..key
        }
    }
}

/// Adds to a group, which turns into sketches where all groups together hold too many exact values.
fn add_within_bounds(group: &mut Group, observation: &Observation, exact_values: &mut usize) {
    let before = group.exact_values();
    group.add(observation);
    let after = group.exact_values();
    *exact_values = (*exact_values + after).saturating_sub(before);
    if *exact_values > MOST_EXACT_VALUES_TOGETHER {
        group.condense();
        // A few samples stay.
        let left = group.exact_values();
        *exact_values = (*exact_values + left).saturating_sub(after);
    }
}

#[cfg(test)]
mod tests;
