//! A channel: what one filter shows, and who watches it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::outbox::{Lost, Message, Outbox, Subscription};
use super::patch;
use crate::export::Query;

/// Silence after which a sign of life is due.
const LONGEST_SILENCE: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(super) struct Channel {
    /// The filter.
    pub(super) query: Query,
    told: Mutex<Told>,
}

#[derive(Debug, Default)]
struct Told {
    subscribers: Vec<Arc<Outbox>>,
    /// When something was last told.
    spoke: Option<Instant>,
    /// What every subscriber knows once they have read what waits for them; none before the first state is there.
    state: Option<Value>,
}

impl Channel {
    pub(super) fn new(query: Query) -> Self {
        Self {
            query,
            told: Mutex::default(),
        }
    }

    /// A new subscriber gets the state as the others know it, and from then on what they get.
    pub(super) fn join(&self) -> Subscription {
        let subscription = Subscription(Arc::default());
        let mut told = self.lock();
        if let Some(state) = &told.state {
            subscription.0.push(&snapshot(state), || snapshot(state));
        }
        told.subscribers.push(Arc::clone(&subscription.0));
        subscription
    }

    /// Number of those who still watch.
    pub(super) fn watched_by(&self) -> usize {
        let mut told = self.lock();
        told.subscribers.retain(|outbox| !outbox.is_left());
        told.subscribers.len()
    }

    /// Gives a sign of life, where nothing was told for a while.
    pub(super) fn beat(&self) {
        let mut told = self.lock();
        if told.spoke.is_none_or(|at| at.elapsed() >= LONGEST_SILENCE) {
            told.spoke = Some(Instant::now());
            told.subscribers.iter().for_each(|outbox| outbox.beat());
        }
    }

    /// Tells of finished exchanges. Before the first state nobody is told: whoever lists them later finds these too.
    pub(super) fn requests(&self, message: &Message) -> Lost {
        let told = self.lock();
        match &told.state {
            Some(state) => told.push(message, state),
            None => Lost::default(),
        }
    }

    /// Tells the state: whole the first time, then what changed.
    pub(super) fn state(&self, state: Value) -> Lost {
        let mut told = self.lock();
        let message = match &told.state {
            None => snapshot(&state),
            Some(before) => {
                let changed = patch::between(before, &state).unwrap_or_else(|| json!({}));
                Message::new("delta", &changed.to_string(), 0)
            }
        };
        let lost = told.push(&message, &state);
        told.state = Some(state);
        told.spoke = Some(Instant::now());
        lost
    }

    /// Ends the feed of everybody.
    pub(super) fn end(&self, why: &str) {
        let message = Message::new("end", &json!({"why": why}).to_string(), 0);
        let mut told = self.lock();
        for outbox in std::mem::take(&mut told.subscribers) {
            outbox.end(message.clone());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Told {
    fn push(&self, message: &Message, state: &Value) -> Lost {
        let mut lost = Lost::default();
        let mut whole = None;
        for outbox in &self.subscribers {
            // Written once for all who need it.
            lost += outbox.push(message, || {
                whole.get_or_insert_with(|| snapshot(state)).clone()
            });
        }
        lost
    }
}

fn snapshot(state: &Value) -> Message {
    Message::new("snapshot", &state.to_string(), 0)
}
