//! mlx-vlm: llama.cpp's names in the root `timings`, and `draft_rounds`, which are verify steps.
//!
//! With several requests in flight the server shares its counters out wrongly: each request then shows those of all. The
//! drafts per round vary, so that their quotient is no k.

use super::llamacpp;
use super::number::{optional_count, sent};
use super::object::Object;
use crate::record::{AcceptanceRecord, EngineName, Violation};

/// Timings with drafts and rounds; all are null without a drafter.
pub(super) fn claims(timings: &dyn Object) -> bool {
    timings.get("draft_rounds").is_some()
        && sent(timings, "draft_n").is_some()
        && sent(timings, "draft_n_accepted").is_some()
}

/// Reads claimed timings.
pub(super) fn read(timings: &dyn Object) -> Result<AcceptanceRecord, Violation> {
    let mut record = llamacpp::read_as(timings, EngineName::MlxVlm)?;
    record.num_spec_steps = optional_count(timings, "draft_rounds")?;
    record.mean_acceptance_length = record.derived_length();
    Ok(record)
}
