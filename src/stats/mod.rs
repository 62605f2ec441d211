//! Statistics: what all observations together say, kept while the tap runs.
//!
//! [`Statistics`] takes each finished observation and keeps one [`Group`] per engine, model, tag and route. Pooled
//! counts and histograms are exact for ever; distributions of per-request values are exact up to
//! [`interval::MOST_SAMPLES`] each and a sketch beyond. Only exchanges on observed routes with a 2xx status
//! count; everything else is for the counters of the tap itself.
//!
//! Windows, runs and facets are counted when somebody asks, from the newest exchanges themselves and from sums over the
//! older ones, see [`Statistics::select`].
//!
//! Memory is bounded: names by [`MOST_MODELS`] and [`MOST_TAGS`], groups by [`MOST_GROUPS`], and single exchanges, in the
//! groups and in the log of the newest ones, by their bytes. What that takes is done behind the data path, which only
//! writes an exchange down, see `settled.rs`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::clock::Clock;
use crate::observation::{Observation, ObservationSink};

pub mod advice;
mod bins;
mod buckets;
mod cells;
pub mod column;
pub mod compare;
mod counts;
pub mod distribution;
mod evidence;
mod excerpt;
mod exemplar;
mod facet;
pub mod findings;
pub mod gain;
mod group;
pub mod history;
pub mod interval;
mod keys;
mod log;
mod moment;
mod moments;
mod names;
pub mod past;
mod pooled;
mod prepared;
pub mod progress;
pub mod relation;
mod room;
mod row;
mod samples;
mod selection;
mod settled;
mod sketch;
mod sketches;
mod state;
pub mod survival;
mod time;
mod view;
mod window;

pub use buckets::{Histograms, RecordHistogram};
pub use column::{RecordColumn, TrafficColumn};
pub use counts::{Counts, FacetCounts};
pub use distribution::{Distribution, PERCENTILES, Statistic};
pub use evidence::Evidence;
pub use exemplar::{Exemplar, Exemplars};
pub use facet::{Facet, FacetValue};
pub use findings::Finding;
pub use group::{Group, GroupKey};
pub use moment::{Moment, Period};
pub use names::OTHER;
pub use pooled::{Pooled, steps_in};
pub use selection::{Selected, SelectedGroup, Selection};
pub use state::ModelKey;
pub use view::{View, ViewName};
pub use window::Window;

use counts::ByFacet;
use excerpt::Excerpt;
use prepared::Prepared;
use settled::{Settled, Settler};
use state::State;

/// Model names that are told apart; further ones count as [`OTHER`].
pub const MOST_MODELS: usize = 100;

/// Tags that are told apart; further ones count as [`OTHER`].
pub const MOST_TAGS: usize = 50;

/// Groups that are kept; further ones fold into those of model and tag [`OTHER`].
pub const MOST_GROUPS: usize = 5_000;

/// Bytes that the rows of the newest exchanges may take.
const MOST_LOG_BYTES: usize = 24 << 20;

/// Everything that the observations of one instance add up to.
#[derive(Debug)]
pub struct Statistics {
    shared: Arc<Shared>,
    settler: Settler,
    clock: Clock,
}

/// What the data path, the settler and readers share. Whoever holds both locks takes `settled` first.
#[derive(Debug)]
struct Shared {
    /// Held for one observation, or while pointers to the groups are copied.
    state: Mutex<State>,
    /// Never held on the data path, unless that has outrun the settler by far.
    settled: Mutex<Settled>,
}

impl Shared {
    // A panic while the lock was held can have spoiled one observation's numbers at most: keep counting.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settled(&self) -> MutexGuard<'_, Settled> {
        self.settled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Statistics {
    fn default() -> Self {
        Self::with_log(Clock::default(), MOST_LOG_BYTES)
    }
}

impl Statistics {
    /// Statistics of nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Statistics of nothing yet whose windows go by this clock.
    pub fn with_clock(clock: Clock) -> Self {
        Self::with_log(clock, MOST_LOG_BYTES)
    }

    /// Statistics that keep fewer bytes of single exchanges than usual.
    pub fn with_log(clock: Clock, most_log_bytes: usize) -> Self {
        Self {
            shared: Arc::new(Shared {
                state: Mutex::new(State::new(most_log_bytes)),
                settled: Mutex::new(Settled::new()),
            }),
            settler: Settler::default(),
            clock,
        }
    }

    /// The same, which also keep counts by this facet from now on.
    #[must_use]
    pub fn counting_by(self, facet: Facet) -> Self {
        self.shared.state().by_facet = Some(ByFacet::new(facet));
        self
    }

    /// The groups of a part of the traffic for which `wanted` says so.
    ///
    /// A window's figures are exactly those of the exchanges that ended between its edges. New observations wait only
    /// while pointers are copied; the counting is done afterwards.
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
                folded: self.shared.state().folded,
            };
        }
        self.settle();
        let now = row::nanoseconds(self.clock.now());
        Excerpt::of(&self.shared, selection, now, &wanted).count(selection, wanted)
    }

    /// A copy of the groups for which `wanted` says so, in the order of their keys.
    pub fn groups(&self, wanted: impl Fn(&GroupKey) -> bool) -> Vec<(GroupKey, Group)> {
        self.settle();
        let shared = self.shared_groups().into_iter();
        shared
            .filter(|(key, _)| wanted(key))
            .map(|(key, group)| (GroupKey::clone(&key), Group::clone(&group)))
            .collect()
    }

    /// The groups as they stand, in the order of their keys.
    pub fn shared_groups(&self) -> Vec<(Arc<GroupKey>, Arc<Group>)> {
        let state = self.shared.state();
        let groups = state.groups();
        groups
            .map(|(key, group)| (Arc::clone(key), Arc::clone(group)))
            .collect()
    }

    /// The counts by a facet, where such are kept.
    pub fn facet_counts(&self) -> Option<FacetCounts> {
        let state = self.shared.state();
        state
            .by_facet
            .as_ref()
            .map(|by_facet| by_facet.counts().clone())
    }

    /// The values of records and exchanges in fixed buckets, as they stand.
    pub fn histograms(&self) -> Vec<(ModelKey, Arc<Histograms>)> {
        self.shared.state().histograms()
    }

    /// Findings about the models for which `wanted` says so and whose acceptance length fell against their own past.
    pub fn falls(&self, wanted: impl Fn(Option<&str>) -> bool) -> Vec<Finding> {
        let now = row::nanoseconds(self.clock.now());
        let falls = self.shared.state().falls(now);
        let falls = falls
            .iter()
            .filter(|((_, model), _)| wanted(model.as_deref()));
        falls
            .map(|((_, model), fall)| findings::of_fall(model.as_deref(), fall))
            .collect()
    }

    /// Brings memory back within its bounds. It is done now and then, and before anybody reads; it need not be asked for.
    pub fn settle(&self) {
        self.shared.settle();
    }
}

impl ObservationSink for Statistics {
    fn record(&self, observation: Arc<Observation>) {
        if !observation.is_success() || !observation.route.is_observed() {
            return;
        }
        let prepared = Prepared::new(&observation);
        let row = row::write(&observation);
        let backlog = {
            let mut state = self.shared.state();
            state.add(&prepared, &row);
            state.backlog()
        };
        self.settler.work_off(backlog, &self.shared);
    }
}

#[cfg(test)]
mod tests;
