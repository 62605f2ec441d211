//! The state: what the data path writes, held by one lock for as short as can be.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use super::counts::ByFacet;
use super::group::THINNED;
use super::keys::{Keys, Numbers, folded};
use super::log::Log;
use super::names::{BoundedNames, Name};
use super::past::{Fall, Past};
use super::prepared::Prepared;
use super::room::Room;
use super::row;
use super::{Group, GroupKey, Histograms, MOST_GROUPS, MOST_MODELS, MOST_TAGS};
use crate::observation::Route;
use crate::record::EngineName;

/// Runs that are told apart: more than are listed, since exchanges of an older one may still be under way.
const MOST_RUNS: usize = 128;

/// Bytes that the single exchanges of all groups together may take.
const MOST_GROUP_BYTES: usize = 64 << 20;

/// Engine and model.
pub type ModelKey = (Option<EngineName>, Option<String>);

/// What is kept by engine and model, whatever the tag and the route.
#[derive(Debug)]
struct OfModel {
    key: ModelKey,
    /// For Prometheus.
    histograms: Arc<Histograms>,
    past: Past,
}

/// What an exchange shows of its group's key, names by number.
type Labels = (Option<EngineName>, Option<Name>, Option<Name>, Route);

/// What the data path writes.
#[derive(Debug)]
pub(super) struct State {
    pub(super) log: Log,
    pub(super) keys: Keys,
    numbers: Numbers,
    /// Numbers of keys by what an exchange shows.
    known: HashMap<Labels, u32>,
    models: BoundedNames,
    tags: BoundedNames,
    /// By the number of the key. A reader shares the group; it is copied when the next exchange comes meanwhile.
    groups: Vec<Option<Slot>>,
    /// A slot says which of these it counts in.
    models_seen: Vec<OfModel>,
    /// Groups that there are.
    count: usize,
    pub(super) room: Room,
    /// Groups with more exchanges than a group may keep.
    pub(super) overfull: Vec<u32>,
    /// Exchanges that count in a group called `other`.
    pub(super) folded: u64,
    /// Names of the runs with their numbers, oldest first.
    runs: VecDeque<(u32, String)>,
    next_run: u32,
    pub(super) by_facet: Option<ByFacet>,
}

#[derive(Debug)]
struct Slot {
    group: Arc<Group>,
    /// Where that of its model stands.
    of_model: usize,
    /// Its bytes, here so that the largest can be found without a look at each.
    bytes: usize,
}

impl State {
    pub(super) fn new(most_log_bytes: usize) -> Self {
        Self {
            log: Log::new(most_log_bytes),
            keys: Keys::new(),
            numbers: BTreeMap::new(),
            known: HashMap::new(),
            models: BoundedNames::new(MOST_MODELS),
            tags: BoundedNames::new(MOST_TAGS),
            groups: Vec::new(),
            models_seen: Vec::new(),
            count: 0,
            room: Room::new(MOST_GROUP_BYTES),
            overfull: Vec::new(),
            folded: 0,
            runs: VecDeque::new(),
            next_run: 0,
            by_facet: None,
        }
    }

    /// Adds an exchange; `row` is how the log keeps it.
    pub(super) fn add(&mut self, exchange: &Prepared<'_>, row: &[u8]) {
        let number = self.number_of(exchange);
        if let (Some(by_facet), Some(key)) = (&mut self.by_facet, self.keys.get(number)) {
            by_facet.add(key, exchange);
        }
        let run = exchange.observation.run.as_deref();
        let run = run.map(|run| self.number_run(run));
        let ended = row::nanoseconds(exchange.observation.ended_at);
        self.log.push(number, run, ended, row);
        self.make_slot(number);
        let Some(Some(slot)) = self.groups.get_mut(number as usize) else {
            return;
        };
        let group = Arc::make_mut(&mut slot.group);
        group.add(exchange);
        if let Some(of_model) = self.models_seen.get_mut(slot.of_model) {
            Arc::make_mut(&mut of_model.histograms).add(exchange);
            of_model.past.add(exchange, ended);
        }
        let is_overfull = group.is_overfull();
        let (before, after) = (slot.bytes, group.bytes());
        slot.bytes = after;
        self.room.change(before, after);
        if is_overfull && !self.overfull.contains(&number) {
            self.overfull.push(number);
        }
    }

    /// Makes the group of a key if there is none.
    fn make_slot(&mut self, number: u32) {
        let index = number as usize;
        if self.group(number).is_some() {
            return;
        }
        if self.groups.len() <= index {
            self.groups.resize_with(index + 1, || None);
        }
        let key = self.keys.get(number);
        let key = key.map_or((None, None), |key| (key.engine, key.model.clone()));
        let known = self.models_seen.iter().position(|known| known.key == key);
        let of_model = known.unwrap_or_else(|| {
            self.models_seen.push(OfModel {
                key,
                histograms: Arc::default(),
                past: Past::default(),
            });
            self.models_seen.len() - 1
        });
        self.groups[index] = Some(Slot {
            group: Arc::default(),
            of_model,
            bytes: 0,
        });
        self.count += 1;
    }

