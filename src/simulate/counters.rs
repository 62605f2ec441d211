//! The counters behind a simulated engine's own metrics page; they move step by step, as a real engine's do.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::acceptance::Step;
use super::generation::{Finish, Piece};

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
}

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

    fn step(&mut self, step: Step) {
        self.steps += 1;
        self.drafted += u64::from(step.drafted);
        self.accepted += u64::from(step.accepted);
        rise(&mut self.drafted_at, step.drafted);
        rise(&mut self.accepted_at, step.accepted);
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
