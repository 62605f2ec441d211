//! Why a successful response carried no acceptance payload: the most specific reason that the tap can name.

use super::reply::Reply;
use super::request::RequestFacts;
use crate::observation::{Outcome, Reason, Route};
use crate::record::EngineName;

/// What is known of the exchange beside its request and its reply.
pub(super) struct Circumstances {
    pub(super) route: Route,
    pub(super) outcome: Outcome,
    /// The option was added to the request.
    pub(super) injected: bool,
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
    let waits_for_usage =
        request.stream && !reply.usage_event_seen && known.engine != Some(EngineName::TensorrtLlm);
    if request.prefill_leg {
        Reason::PrefillLeg
    } else if matches!(
        known.route,
        Route::Responses | Route::Messages | Route::CompletionNative
    ) {
        Reason::RouteWithoutPayload
    } else if request.beam_search {
        Reason::BeamSearch
    } else if request.n > 1 {
        Reason::NGt1
    } else if request.prompts > 1 {
        Reason::MultiPrompt
    } else if finished_by("abort") {
        Reason::Aborted
    } else if request.has_stop && finished_by("stop") && reply.usage_seen {
        Reason::StopString
    } else if waits_for_usage && known.inject_off {
        Reason::InjectOff
    } else if waits_for_usage && !known.injected && request.include_usage != Some(true) {
        Reason::InjectSkipped
    } else if waits_for_usage {
        Reason::NoUsageEvent
    } else if !known.payload_seen {
        Reason::LevelOff
    } else if known.engine == Some(EngineName::TensorrtLlm) {
        // It leaves the object out when nothing was drafted.
        Reason::NotDrafted
    } else {
        Reason::Unknown
    }
}
