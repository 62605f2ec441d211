//! What one part of a server has counted.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Positions that are told apart.
pub(super) const MOST_POSITIONS: u32 = 64;

/// Who counted: one model on one rank.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Source {
    /// Whose series they are.
    pub engine: String,
    /// The engine's `model_name`; absent where it names none.
    pub model: Option<String>,
    /// The data-parallel rank, or whatever else tells copies of the engine apart on one page; absent where nothing does.
    pub rank: Option<String>,
}

/// Counters. What the page does not have is absent, never 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Verify steps.
    pub steps: Option<u64>,
    /// Drafts put before the verifier.
    pub drafted: Option<u64>,
    /// Drafts that it kept.
    pub accepted: Option<u64>,
    /// Steps that accepted the draft at a position, counted from 0.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub accepted_at: BTreeMap<u32, u64>,
    /// Steps that drafted at a position.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub drafted_at: BTreeMap<u32, u64>,
    /// Tokens generated.
    pub generation_tokens: Option<u64>,
    /// Requests ended.
    pub requests: Option<u64>,
}

impl Counts {
    /// Adds other counts.
    pub fn add(&mut self, other: &Counts) {
        let add = |own: &mut Option<u64>, other: Option<u64>| {
            if let Some(other) = other {
                *own = Some(own.unwrap_or(0).saturating_add(other));
            }
        };
        add(&mut self.steps, other.steps);
        add(&mut self.drafted, other.drafted);
        add(&mut self.accepted, other.accepted);
        add(&mut self.generation_tokens, other.generation_tokens);
        add(&mut self.requests, other.requests);
        add_each(&mut self.accepted_at, &other.accepted_at);
        add_each(&mut self.drafted_at, &other.drafted_at);
    }

    /// What came on top of `before`. A counter that `before` lacked began at 0.
    #[must_use]
    pub fn since(&self, before: &Counts) -> Counts {
        let since = |now: Option<u64>, before: Option<u64>| {
            now.map(|now| now.saturating_sub(before.unwrap_or(0)))
        };
        Counts {
            steps: since(self.steps, before.steps),
            drafted: since(self.drafted, before.drafted),
            accepted: since(self.accepted, before.accepted),
            generation_tokens: since(self.generation_tokens, before.generation_tokens),
            requests: since(self.requests, before.requests),
            accepted_at: since_each(&self.accepted_at, &before.accepted_at),
            drafted_at: since_each(&self.drafted_at, &before.drafted_at),
        }
    }

    /// Whether a counter is lower than in `before`, which only a new start of the engine explains.
    pub fn fell_below(&self, before: &Counts) -> bool {
        let fell = |now: Option<u64>, before: Option<u64>| now.is_some() && now < before;
        let fell_at = |now: &BTreeMap<u32, u64>, before: &BTreeMap<u32, u64>| {
            now.iter()
                .any(|(position, count)| before.get(position) > Some(count))
        };
        fell(self.steps, before.steps)
            || fell(self.drafted, before.drafted)
            || fell(self.accepted, before.accepted)
            || fell(self.generation_tokens, before.generation_tokens)
            || fell(self.requests, before.requests)
            || fell_at(&self.accepted_at, &before.accepted_at)
            || fell_at(&self.drafted_at, &before.drafted_at)
    }

    /// Whether there is any counter of speculation.
    pub fn speculates(&self) -> bool {
        self.steps.is_some() || self.drafted.is_some() || self.accepted.is_some()
    }

    /// Tokens per step, the bonus token included: 1 + accepted / steps; absent without steps.
    pub fn length(&self) -> Option<f64> {
        let steps = self.steps.filter(|&steps| steps > 0)?;
        Some(1.0 + self.accepted_in_steps()? as f64 / steps as f64)
    }

    /// Accepted / drafted, 0..1; absent without drafts.
    pub fn rate(&self) -> Option<f64> {
        let drafted = self.drafted.filter(|&drafted| drafted > 0)?;
        Some(self.accepted? as f64 / drafted as f64)
    }

    /// Where the steps are those of the positions, which move later than the totals, so are the accepted drafts.
    fn accepted_in_steps(&self) -> Option<u64> {
        if self.drafted_at.is_empty() {
            return self.accepted;
        }
        let positions = self.accepted_at.values();
        Some(positions.fold(0, |sum: u64, count| sum.saturating_add(*count)))
    }

    /// Steps by number of accepted drafts, out of the counts by position; absent where those are not known, or do not
    /// add up to the accepted drafts.
    pub fn histogram(&self) -> Option<BTreeMap<u32, u64>> {
        let steps = self.steps.filter(|&steps| steps > 0)?;
        let deepest = self.accepted_at.keys().next_back().copied();
        let at = |position: u32| self.accepted_at.get(&position).copied().unwrap_or(0);
        let mut histogram = BTreeMap::new();
        let (mut left, mut accepted) = (steps, 0_u64);
        for position in 0..=deepest.unwrap_or(0) {
            let next = at(position);
            histogram.insert(position, left.checked_sub(next)?);
            accepted = accepted.saturating_add(next);
            left = next;
        }
        histogram.insert(deepest.map_or(1, |deepest| deepest + 1), left);
        histogram.retain(|_, steps| *steps > 0);
        (Some(accepted) == self.accepted_in_steps()).then_some(histogram)
    }
}

fn add_each(own: &mut BTreeMap<u32, u64>, other: &BTreeMap<u32, u64>) {
    for (position, count) in other {
        let own = own.entry(*position).or_default();
        *own = own.saturating_add(*count);
    }
}

fn since_each(now: &BTreeMap<u32, u64>, before: &BTreeMap<u32, u64>) -> BTreeMap<u32, u64> {
    let now = now.iter();
    now.map(|(position, count)| {
        let before = before.get(position).copied().unwrap_or(0);
        (*position, count.saturating_sub(before))
    })
    .collect()
}
