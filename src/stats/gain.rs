//! What drafting bought: the share of the output that came from drafts, what was wasted, and how many passes drafted.

use serde::{Deserialize, Serialize};

use super::pooled::{Pooled, countable_steps, grow};
use crate::record::AcceptanceRecord;

/// Sums over the records that tell their completion tokens and their steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// Such records.
    pub records: u64,
    /// Σ completion tokens.
    pub completion_tokens: u64,
    /// Σ accepted drafts.
    pub accepted: u64,
    /// Σ verify steps.
    pub steps: u64,
    /// Drafts of the records that tell their steps, with or without completion tokens.
    pub drafted_in_steps: u64,
}

impl Output {
    /// Adds a record that is not zero-step.
    pub(super) fn add(&mut self, record: &AcceptanceRecord) {
        let Some(steps) = countable_steps(record) else {
            return;
        };
        if !record.nominal_drafts {
            grow(&mut self.drafted_in_steps, record.num_draft_tokens);
        }
        // One token at least came from the prompt's own pass.
        if let Some(tokens) = record.completion_tokens.filter(|&tokens| tokens > 0) {
            grow(&mut self.records, 1);
            grow(&mut self.completion_tokens, tokens);
            grow(&mut self.accepted, record.num_accepted_draft_tokens);
            grow(&mut self.steps, steps);
        }
    }

    /// Adds what another one holds.
    pub(super) fn merge(&mut self, other: &Output) {
        grow(&mut self.records, other.records);
        grow(&mut self.completion_tokens, other.completion_tokens);
        grow(&mut self.accepted, other.accepted);
        grow(&mut self.steps, other.steps);
        grow(&mut self.drafted_in_steps, other.drafted_in_steps);
    }

    /// Passes of the target model behind the prompt's own: completion tokens − 1 − accepted, one token each beside the
    /// drafts. Unknown where it is below the steps, as it is when accepted drafts were cut off at the end of a reply.
    fn passes(&self) -> Option<f64> {
        let tokens = self.completion_tokens.checked_sub(self.records)?;
        let passes = tokens.checked_sub(self.accepted)?;
        (passes > 0 && passes >= self.steps).then_some(passes as f64)
    }
}

/// The figures; absent where unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Gain {
    /// Accepted drafts / completion tokens, 0..1.
    pub draft_token_share: Option<f64>,
    /// Rejected drafts per accepted one.
    pub wasted_per_accepted: Option<f64>,
    /// Steps / passes, 0..1: passes of the target model that had drafts to verify. An estimate.
    pub passes_that_drafted: Option<f64>,
    /// Tokens per pass of the target model, passes without drafts included. An estimate.
    pub tokens_per_pass: Option<f64>,
    /// Drafts per verify step.
    pub drafts_per_step: Option<f64>,
}

/// The figures of a pool.
pub fn of(pooled: &Pooled, output: &Output) -> Gain {
    let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
    let passes = output.passes();
    Gain {
        draft_token_share: share(
            output.accepted.min(output.completion_tokens),
            output.completion_tokens,
        ),
        // A nominal count of drafts can be below the accepted ones: then nothing is known.
        wasted_per_accepted: pooled
            .drafted
            .checked_sub(pooled.accepted)
            .and_then(|wasted| share(wasted, pooled.accepted)),
        passes_that_drafted: passes.map(|passes| output.steps as f64 / passes),
        tokens_per_pass: passes
            .map(|passes| (output.completion_tokens - output.records) as f64 / passes),
        drafts_per_step: share(output.drafted_in_steps, pooled.steps)
            .filter(|&drafts| drafts > 0.0),
    }
}

#[cfg(test)]
mod tests;
