//! What all connections of one simulated engine share.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use tokio_util::sync::CancellationToken;

use super::counters::Counters;
use super::log::Log;
use super::settings::{Model, Settings};

/// What all connections of one simulated engine share.
pub(super) struct State {
    pub(super) settings: Settings,
    pub(super) log: Log,
    pub(super) counters: Counters,
    /// Seconds since 1970 at the start, with their fraction.
    pub(super) started: f64,
    arrivals: AtomicU64,
    /// What can be aborted, by response id.
    running: Mutex<HashMap<String, CancellationToken>>,
}

impl State {
    pub(super) fn new(settings: Settings, log: Log) -> Self {
        Self {
            settings,
            log,
            counters: Counters::default(),
            started: since_epoch(),
            arrivals: AtomicU64::new(0),
            running: Mutex::default(),
        }
    }

    /// The number of a generation request that has just arrived.
    pub(super) fn next_arrival(&self) -> u64 {
        self.arrivals.fetch_add(1, Ordering::Relaxed)
    }

    /// The model of that name; without a name the first one.
    pub(super) fn model(&self, name: Option<&str>) -> Option<&Model> {
        let models = &self.settings.models;
        match name {
            Some(name) => models.iter().find(|model| model.name == name),
            None => models.first(),
        }
    }

    /// Seconds since 1970.
    pub(super) fn seconds() -> u64 {
        since_epoch() as u64
    }

    fn running(&self) -> MutexGuard<'_, HashMap<String, CancellationToken>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What aborts the response of that id when it is cancelled.
    pub(super) fn abortable(&self, id: &str) -> CancellationToken {
        let token = CancellationToken::new();
        self.running().insert(id.to_owned(), token.clone());
        token
    }

    pub(super) fn forget_abortable(&self, id: &str) {
        self.running().remove(id);
    }

    /// Aborts the response of that id if it is on its way.
    pub(super) fn abort(&self, id: &str) {
        if let Some(token) = self.running().get(id) {
            token.cancel();
        }
    }
}

fn since_epoch() -> f64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs_f64()
}
