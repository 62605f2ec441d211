//! vLLM (0.29 and later, `--per-request-spec-decode-metrics`): root `metrics.speculative_decoding`. And the shape that
//! stood at each choice before that was merged, `speculative_decoding_stats`, which forks still send.

use super::number::{
    dense_histogram, optional_count, optional_counts, required_count, required_fraction,
    sparse_histogram,
};
use super::object::{Json, Object};
use crate::record::{AcceptanceHistogram, AcceptanceRecord, EngineName, Provenance, Violation};

/// The counts' names are vLLM's alone; the histogram and the steps are not, TensorRT-LLM has them too.
pub(super) fn claims(payload: &dyn Object) -> bool {
    payload.get("num_draft_tokens").is_some() && payload.get("num_accepted_draft_tokens").is_some()
}

/// Reads a claimed payload. A zero-step request has one too: no steps, an all-zero histogram, mean 1 and rate 0.
pub(super) fn read(payload: &dyn Object) -> Result<AcceptanceRecord, Violation> {
    read_with(payload, dense_histogram)
}

/// Reads a claimed payload of the older shape: its histogram is an object without the empty buckets.
pub(super) fn read_older(payload: &dyn Object) -> Result<AcceptanceRecord, Violation> {
    read_with(payload, |value, k| match value {
        Some(Json::List(_)) => dense_histogram(value, k),
        _ => sparse_histogram(value, k),
    })
}

fn read_with(
    payload: &dyn Object,
    histogram: fn(Option<Json<'_>>, Option<u64>) -> Result<AcceptanceHistogram, Violation>,
) -> Result<AcceptanceRecord, Violation> {
    let num_spec_tokens = optional_count(payload, "num_spec_tokens")?;
    let per_step_accepted = optional_counts(payload, "per_step_accepted")?;
    let counts = AcceptanceRecord::of_counts(
        EngineName::Vllm,
        required_count(payload, "num_accepted_draft_tokens")?,
        required_count(payload, "num_draft_tokens")?,
    );
    Ok(AcceptanceRecord {
        provenance: match per_step_accepted {
            Some(_) => Provenance::PerStep,
            None => Provenance::Histogram,
        },
        mean_acceptance_length: Some(required_fraction(payload, "mean_acceptance_length")?),
        draft_acceptance_rate: Some(required_fraction(payload, "draft_acceptance_rate")?),
        num_spec_steps: Some(required_count(payload, "num_spec_steps")?),
        acceptance_histogram: histogram(payload.get("acceptance_histogram"), num_spec_tokens)?,
        num_spec_tokens,
        per_step_accepted,
        per_step_drafted: optional_counts(payload, "per_step_drafted")?,
        ..counts
    })
}
