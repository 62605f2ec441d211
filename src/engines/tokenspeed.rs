//! TokenSpeed: `meta_info.spec_accepted_tokens` and `spec_draft_tokens` of a finished sequence.

use super::number::{optional_count, required_count, sent};
use super::object::Object;
use crate::record::{AcceptanceRecord, EngineName, Violation};

/// The drafts' name is TokenSpeed's alone; the others are SGLang's too, or may be.
pub(super) fn claims(meta_info: &dyn Object) -> bool {
    sent(meta_info, "spec_draft_tokens").is_some()
        && sent(meta_info, "spec_accepted_tokens").is_some()
}

/// Reads a claimed payload. The server makes its accepted tokens out of completion tokens and steps; on a short reply they
/// come out below zero, which is no count. Its drafts are steps × configured width.
pub(super) fn read(meta_info: &dyn Object) -> Result<AcceptanceRecord, Violation> {
    let counts = AcceptanceRecord::of_counts(
        EngineName::TokenSpeed,
        required_count(meta_info, "spec_accepted_tokens")?,
        required_count(meta_info, "spec_draft_tokens")?,
    );
    let mut record = AcceptanceRecord {
        num_spec_steps: optional_count(meta_info, "spec_verify_ct")?,
        completion_tokens: optional_count(meta_info, "completion_tokens")
            .ok()
            .flatten(),
        nominal_drafts: true,
        ..counts
    };
    record.mean_acceptance_length = record.derived_length();
    Ok(record)
}
