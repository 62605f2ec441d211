//! The acceptance record: what an engine said about one generated sequence, in engine-neutral numbers.
//!
//! An adapter in `engines` builds a [`AcceptanceRecord`] from its wire shape; [`AcceptanceRecord::check`] holds the
//! identities that every honest record keeps. A record that breaks one is never pooled: it is counted by the
//! [`Violation`]'s name.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Largest integer that every JSON reader keeps exactly (2^53); a larger count is not believed.
pub const LARGEST_EXACT_INTEGER: u64 = 1 << 53;

/// Relative difference above which a sent mean or rate contradicts its own counts.
pub const CONTRADICTION_TOLERANCE: f64 = 1e-6;

/// The wire shape that a record came in.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum EngineName {
    /// vLLM: root `metrics.speculative_decoding`.
    Vllm,
    /// TensorRT-LLM: `choices[i].speculative_decoding`.
    TensorrtLlm,
    /// SGLang: root `sglext`, and `meta_info.spec_*` on its own route.
    Sglang,
    /// llama.cpp's server: root `timings.draft_n`.
    #[serde(rename = "llamacpp")]
    #[strum(serialize = "llamacpp")]
    LlamaCpp,
    /// mlx-vlm: llama.cpp's `timings`, and `draft_rounds` among them.
    MlxVlm,
    /// vllm-mlx: root `generation_metadata`.
    VllmMlx,
    /// TokenSpeed: `meta_info.spec_draft_tokens`.
    #[serde(rename = "tokenspeed")]
    #[strum(serialize = "tokenspeed")]
    TokenSpeed,
    /// LM Studio: draft token counts in `stats` or `usage`.
    #[serde(rename = "lmstudio")]
    #[strum(serialize = "lmstudio")]
    LmStudio,
    /// Whoever fills the prediction fields of `usage.completion_tokens_details`: a gateway, TabbyAPI, GenieX.
    UsageDetails,
}

impl EngineName {
    /// The name in JSON, in `--by` and in the Prometheus label `backend`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// How much of a record the engine really said; the first is the strongest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Provenance {
    /// Every verify step in order.
    PerStep,
    /// Steps by number of accepted drafts.
    Histogram,
    /// Totals only.
    Counts,
}

/// Steps by number of accepted drafts: `h[j]` steps accepted exactly `j`. Sparse: no zero buckets.
pub type AcceptanceHistogram = BTreeMap<u32, u64>;

/// The numbers of one generated sequence. Field names are AIPerf's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AcceptanceRecord {
    /// Whose wire shape it was.
    pub engine: EngineName,
    /// How much the engine really said.
    pub provenance: Provenance,
    /// Index of the choice that carried it; absent where the engine reports for the whole response.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub choice_index: Option<u32>,
    /// Tokens per verify step, the bonus token included: as sent, or derived where the engine sends none.
    pub mean_acceptance_length: Option<f64>,
    /// Accepted / drafted as sent, 0..1.
    pub draft_acceptance_rate: Option<f64>,
    /// Steps by number of accepted drafts; empty when the engine gives counts only.
    pub acceptance_histogram: AcceptanceHistogram,
    /// Draft tokens that the verifier kept (never the bonus token).
    pub num_accepted_draft_tokens: u64,
    /// Draft tokens put before the verifier.
    pub num_draft_tokens: u64,
    /// Verify steps; absent when the engine doesn't say.
    pub num_spec_steps: Option<u64>,
    /// k, the most drafts a step may carry; absent when there is no fixed bound.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub num_spec_tokens: Option<u64>,
    /// Completion tokens of the usage object; absent when it can't be told for this sequence.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub completion_tokens: Option<u64>,
    /// Accepted drafts of each step in order.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub per_step_accepted: Option<Vec<u64>>,
    /// Drafts of each step in order.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub per_step_drafted: Option<Vec<u64>>,
    /// The values that the counts give, where what the engine sent contradicts them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub recomputed: Option<Recomputed>,
    /// The drafts are steps × configured width, not what was really put before the verifier: with a width that adapts
    /// the rate is off, and can even be above 1.
    #[serde(skip_serializing_if = "is_false", default)]
    pub nominal_drafts: bool,
    /// The engine sent zeros where it had no counter, and its histogram tells otherwise: the steps are the histogram's.
    #[serde(skip_serializing_if = "is_false", default)]
    pub zero_filled: bool,
}

fn is_false(mark: &bool) -> bool {
    !mark
}

/// Mean and rate as the record's own counts give them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recomputed {
    /// 1 + accepted / steps.
    pub mean_acceptance_length: Option<f64>,
    /// Accepted / drafted, 0..1.
    pub draft_acceptance_rate: Option<f64>,
}

/// An identity that a record breaks, or a value that can't be read. Names are the `reason` of the observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::IntoStaticStr, thiserror::Error)]
#[strum(serialize_all = "snake_case")]
pub enum Violation {
    /// Σ h\[j\] ≠ steps.
    #[error("the histogram does not add up to the steps")]
    IdentitySum,
    /// Σ j·h\[j\] ≠ accepted.
    #[error("the histogram's weighted sum is not the accepted count")]
    IdentityWeighted,
    /// A per-step array has another length or sum than the counts, or a step accepted more than it drafted.
    #[error("a per-step array contradicts the counts")]
    IdentityPerStep,
    /// accepted > drafted, unless the drafts are nominal.
    #[error("more drafts accepted than drafted")]
    AcceptedGtDrafted,
    /// The histogram is not k + 1 long although k is given.
    #[error("the histogram is not k + 1 long")]
    HistogramLength,
    /// No step, yet drafts.
    #[error("drafts without a verify step")]
    ZeroStepsWithDrafts,
    /// A member is missing or is not a number of the kind it should be.
    #[error("a number is missing or unreadable")]
    BadNumber,
}

