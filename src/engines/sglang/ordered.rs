//! SGLang's `speculative_decoding_stats`, one entry per verify step. No release has it yet: only the two arrays and their
//! meaning are known, so only they are read.

use super::super::number::{optional_counts, sent};
use super::super::object::Object;
use crate::record::{
    AcceptanceHistogram, AcceptanceRecord, EngineName, LARGEST_EXACT_INTEGER, Provenance, Violation,
};

const VERIFIED: &str = "verify_lengths";
const ACCEPTED: &str = "accept_lengths";

/// The arrays' names are this shape's alone.
pub(in super::super) fn claims(payload: &dyn Object) -> bool {
    sent(payload, VERIFIED).is_some() && sent(payload, ACCEPTED).is_some()
}

/// Reads a claimed payload. Both arrays count tokens with the one that the target itself supplies; the drafts are one
/// less. The histogram is that of the ordered steps, and the drafts are exact here.
pub(in super::super) fn read(payload: &dyn Object) -> Result<AcceptanceRecord, Violation> {
    let drafted = drafts(payload, VERIFIED)?;
    let accepted = drafts(payload, ACCEPTED)?;
    let mut histogram = AcceptanceHistogram::new();
    for &count in &accepted {
        let count = u32::try_from(count).map_err(|_| Violation::BadNumber)?;
        *histogram.entry(count).or_default() += 1;
    }
    let counts =
        AcceptanceRecord::of_counts(EngineName::Sglang, total(&accepted)?, total(&drafted)?);
    let mut record = AcceptanceRecord {
        provenance: Provenance::PerStep,
        acceptance_histogram: histogram,
        num_spec_steps: Some(accepted.len() as u64),
        per_step_accepted: Some(accepted),
        per_step_drafted: Some(drafted),
        ..counts
    };
    record.mean_acceptance_length = record.derived_length();
    record.draft_acceptance_rate = record.derived_rate();
    Ok(record)
}

fn drafts(payload: &dyn Object, name: &str) -> Result<Vec<u64>, Violation> {
    optional_counts(payload, name)?
        .unwrap_or_default()
        .into_iter()
        .map(|length| length.checked_sub(1).ok_or(Violation::BadNumber))
        .collect()
}

fn total(steps: &[u64]) -> Result<u64, Violation> {
    steps
        .iter()
        .try_fold(0u64, |sum, count| sum.checked_add(*count))
        .filter(|sum| *sum <= LARGEST_EXACT_INTEGER)
        .ok_or(Violation::BadNumber)
}
