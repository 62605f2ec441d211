//! The prediction fields of `usage.completion_tokens_details`, which gateways and TabbyAPI fill with draft tokens. At
//! OpenAI they count a prediction that the client sent, so that they are read only where somebody said what they mean.

use super::number::{are_sent, required_count};
use super::object::Object;
use crate::record::{AcceptanceRecord, EngineName, LARGEST_EXACT_INTEGER, Violation};

const COUNTS: [&str; 2] = ["accepted_prediction_tokens", "rejected_prediction_tokens"];

/// Details with a prediction; many servers copy OpenAI's 0 and 0, which say nothing.
pub(super) fn claims(details: &dyn Object) -> bool {
    are_sent(details, COUNTS)
}

/// Reads claimed details.
pub(super) fn read(details: &dyn Object) -> Result<AcceptanceRecord, Violation> {
    let [accepted, rejected] = COUNTS;
    let accepted = required_count(details, accepted)?;
    let drafted = accepted + required_count(details, rejected)?;
    if drafted > LARGEST_EXACT_INTEGER {
        return Err(Violation::BadNumber);
    }
    Ok(AcceptanceRecord::of_counts(
        EngineName::UsageDetails,
        accepted,
        drafted,
    ))
}
