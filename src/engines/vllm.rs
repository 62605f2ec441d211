//! vLLM (0.29 and later, `--per-request-spec-decode-metrics`): root `metrics.speculative_decoding`.

use serde_json::{Map, Value};

use super::number::{
    histogram, optional_count, optional_counts, required_count, required_fraction,
};
use crate::record::{AcceptanceRecord, EngineName, Provenance, Violation};

/// The counts' names are vLLM's alone; the histogram and the steps are not, TensorRT-LLM has them too.
pub(super) fn claims(payload: &Map<String, Value>) -> bool {
    payload.contains_key("num_draft_tokens") && payload.contains_key("num_accepted_draft_tokens")
}

/// Reads a claimed payload. A zero-step request has one too: no steps, an all-zero histogram, mean 1 and rate 0.
pub(super) fn read(payload: &Map<String, Value>) -> Result<AcceptanceRecord, Violation> {
    let num_spec_tokens = optional_count(payload, "num_spec_tokens")?;
    let per_step_accepted = optional_counts(payload, "per_step_accepted")?;
    Ok(AcceptanceRecord {
        engine: EngineName::Vllm,
        provenance: match per_step_accepted {
            Some(_) => Provenance::PerStep,
            None => Provenance::Histogram,
        },
        choice_index: None,
        mean_acceptance_length: Some(required_fraction(payload, "mean_acceptance_length")?),
        draft_acceptance_rate: Some(required_fraction(payload, "draft_acceptance_rate")?),
        num_accepted_draft_tokens: required_count(payload, "num_accepted_draft_tokens")?,
        num_draft_tokens: required_count(payload, "num_draft_tokens")?,
        num_spec_steps: Some(required_count(payload, "num_spec_steps")?),
        acceptance_histogram: histogram(payload, num_spec_tokens)?,
        num_spec_tokens,
        completion_tokens: None,
        per_step_accepted,
        per_step_drafted: optional_counts(payload, "per_step_drafted")?,
        recomputed: None,
    })
}
