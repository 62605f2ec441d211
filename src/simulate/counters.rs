//! The counters behind a simulated engine's own metrics page; they move step by step, as a real engine's do.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::acceptance::Step;
use super::generation::{Finish, Piece};
use super::log::Entry;

/// What one model did since the start.
#[derive(Clone, Debug, Default)]
pub(super) struct ModelCounters {
    pub(super) steps: u64,
    pub(super) drafted: u64,
    pub(super) accepted: u64,
    /// Steps that drafted at least so many tokens and one more, by position.
    pub(super) drafted_at: Vec<u64>,
    /// Steps that accepted at least so many tokens and one more, by position.
    pub(super) accepted_at: Vec<u64>,
    pub(super) prompt_tokens: u64,
    pub(super) generation_tokens: u64,
    pub(super) running: u64,
    pub(super) ended: Ended,
    /// What requests brought that ended by themselves, of streams and of others: some engines count only then.
    pub(super) finished: [Finished; 2],
    /// The steps since the last line of the engine's own running log, and those that its last line told of.
    window: Window,
    pub(super) last_window: Window,
}

/// Sums over requests that ended by themselves.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Finished {
    pub(super) requests: u64,
    pub(super) steps: u64,
    pub(super) prompt_tokens: u64,
    pub(super) generation_tokens: u64,
}

/// Sums over the few steps between two lines of an engine's running log.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Window {
    pub(super) steps: u64,
    pub(super) drafted: u64,
    pub(super) accepted: u64,
}

/// Steps between two lines of the running log: SGLang's `--decode-log-interval`.
const WINDOW: u64 = 40;

/// Sequences ended, by reason.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ended {
    pub(super) stop: u64,
    pub(super) length: u64,
    pub(super) abort: u64,
}

/// The counters of all models.
#[derive(Debug, Default)]
pub(super) struct Counters(Mutex<BTreeMap<String, ModelCounters>>);

impl Counters {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, ModelCounters>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves the counters of one model.
    pub(super) fn change(&self, model: &str, change: impl FnOnce(&mut ModelCounters)) {
        change(self.lock().entry(model.to_owned()).or_default());
    }

    /// The counters of one model as they are now.
    pub(super) fn of(&self, model: &str) -> ModelCounters {
        self.lock().get(model).cloned().unwrap_or_default()
    }
}

impl ModelCounters {
    /// Counts a piece that the engine has just made.
    pub(super) fn count(&mut self, piece: &Piece) {
        self.generation_tokens += piece.tokens.len() as u64;
        piece.steps.iter().for_each(|step| self.step(*step));
        match piece.finish {
            Some(Finish::Length) => self.ended.length += 1,
            Some(Finish::Abort) => self.ended.abort += 1,
            Some(_) => self.ended.stop += 1,
            None => {}
        }
    }

    /// Adds what another model did.
    pub(super) fn add(&mut self, other: &Self) {
        self.steps += other.steps;
        self.drafted += other.drafted;
        self.accepted += other.accepted;
        self.prompt_tokens += other.prompt_tokens;
        self.generation_tokens += other.generation_tokens;
        self.running += other.running;
        add_each(&mut self.drafted_at, &other.drafted_at);
        add_each(&mut self.accepted_at, &other.accepted_at);
    }

    /// Counts a request that has ended by itself.
    pub(super) fn finish(&mut self, entry: &Entry) {
        let finished = &mut self.finished[usize::from(entry.stream)];
        finished.requests += 1;
        finished.prompt_tokens += entry.prompt_tokens as u64;
        finished.generation_tokens += entry.completion_tokens() as u64;
        let steps = entry
            .sequences
            .iter()
            .map(|sequence| sequence.accepted.len() as u64);
        finished.steps += steps.sum::<u64>();
    }

    fn step(&mut self, step: Step) {
        self.steps += 1;
        self.drafted += u64::from(step.drafted);
        self.accepted += u64::from(step.accepted);
        rise(&mut self.drafted_at, step.drafted);
        rise(&mut self.accepted_at, step.accepted);
        self.window.steps += 1;
        self.window.drafted += u64::from(step.drafted);
        self.window.accepted += u64::from(step.accepted);
        if self.window.steps == WINDOW {
            self.last_window = std::mem::take(&mut self.window);
        }
    }
}

fn add_each(positions: &mut Vec<u64>, others: &[u64]) {
    positions.resize(positions.len().max(others.len()), 0);
    for (count, other) in positions.iter_mut().zip(others) {
        *count += other;
    }
}

fn rise(positions: &mut Vec<u64>, depth: u32) {
    let depth = depth as usize;
    if positions.len() < depth {
        positions.resize(depth, 0);
    }
    positions
        .iter_mut()
        .take(depth)
        .for_each(|count| *count += 1);
}
