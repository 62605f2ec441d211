//! llama.cpp's server: `draft_n` and `draft_n_accepted` among the root `timings`, totals of one sequence so far.
//!
//! It tells no steps: predicted − accepted is not their number, since a whole run counts as accepted even if generation
//! stopped inside it.

use super::number::{are_sent, optional_count, required_count};
use super::object::Object;
use crate::record::{AcceptanceRecord, EngineName, Violation};

const COUNTS: [&str; 2] = ["draft_n", "draft_n_accepted"];

/// Timings with drafts; with `draft_rounds` among them they are mlx-vlm's. The server leaves both out when nothing was
/// drafted.
pub(super) fn claims(timings: &dyn Object) -> bool {
    are_sent(timings, COUNTS) && timings.get("draft_rounds").is_none()
}

/// Reads claimed timings.
pub(super) fn read(timings: &dyn Object) -> Result<AcceptanceRecord, Violation> {
    read_as(timings, EngineName::LlamaCpp)
}

/// Reads the counts that mlx-vlm has under the same names.
pub(super) fn read_as(
    timings: &dyn Object,
    engine: EngineName,
) -> Result<AcceptanceRecord, Violation> {
    let [drafted, accepted] = COUNTS;
    let counts = AcceptanceRecord::of_counts(
        engine,
        required_count(timings, accepted)?,
        required_count(timings, drafted)?,
    );
    Ok(AcceptanceRecord {
        completion_tokens: optional_count(timings, "predicted_n").ok().flatten(),
        ..counts
    })
}