    fn number_of(&mut self, exchange: &Prepared<'_>) -> u32 {
        let observation = exchange.observation;
        let records = &observation.spec_decode_acceptance;
        let engine = records.first().map(|record| record.engine);
        let model = observation.model.as_deref().map(|it| self.models.admit(it));
        let tag = observation.tag.as_deref().map(|it| self.tags.admit(it));
        let labels = (engine, model, tag, observation.route);
        if let Some(&number) = self.known.get(&labels) {
            return number;
        }
        let key = GroupKey {
            engine,
            model: model.map(|model| self.models.name(model).to_owned()),
            tag: tag.map(|tag| self.tags.name(tag).to_owned()),
            route: observation.route,
        };
        let known = self.numbers.get(&key);
        let has_group = known.is_some_and(|&number| self.group(number).is_some());
        if self.count < MOST_GROUPS || has_group {
            let number = self.keys.number(&key, &mut self.numbers);
            self.known.insert(labels, number);
            return number;
        }
        self.folded = self.folded.saturating_add(1);
        self.keys.number(&folded(&key), &mut self.numbers)
    }

    fn group(&self, number: u32) -> Option<&Arc<Group>> {
        let slot = self.groups.get(number as usize)?.as_ref()?;
        Some(&slot.group)
    }

    /// The groups in the order of their keys.
    pub(super) fn groups(&self) -> impl Iterator<Item = (&Arc<GroupKey>, &Arc<Group>)> {
        let numbers = self.numbers.iter();
        numbers.filter_map(|(key, &number)| Some((key, self.group(number)?)))
    }

    /// The histograms.
    pub(super) fn histograms(&self) -> Vec<(ModelKey, Arc<Histograms>)> {
        let seen = self.models_seen.iter();
        seen.map(|it| (it.key.clone(), Arc::clone(&it.histograms)))
            .collect()
    }

    /// The models whose length fell.
    pub(super) fn falls(&self, now: i64) -> Vec<(ModelKey, Fall)> {
        let seen = self.models_seen.iter();
        seen.filter_map(|it| Some((it.key.clone(), it.past.fall(now)?)))
            .collect()
    }

    fn number_run(&mut self, name: &str) -> u32 {
        if let Some(number) = self.run(name) {
            return number;
        }
        if self.runs.len() >= MOST_RUNS {
            self.runs.pop_front();
        }
        let number = self.next_run;
        self.next_run += 1;
        self.runs.push_back((number, name.to_owned()));
        number
    }

    /// The number of a run that is told apart.
    pub(super) fn run(&self, name: &str) -> Option<u32> {
        // Nearly always the newest.
        let known = self.runs.iter().rev().find(|(_, known)| known == name);
        known.map(|(number, _)| *number)
    }

    /// The number of the oldest run that is told apart.
    pub(super) fn oldest_run(&self) -> u32 {
        self.runs.front().map_or(0, |(number, _)| *number)
    }

    /// The groups that have to give up exchanges, and how many each keeps then.
    pub(super) fn overdue(&mut self) -> Vec<(u32, Arc<Group>, usize)> {
        let overfull = std::mem::take(&mut self.overfull);
        let mut found: Vec<_> = overfull
            .into_iter()
            .filter_map(|number| Some((number, Arc::clone(self.group(number)?), THINNED)))
            .collect();
        if !self.room.is_over() || !found.is_empty() {
            return found;
        }
        let slots = self.groups.iter().zip(0..);
        let mut slots: Vec<(usize, u32)> = slots
            .filter_map(|(slot, number)| Some((slot.as_ref()?.bytes, number)))
            .collect();
        slots.sort_unstable();
        let mut wins = 0;
        while let Some((bytes, number)) = slots.pop()
            && !self.room.is_enough(wins)
        {
            if let Some(group) = self.group(number)
                && let Some((kept, after)) = group.would_keep()
            {
                wins += bytes.saturating_sub(after);
                found.push((number, Arc::clone(group), kept));
            }
        }
        if found.is_empty() {
            self.room.settle();
        }
        found
    }

    /// Changes a group that there is.
    pub(super) fn change(&mut self, number: u32, change: impl FnOnce(&mut Group)) {
        if let Some(Some(slot)) = self.groups.get_mut(number as usize) {
            let group = Arc::make_mut(&mut slot.group);
            change(group);
            let (before, after) = (slot.bytes, group.bytes());
            slot.bytes = after;
            self.room.change(before, after);
        }
    }
}
