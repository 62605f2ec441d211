//! Why a successful response carried no acceptance payload: the most specific reason that the tap can name.

use super::injection::Added;
use super::reply::Reply;
use super::request::RequestFacts;
use crate::observation::{Outcome, Reason, Route};
use crate::record::EngineName;

/// What is known of the exchange beside its request and its reply.
pub(super) struct Circumstances {
    pub(super) route: Route,
    pub(super) outcome: Outcome,
    /// What was added to the request.
    pub(super) added: Added,
    /// Injection is off.
    pub(super) inject_off: bool,
    /// Any payload ever came from this upstream.
    pub(super) payload_seen: bool,
    pub(super) engine: Option<EngineName>,
}

/// The reason, by falling precision.
pub(super) fn reason(request: &RequestFacts, reply: &Reply, known: &Circumstances) -> Reason {
    match known.outcome {
        Outcome::Cancelled => return Reason::Cancelled,
        Outcome::Truncated => return Reason::Truncated,
        Outcome::ErrorEvent => return Reason::ErrorEvent,
        Outcome::Complete | Outcome::ErrorStatus => {}
    }
    let finished_by = |name: &str| reply.finish_reasons.iter().any(|reason| reason == name);
    let carrier = carrier(request, reply, known);
    // vLLM reports for single sequences only; others tell of each.
    let is_vllm = matches!(known.engine, None | Some(EngineName::Vllm));
    if request.prefill_leg {
        Reason::PrefillLeg
    } else if matches!(known.route, Route::Responses | Route::Messages) {
        Reason::RouteWithoutPayload
    } else if is_vllm && request.beam_search {
        Reason::BeamSearch
    } else if is_vllm && request.n > 1 {
        Reason::NGt1
    } else if is_vllm && request.prompts > 1 {
        Reason::MultiPrompt
    } else if finished_by("abort") {
        Reason::Aborted
    } else if is_vllm && request.has_stop && finished_by("stop") && reply.usage_seen {
        Reason::StopString
    } else if carrier != Carrier::Came && known.inject_off {
        Reason::InjectOff
    } else if carrier == Carrier::NotAskedFor {
        Reason::InjectSkipped
    } else if carrier == Carrier::Missing {
        Reason::NoUsageEvent
    } else if !known.payload_seen {
        Reason::LevelOff
    } else if tells_only_drafts(known.engine) {
        Reason::NotDrafted
    } else {
        Reason::Unknown
    }
}

/// What became of that which carries the numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Carrier {
    /// It came, or the numbers need none.
    Came,
    /// Neither the client nor spectap asked for it.
    NotAskedFor,
    /// It was asked for and did not come.
    Missing,
}

fn carrier(request: &RequestFacts, reply: &Reply, known: &Circumstances) -> Carrier {
    match known.engine {
        // Their numbers come without being asked for.
        Some(
            EngineName::TensorrtLlm
            | EngineName::LlamaCpp
            | EngineName::VllmMlx
            | EngineName::TokenSpeed
            | EngineName::LmStudio,
        ) => Carrier::Came,
        Some(EngineName::Sglang) if known.route == Route::Generate => Carrier::Came,
        Some(EngineName::Sglang) if known.added.details || request.spec_tokens_details => {
            Carrier::Came
        }
        Some(EngineName::Sglang) => Carrier::NotAskedFor,
        _ if !request.stream || reply.usage_event_seen => Carrier::Came,
        _ if known.added.usage || request.include_usage == Some(true) => Carrier::Missing,
        _ => Carrier::NotAskedFor,
    }
}

/// Engines that leave their numbers out when nothing was drafted.
fn tells_only_drafts(engine: Option<EngineName>) -> bool {
    matches!(
        engine,
        Some(
            EngineName::TensorrtLlm
                | EngineName::LlamaCpp
                | EngineName::Sglang
                | EngineName::VllmMlx
        )
    )
}
