//! TensorRT-LLM (`per_request_spec_decode_stats`): `choices[i].speculative_decoding` on the finish chunk.

use super::number::{dense_histogram, optional_count, required_count, required_fraction};
use super::object::Object;
use crate::record::{AcceptanceRecord, EngineName, Provenance, Violation};

/// The totals' names are TensorRT-LLM's alone.
pub(super) fn claims(payload: &dyn Object) -> bool {
    payload.get("total_draft_tokens").is_some()
        && payload.get("total_accepted_draft_tokens").is_some()
}

/// Reads a claimed payload. The engine leaves the block out when nothing was drafted, so that a payload without steps
/// is none of a zero-step request but a broken one. It sends no mean (`avg_decoded_tokens_per_iter` beside it averages
/// iterations without drafts too), and its per-step arrays are never read, as in AIPerf.
pub(super) fn read(payload: &dyn Object) -> Result<AcceptanceRecord, Violation> {
    let num_spec_steps = required_count(payload, "num_spec_steps")?;
    if num_spec_steps == 0 {
        return Err(Violation::BadNumber);
    }
    let num_spec_tokens = optional_count(payload, "num_spec_tokens")?;
    let counts = AcceptanceRecord::of_counts(
        EngineName::TensorrtLlm,
        required_count(payload, "total_accepted_draft_tokens")?,
        required_count(payload, "total_draft_tokens")?,
    );
    let mut record = AcceptanceRecord {
        provenance: Provenance::Histogram,
        draft_acceptance_rate: Some(required_fraction(payload, "acceptance_rate")?),
        num_spec_steps: Some(num_spec_steps),
        acceptance_histogram: dense_histogram(
            payload.get("acceptance_histogram"),
            num_spec_tokens,
        )?,
        num_spec_tokens,
        ..counts
    };
    record.mean_acceptance_length = record.derived_length();
    Ok(record)
}
