//! From an engine's own wire shape to acceptance records. Nothing outside this folder knows a payload's member names.
//!
//! [`Payloads`] takes what each JSON object of a response carries; [`read`] gives the verdict on all of it. There is one
//! file per wire shape, and the shapes' signatures are disjoint. vLLM's and TensorRT-LLM's payloads may stand in each
//! other's place: where one stands says nothing about whose it is.

mod adapter;
mod carrier;
mod hint;
mod llamacpp;
mod lmstudio;
mod mlx_vlm;
mod number;
mod object;
mod payloads;
mod sequence;
mod sglang;
mod tensorrt_llm;
mod tokenspeed;
mod usage_details;
mod vllm;
mod vllm_mlx;

use crate::observation::{Acceptance, Reason, Usage};
use crate::record::{AcceptanceRecord, EngineName};

use adapter::Reading;

pub use hint::hint;
pub use number::{count, fraction};
pub use object::{Json, List, Object, elements};
pub use payloads::Payloads;

/// What is read at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Read the prediction fields of the usage object as draft tokens. Off: OpenAI counts something else there.
    pub usage_details: bool,
}

/// What the payloads of one response come to.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Recorded, zero-step, malformed, ambiguous or absent.
    pub acceptance: Acceptance,
    /// What was wrong with a payload. With several sequences it may stand beside valid records: it then names the
    /// first sequence that was dropped.
    pub reason: Option<Reason>,
    /// The valid records in the order of their choices, zero-step ones included.
    pub records: Vec<AcceptanceRecord>,
    /// Whether a record contradicts itself.
    pub contradiction: bool,
    /// Whose payload it was, even if it was malformed.
    pub engine: Option<EngineName>,
}

/// The verdict on all payloads of a response, whose request asked for `n` sequences (choices × prompts).
///
/// Any valid record makes the response recorded, or zero-step if no valid one has steps; without one, malformed goes
/// before ambiguous. The usage object counts for the whole response, so that its completion tokens join a record only
/// when it is the only sequence, and does not tell its own.
pub fn read(payloads: &Payloads, usage: &Usage, n: u32) -> Verdict {
    conclude(payloads.clone(), usage, n)
}

/// The same for who needs the payloads no more.
pub fn conclude(payloads: Payloads, usage: &Usage, n: u32) -> Verdict {
    let is_only = n == 1 && payloads.len() == 1;
    let mut records = Vec::new();
    let mut contradiction = false;
    let mut malformed = None;
    let mut ambiguous = payloads.are_doubled().then_some(Reason::TwoPayloads);
    let mut engine = None;
    for (choice_index, reading, doubled) in payloads.into_readings() {
        match reading {
            Reading::Valid(mut record) => {
                engine = engine.or(Some(record.engine));
                if doubled {
                    ambiguous = ambiguous.or(Some(Reason::TwoPayloads));
                    continue;
                }
                record.choice_index = choice_index;
                contradiction |= record.note_contradiction();
                records.push(*record);
            }
            Reading::Malformed(claimed_by, violation) => {
                engine = engine.or(claimed_by);
                if doubled {
                    ambiguous = ambiguous.or(Some(Reason::TwoPayloads));
                } else {
                    malformed = malformed.or(Some(Reason::from(violation)));
                }
            }
            Reading::Contested => {
                ambiguous = ambiguous.or(Some(Reason::AmbiguousSignature));
            }
        }
    }
    if let ([record], true) = (&mut records[..], is_only) {
        record.completion_tokens = record.completion_tokens.or(usage.completion_tokens);
    }
    let acceptance = if records.iter().any(|record| !record.is_zero_step()) {
        Acceptance::Recorded
    } else if !records.is_empty() {
        Acceptance::ZeroStep
    } else if malformed.is_some() {
        Acceptance::Malformed
    } else if ambiguous.is_some() {
        Acceptance::Ambiguous
    } else {
        Acceptance::Absent
    };
    Verdict {
        acceptance,
        reason: malformed.or(ambiguous),
        records,
        contradiction,
        engine,
    }
}

#[cfg(test)]
mod tests;
