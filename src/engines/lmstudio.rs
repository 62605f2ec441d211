//! LM Studio: draft token counts in root `stats` (its OpenAI route, and older builds of its own), or in `usage` (newer
//! builds of its own).

use super::number::{are_sent, optional_count, required_count};
use super::object::Object;
use crate::record::{AcceptanceRecord, EngineName, Violation};

const ACCEPTED: &str = "accepted_draft_tokens_count";

/// What did not become part of the reply: turned down by the target, or never shown to it.
const NOT_ACCEPTED: [&str; 2] = ["rejected_draft_tokens_count", "ignored_draft_tokens_count"];

const TOTAL: &str = "total_draft_tokens_count";

/// The counts' names are LM Studio's alone.
pub(super) fn claims(payload: &dyn Object) -> bool {
    [TOTAL, NOT_ACCEPTED[0], NOT_ACCEPTED[1]]
        .iter()
        .any(|name| are_sent(payload, [ACCEPTED, *name]))
}

/// Reads a claimed payload. The total counts drafts that were never verified too.
pub(super) fn read(payload: &dyn Object) -> Result<AcceptanceRecord, Violation> {
    let accepted = required_count(payload, ACCEPTED)?;
    let mut sum = accepted;
    for name in NOT_ACCEPTED {
        // No overflow: each is at most 2^53.
        sum += optional_count(payload, name)?.unwrap_or(0);
    }
    let drafted = optional_count(payload, TOTAL)?.unwrap_or(sum);
    Ok(AcceptanceRecord::of_counts(
        EngineName::LmStudio,
        accepted,
        drafted,
    ))
}
