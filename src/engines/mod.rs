//! From an engine's own wire shape to acceptance records. Nothing outside this folder knows a payload's member names.
//!
//! [`Payloads`] takes what each JSON object of a response carries; [`read`] gives the verdict on all of it. The
//! signatures of the engines are disjoint, and where a payload stands says nothing about whose it is.

mod number;
mod payloads;
mod tensorrt_llm;
mod vllm;

use serde_json::{Map, Value};

use crate::observation::{Acceptance, Reason, Usage};
use crate::record::{AcceptanceRecord, EngineName, Violation};

pub use number::{count, fraction};
pub use payloads::Payloads;

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
    /// Whether a sent mean or rate contradicts its own counts.
    pub contradiction: bool,
    /// Whose payload it was, even if it was malformed.
    pub engine: Option<EngineName>,
}

/// One payload as its engine's adapter reads it.
#[derive(Clone, Debug, PartialEq)]
enum Reading {
    /// A record that keeps all identities.
    Valid(Box<AcceptanceRecord>),
    /// Claimed by this engine or by none, and broken.
    Malformed(Option<EngineName>, Violation),
    /// Claimed by more than one engine.
    Contested,
}

/// Offers a payload to every engine; exactly one must claim it.
fn interpret(payload: &Map<String, Value>) -> Reading {
    let (engine, record) = match (vllm::claims(payload), tensorrt_llm::claims(payload)) {
        (true, true) => return Reading::Contested,
        (true, false) => (EngineName::Vllm, vllm::read(payload)),
        (false, true) => (EngineName::TensorrtLlm, tensorrt_llm::read(payload)),
        (false, false) => return Reading::Malformed(None, Violation::BadNumber),
    };
    match record.and_then(|record| record.check().map(|()| record)) {
        Ok(record) => Reading::Valid(Box::new(record)),
        Err(violation) => Reading::Malformed(Some(engine), violation),
    }
}

/// The verdict on all payloads of a response, whose request asked for `n` sequences (choices × prompts).
///
/// Any valid record makes the response recorded, or zero-step if no valid one has steps; without one, malformed goes
/// before ambiguous. The usage object counts for the whole response, so that its completion tokens join a record only
/// when it is the only sequence.
pub fn read(payloads: &Payloads, usage: &Usage, n: u32) -> Verdict {
    let mut records = Vec::new();
    let mut contradiction = false;
    let mut malformed = None;
    let mut ambiguous = payloads.are_doubled().then_some(Reason::TwoPayloads);
    let mut engine = None;
    for (choice_index, reading, doubled) in payloads.readings() {
        match reading {
            Reading::Valid(record) => {
                engine = engine.or(Some(record.engine));
                if doubled {
                    ambiguous = ambiguous.or(Some(Reason::TwoPayloads));
                    continue;
                }
                let mut record = AcceptanceRecord::clone(record);
                record.choice_index = choice_index;
                contradiction |= record.note_contradiction();
                records.push(record);
            }
            Reading::Malformed(claimed_by, violation) => {
                engine = engine.or(*claimed_by);
                if doubled {
                    ambiguous = ambiguous.or(Some(Reason::TwoPayloads));
                } else {
                    malformed = malformed.or(Some(Reason::from(*violation)));
                }
            }
            Reading::Contested => {
                ambiguous = ambiguous.or(Some(Reason::AmbiguousSignature));
            }
        }
    }
    if let ([record], true) = (&mut records[..], n == 1 && payloads.len() == 1) {
        record.completion_tokens = usage.completion_tokens;
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
