//! vllm-mlx: `mtp_drafts` and `mtp_accepted` in the root `generation_metadata` of the last chunk.

use super::number::{are_sent, required_count};
use super::object::Object;
use crate::record::{AcceptanceRecord, EngineName, Violation};

const COUNTS: [&str; 2] = ["mtp_drafts", "mtp_accepted"];

/// Metadata with drafts; the server leaves them out when there was none.
pub(super) fn claims(metadata: &dyn Object) -> bool {
    are_sent(metadata, COUNTS)
}

/// Reads claimed metadata. `mtp_drafts` counts drafted tokens, of which a step may have several: it is no step count.
pub(super) fn read(metadata: &dyn Object) -> Result<AcceptanceRecord, Violation> {
    let [drafted, accepted] = COUNTS;
    Ok(AcceptanceRecord::of_counts(
        EngineName::VllmMlx,
        required_count(metadata, accepted)?,
        required_count(metadata, drafted)?,
    ))
}
