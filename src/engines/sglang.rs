//! SGLang: `sglext.spec_tokens_details` on the OpenAI routes, `meta_info.spec_*` on its own, with the names that older
//! releases and forks gave to the same counters. [`ordered`] has the shape with one entry per step.
//!
//! Three things to know. The drafts are no count but steps × configured width. `spec_accept_length` is completion tokens
//! per step and so no acceptance length: it is never read. On the OpenAI routes a counter that the engine does not have
//! is 0, not absent.

pub(super) mod ordered;

use super::number::{
    dense_histogram, optional_count, optional_count_as, optional_fraction, sent, sent_as,
};
use super::object::Object;
use crate::record::{AcceptanceHistogram, AcceptanceRecord, EngineName, Provenance, Violation};

const STEPS: &str = "spec_verify_ct";

const ACCEPTED: &[&str] = &[
    "spec_num_correct_drafts",
    "spec_accepted_drafts",
    "spec_accept_token_num",
    // TokenSpeed has this one too, so that it is no sign of SGLang.
    "spec_accepted_tokens",
];

/// In this release's name the quotient drafts / steps is the configured width; what older names hold is not known that
/// well.
const DRAFTED_NOW: &str = "spec_num_proposed_drafts";

const DRAFTED: &[&str] = &[DRAFTED_NOW, "spec_proposed_drafts", "spec_draft_token_num"];

const HISTOGRAM: &[&str] = &["spec_correct_drafts_histogram", "spec_accept_histogram"];

/// The names of the drafts and of the histogram are SGLang's alone; `spec_verify_ct` is TokenSpeed's too.
pub(super) fn claims(payload: &dyn Object) -> bool {
    sent_as(payload, DRAFTED).is_some() || sent_as(payload, HISTOGRAM).is_some()
}

/// Reads a claimed payload.
pub(super) fn read(payload: &dyn Object) -> Result<AcceptanceRecord, Violation> {
    let steps = optional_count(payload, STEPS)?;
    let accepted = optional_count_as(payload, ACCEPTED)?;
    let drafted = optional_count_as(payload, DRAFTED)?;
    let histogram = match sent_as(payload, HISTOGRAM) {
        Some(value) => dense_histogram(Some(value), None)?,
        None => AcceptanceHistogram::new(),
    };
    let counts_something = [steps, accepted, drafted]
        .into_iter()
        .flatten()
        .any(|count| count > 0);
    if !counts_something && !histogram.is_empty() {
        return Ok(without_counters(histogram, steps.is_some()));
    }
    let (Some(steps), Some(accepted), Some(drafted)) = (steps, accepted, drafted) else {
        return Err(Violation::BadNumber);
    };
    let mut record = AcceptanceRecord {
        provenance: if histogram.is_empty() && steps > 0 {
            Provenance::Counts
        } else {
            Provenance::Histogram
        },
        draft_acceptance_rate: optional_fraction(payload, "spec_accept_rate")?,
        acceptance_histogram: histogram,
        num_spec_steps: Some(steps),
        num_spec_tokens: sent(payload, DRAFTED_NOW)
            .and_then(|_| drafted.checked_div(steps))
            .filter(|width| width * steps == drafted),
        completion_tokens: optional_count(payload, "completion_tokens").ok().flatten(),
        nominal_drafts: true,
        ..AcceptanceRecord::of_counts(EngineName::Sglang, accepted, drafted)
    };
    record.mean_acceptance_length = record.derived_length();
    Ok(record)
}

/// With a configured width of 1 the engine has a histogram and no counters: every step accepted none of no drafts. Its
/// own route leaves the counters out, the OpenAI routes fill them with zeros.
fn without_counters(histogram: AcceptanceHistogram, zero_filled: bool) -> AcceptanceRecord {
    let steps = histogram
        .values()
        .fold(0u64, |sum, steps| sum.saturating_add(*steps));
    let mut record = AcceptanceRecord {
        provenance: Provenance::Histogram,
        acceptance_histogram: histogram,
        num_spec_steps: Some(steps),
        nominal_drafts: true,
        zero_filled,
        ..AcceptanceRecord::of_counts(EngineName::Sglang, 0, 0)
    };
    record.mean_acceptance_length = record.derived_length();
    record
}
