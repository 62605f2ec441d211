//! Statistics: what all observations together say, kept while the tap runs.
//!
//! [`Statistics`] takes each finished observation and keeps one [`Group`] per engine, model, tag and route. Pooled
//! counts and histograms are exact for ever; distributions of per-request values are exact up to
//! [`distribution::MOST_EXACT_VALUES`] each and a sketch beyond. Only exchanges on observed routes with a 2xx status
//! count; everything else is for the counters of the tap itself.
//!
//! Memory is bounded: names by [`MOST_MODELS`] and [`MOST_TAGS`], groups by [`MOST_GROUPS`], exact values and
//! samples of all groups together by [`MOST_EXACT_VALUES_TOGETHER`].

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::observation::{Observation, ObservationSink};

pub mod advice;
mod buckets;
pub mod compare;
pub mod distribution;
mod evidence;
pub mod findings;
pub mod gain;
mod group;
pub mod interval;
mod moment;
mod moments;
mod names;
mod pooled;
pub mod progress;
pub mod relation;
mod sketch;
pub mod survival;
mod traffic;
mod values;
mod view;

pub use buckets::{Histograms, RecordHistogram};
pub use distribution::{Distribution, PERCENTILES, Statistic};
pub use evidence::Evidence;
pub use findings::Finding;
pub use group::{Group, GroupKey};
pub use moment::{Moment, Period};
pub use names::OTHER;
pub use pooled::{Pooled, steps_in};
pub use traffic::Traffic;
pub use view::View;

use names::BoundedNames;

/// Model names that are told apart; further ones count as [`OTHER`].
pub const MOST_MODELS: usize = 100;

/// Tags that are told apart; further ones count as [`OTHER`].
pub const MOST_TAGS: usize = 50;

/// Groups that are kept; further ones fold into those of model and tag [`OTHER`].
pub const MOST_GROUPS: usize = 5_000;

/// Exact values that all groups together may hold (64 MB); the group that goes beyond turns into sketches.
pub const MOST_EXACT_VALUES_TOGETHER: usize = 8_000_000;

/// Everything that the observations of one instance add up to.
///
/// One lock guards all of it. It is held for one observation, or for a copy of the groups, in which long runs of
/// values are shared rather than copied.
#[derive(Debug, Default)]
pub struct Statistics {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    groups: BTreeMap<GroupKey, Group>,
    models: BoundedNames,
    tags: BoundedNames,
    exact_values: usize,
}

impl Default for State {
    fn default() -> Self {
        Self {
            groups: BTreeMap::new(),
            models: BoundedNames::new(MOST_MODELS),
            tags: BoundedNames::new(MOST_TAGS),
            exact_values: 0,
        }
    }
}

impl Statistics {
    /// Statistics of nothing yet.
    pub fn new() -> Self {
        Self::default()
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

    /// Looks at the groups without copying them. New observations wait meanwhile: be quick.
    pub fn look<R>(&self, look: impl FnOnce(&BTreeMap<GroupKey, Group>) -> R) -> R {
        look(&self.lock().groups)
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
        let group = self.groups.entry(key).or_default();
        let before = group.exact_values();
        group.add(observation);
        let after = group.exact_values();
        self.exact_values = (self.exact_values + after).saturating_sub(before);
        if self.exact_values > MOST_EXACT_VALUES_TOGETHER {
            group.condense();
            // A few samples stay.
            let left = group.exact_values();
            self.exact_values = (self.exact_values + left).saturating_sub(after);
        }
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
        GroupKey {
            model: Some(OTHER.to_owned()),
            tag: key.tag.map(|_| OTHER.to_owned()),
            ..key
        }
    }
}

#[cfg(test)]
mod tests;