impl AcceptanceRecord {
    /// A record of totals alone.
    pub fn of_counts(engine: EngineName, accepted: u64, drafted: u64) -> Self {
        Self {
            engine,
            provenance: Provenance::Counts,
            choice_index: None,
            mean_acceptance_length: None,
            draft_acceptance_rate: None,
            acceptance_histogram: AcceptanceHistogram::new(),
            num_accepted_draft_tokens: accepted,
            num_draft_tokens: drafted,
            num_spec_steps: None,
            num_spec_tokens: None,
            completion_tokens: None,
            per_step_accepted: None,
            per_step_drafted: None,
            recomputed: None,
            nominal_drafts: false,
            zero_filled: false,
        }
    }

    /// Checks the identities of an honest record, in the order that AIPerf checks them.
    ///
    /// # Errors
    ///
    /// The first [`Violation`] found.
    pub fn check(&self) -> Result<(), Violation> {
        if let Some(steps) = self.num_spec_steps {
            if self.provenance != Provenance::Counts {
                let sum: u128 = self
                    .acceptance_histogram
                    .values()
                    .map(|&n| u128::from(n))
                    .sum();
                if sum != u128::from(steps) {
                    return Err(Violation::IdentitySum);
                }
                let weighted: u128 = self
                    .acceptance_histogram
                    .iter()
                    .map(|(&j, &n)| u128::from(j) * u128::from(n))
                    .sum();
                if weighted != u128::from(self.num_accepted_draft_tokens) {
                    return Err(Violation::IdentityWeighted);
                }
            }
            if steps == 0 && self.num_draft_tokens > 0 {
                return Err(Violation::ZeroStepsWithDrafts);
            }
        }
        // A nominal count of drafts proves nothing against the accepted ones.
        if self.num_accepted_draft_tokens > self.num_draft_tokens && !self.nominal_drafts {
            return Err(Violation::AcceptedGtDrafted);
        }
        self.check_per_step()
    }

    fn check_per_step(&self) -> Result<(), Violation> {
        let fits = |array: &Option<Vec<u64>>, total: u64| match array {
            None => true,
            Some(values) => {
                self.num_spec_steps
                    .is_none_or(|steps| values.len() as u64 == steps)
                    && values.iter().map(|&n| u128::from(n)).sum::<u128>() == u128::from(total)
            }
        };
        let ordered = match (&self.per_step_accepted, &self.per_step_drafted) {
            (Some(accepted), Some(drafted)) => accepted.iter().zip(drafted).all(|(a, d)| a <= d),
            _ => true,
        };
        if fits(&self.per_step_accepted, self.num_accepted_draft_tokens)
            && fits(&self.per_step_drafted, self.num_draft_tokens)
            && ordered
        {
            Ok(())
        } else {
            Err(Violation::IdentityPerStep)
        }
    }

    /// Whether speculation never ran for this sequence: a valid payload with no verify step.
    pub fn is_zero_step(&self) -> bool {
        self.num_spec_steps == Some(0)
    }

    /// 1 + accepted / steps; absent without steps.
    pub fn derived_length(&self) -> Option<f64> {
        match self.num_spec_steps {
            Some(steps) if steps > 0 => {
                Some(1.0 + self.num_accepted_draft_tokens as f64 / steps as f64)
            }
            _ => None,
        }
    }

    /// Accepted / drafted, 0..1; absent without drafts.
    pub fn derived_rate(&self) -> Option<f64> {
        (self.num_draft_tokens > 0)
            .then(|| self.num_accepted_draft_tokens as f64 / self.num_draft_tokens as f64)
    }

    /// (accepted + steps) / (drafted + steps): tokens won per token put through the target model.
    pub fn accepted_per_verified(&self) -> Option<f64> {
        let steps = self.num_spec_steps?;
        let verified = self.num_draft_tokens as f64 + steps as f64;
        (verified > 0.0).then(|| (self.num_accepted_draft_tokens as f64 + steps as f64) / verified)
    }

    /// Compares the sent mean and rate with the counts and keeps the counts' values where they differ by more than
    /// [`CONTRADICTION_TOLERANCE`]. Returns whether the record contradicts itself, see
    /// [`AcceptanceRecord::is_contradictory`].
    pub fn note_contradiction(&mut self) -> bool {
        let differs = |sent: Option<f64>, derived: Option<f64>| match (sent, derived) {
            (Some(sent), Some(derived)) => {
                (sent - derived).abs() > CONTRADICTION_TOLERANCE * derived.abs().max(1e-12)
            }
            _ => false,
        };
        let (length, rate) = (self.derived_length(), self.derived_rate());
        if differs(self.mean_acceptance_length, length) || differs(self.draft_acceptance_rate, rate)
        {
            self.recomputed = Some(Recomputed {
                mean_acceptance_length: length,
                draft_acceptance_rate: rate,
            });
        }
        self.is_contradictory()
    }

    /// Whether the engine contradicts itself in this record: a sent mean or rate against the counts, more accepted
    /// than a nominal count of drafts, or zeros against a histogram.
    pub fn is_contradictory(&self) -> bool {
        self.recomputed.is_some()
            || self.num_accepted_draft_tokens > self.num_draft_tokens
            || self.zero_filled
    }
}

#[cfg(test)]
mod tests;
