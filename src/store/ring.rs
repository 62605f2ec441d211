//! The ring of recent observations, bounded in number and in bytes.
//!
//! When bytes run out, the per-step arrays of the oldest observations go first (they are the bulk of a `detailed`
//! record, and its histogram says nearly as much), then whole observations, oldest first. Both are counted.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::observation::{Observation, ObservationSink};

use super::weight;

/// Most observations kept.
pub const MOST_OBSERVATIONS: usize = 20_000;

/// Most bytes kept, as `weight` estimates them.
pub const MOST_BYTES: usize = 64 * 1024 * 1024;

/// Observations handed out per hold of the lock, so that a listing never keeps the data path waiting.
const CHUNK: usize = 256;

/// Keeps the newest observations, at most [`MOST_OBSERVATIONS`] of them and [`MOST_BYTES`].
pub struct ObservationRing {
    most_observations: usize,
    most_bytes: usize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    entries: VecDeque<Entry>,
    /// Observations that went; the place of the oldest kept one.
    dropped: u64,
    /// Everything before this place has no per-step arrays any more.
    slimmed_before: u64,
    /// Observations that lost their per-step arrays, whether or not they are still kept.
    slimmed: u64,
    bytes: usize,
}

struct Entry {
    observation: Arc<Observation>,
    /// See [`mark`].
    mark: u64,
    base_bytes: usize,
    per_step_bytes: usize,
}

impl Default for ObservationRing {
    fn default() -> Self {
        Self::new()
    }
}

impl ObservationRing {
    /// An empty ring with the usual bounds.
    pub fn new() -> Self {
        Self::with_bounds(MOST_OBSERVATIONS, MOST_BYTES)
    }

    /// An empty ring with other bounds.
    pub fn with_bounds(most_observations: usize, most_bytes: usize) -> Self {
        Self {
            most_observations,
            most_bytes,
            kept: Mutex::default(),
        }
    }

    /// The observation with this id, while it is kept.
    pub fn get(&self, id: &str) -> Option<Arc<Observation>> {
        Some(self.find(id)?.1)
    }

    /// Number of observations kept.
    pub fn len(&self) -> usize {
        self.lock().entries.len()
    }

    /// Whether none is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Estimated bytes of what is kept.
    pub fn bytes(&self) -> usize {
        self.lock().bytes
    }

    /// Observations that were kept once and are gone.
    pub fn dropped(&self) -> u64 {
        self.lock().dropped
    }

    /// Observations that lost their per-step arrays to the bound on bytes.
    pub fn per_step_dropped(&self) -> u64 {
        self.lock().slimmed
    }

    /// Where an id stands, counted from the first observation that ever came; `None` when it is not kept.
    pub(super) fn place(&self, id: &str) -> Option<u64> {
        Some(self.find(id)?.0)
    }

    /// Looks for an id from the newest on. That is rare; an index of the ids would cost each exchange more.
    fn find(&self, id: &str) -> Option<(u64, Arc<Observation>)> {
        let mark = mark(id);
        let mut before = u64::MAX;
        loop {
            let kept = self.lock();
            let end = before.min(kept.end());
            let start = end.saturating_sub(CHUNK as u64).max(kept.dropped);
            if start >= end {
                return None;
            }
            for place in (start..end).rev() {
                let entry = kept.at(place)?;
                if entry.mark == mark && entry.observation.id == id {
                    return Some((place, Arc::clone(&entry.observation)));
                }
            }
            before = start;
        }
    }

    /// Up to [`CHUNK`] observations that came before `place` (before the end, for `None`), newest first.
    pub(super) fn chunk_before(&self, place: Option<u64>) -> Vec<(u64, Arc<Observation>)> {
        let kept = self.lock();
        let first = kept.dropped;
        let end = kept.end();
        let before = place.map_or(end, |place| place.min(end));
        (first..before)
            .rev()
            .take(CHUNK)
            .filter_map(|place| Some((place, kept.at(place)?.observation.clone())))
            .collect()
    }

    /// Some observations before `before` and from `place` on, newest first, with their places.
    pub fn chunk_back(&self, before: u64, place: u64) -> Vec<(u64, Arc<Observation>)> {
        let mut chunk = self.chunk_before(Some(before));
        chunk.retain(|(at, _)| *at >= place);
        chunk
    }

    /// The place that the next observation will have, counted from the first that ever came.
    pub fn end(&self) -> u64 {
        self.lock().end()
    }

    /// Some observations from `place` on and before `end`, oldest first, with their places; what is no longer
    /// kept is passed over.
    pub fn chunk_from(&self, place: u64, end: u64) -> Vec<(u64, Arc<Observation>)> {
        let kept = self.lock();
        let first = place.max(kept.dropped);
        (first..end)
            .take(CHUNK)
            .map_while(|place| Some((place, kept.at(place)?.observation.clone())))
            .collect()
    }

    /// The state is whole after every statement that can panic, so that a poisoned lock is of no concern.
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ObservationSink for ObservationRing {
    fn record(&self, observation: Arc<Observation>) {
        let entry = Entry {
            base_bytes: weight::base_bytes(&observation),
            per_step_bytes: weight::per_step_bytes(&observation),
            mark: mark(&observation.id),
            observation,
        };
        // What goes is freed after the lock is.
        let mut gone = Vec::new();
        let mut kept = self.lock();
        kept.push(entry);
        while kept.bytes > self.most_bytes && kept.slim_oldest() {}
        while kept.entries.len() > self.most_observations || kept.bytes > self.most_bytes {
            match kept.drop_oldest() {
                Some(entry) => gone.push(entry),
                None => break,
            }
        }
        drop(kept);
        drop(gone);
    }
}

impl Kept {
    fn at(&self, place: u64) -> Option<&Entry> {
        let index = place.checked_sub(self.dropped)?;
        self.entries.get(usize::try_from(index).ok()?)
    }

    /// The place of the next one.
    fn end(&self) -> u64 {
        self.dropped + self.entries.len() as u64
    }

    fn push(&mut self, entry: Entry) {
        self.bytes += entry.base_bytes + entry.per_step_bytes;
        self.entries.push_back(entry);
    }

    /// Takes the per-step arrays of the oldest observation that may still have some; false when none may.
    fn slim_oldest(&mut self) -> bool {
        let index = self.slimmed_before.saturating_sub(self.dropped);
        let Some(entry) = usize::try_from(index)
            .ok()
            .and_then(|index| self.entries.get_mut(index))
        else {
            return false;
        };
        self.slimmed_before = self.dropped + index + 1;
        if entry.per_step_bytes > 0 {
            // A reader may hold the observation at this moment: it keeps its own.
            let observation = Arc::make_mut(&mut entry.observation);
            for record in &mut observation.spec_decode_acceptance {
                record.per_step_accepted = None;
                record.per_step_drafted = None;
            }
            self.bytes -= entry.per_step_bytes;
            entry.per_step_bytes = 0;
            self.slimmed += 1;
        }
        true
    }

    fn drop_oldest(&mut self) -> Option<Entry> {
        let entry = self.entries.pop_front()?;
        self.bytes -= entry.base_bytes + entry.per_step_bytes;
        self.dropped += 1;
        Some(entry)
    }
}

/// What tells most ids apart: their last bytes, which are random in ours.
fn mark(id: &str) -> u64 {
    let last = id.as_bytes().last_chunk();
    last.map_or(0, |last| u64::from_le_bytes(*last))
}
