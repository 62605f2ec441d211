//! What is added to a client's request: the decision, and what became of it.

use bytes::Bytes;
use clap::ValueEnum;

use super::Shared;
use super::arrival::Arrival;
use super::details;
use super::inject::{ExposeUsage, Plan, plan, splice};
use super::members::Member;
use super::request::RequestFacts;
use super::skip::Skip;
use crate::observation::Route;
use crate::record::EngineName;

/// When SGLang is asked for its per-request numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum AskSglang {
    /// As soon as the engine is known as SGLang.
    #[default]
    Auto,
    /// Always, whatever the engine.
    On,
    /// Never.
    Off,
}

/// The options that were added to a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Added {
    /// `stream_options.include_usage`
    pub(super) usage: bool,
    /// `return_spec_tokens_details`
    pub(super) details: bool,
    /// The client must not see what `usage` causes. What `details` causes it never sees.
    pub(super) strip_usage: bool,
}

impl Added {
    /// The names of the options, as the label `option`.
    pub(super) fn options(self) -> impl Iterator<Item = &'static str> {
        let usage = self.usage.then_some("include_usage");
        let details = self.details.then_some("return_spec_tokens_details");
        usage.into_iter().chain(details)
    }

    /// Whether anything must be taken out of the response.
    pub(super) fn must_strip(self) -> bool {
        self.strip_usage || self.details
    }
}

/// What is done to one request.
pub(super) struct Decision {
    /// The body to send, if it is altered, and with what.
    pub(super) altered: Option<(Bytes, Added)>,
    /// Why an option that the numbers need was not added.
    pub(super) skip: Option<Skip>,
}

/// Decides on a request whose body is read. `root`: the members of `body`.
pub(super) fn decide(
    tap: &Shared,
    arrival: &Arrival,
    request: &RequestFacts,
    body: &[u8],
    root: &[Member<'_>],
) -> Decision {
    let mut edits = Vec::new();
    let mut added = Added::default();
    let mut skip = None;
    if request.stream && arrival.takes_stream_options {
        let is_vllm = tap.engine() == Some(EngineName::Vllm);
        match plan(body, root, tap.settings.expose_usage, is_vllm) {
            Plan::Leave => {}
            Plan::Skip(reason) => skip = objection(tap, arrival).or(Some(reason)),
            Plan::Inject { edits: own, strip } => {
                skip = objection(tap, arrival)
                    .or_else(|| usage_objection(tap, arrival, request, strip));
                if skip.is_none() {
                    edits = own;
                    (added.usage, added.strip_usage) = (true, strip);
                }
            }
        }
    }
    if asks_sglang(tap, arrival, request) {
        match details::plan(body, root) {
            Ok(None) => {}
            Err(reason) => skip = skip.or(Some(reason)),
            Ok(Some(edit)) => match objection(tap, arrival) {
                Some(reason) => skip = skip.or(Some(reason)),
                None => {
                    edits.push(edit);
                    added.details = true;
                }
            },
        }
    }
    let altered = (!edits.is_empty()).then(|| (splice(body, edits), added));
    Decision { altered, skip }
}

/// Decides on a request whose body is no JSON object: it goes as it is.
pub(super) fn decide_unread(tap: &Shared, arrival: &Arrival) -> Decision {
    let skip = objection(tap, arrival).or(Some(Skip::NotJson));
    Decision {
        altered: None,
        skip: skip.filter(|_| arrival.takes_stream_options),
    }
}

/// Whether SGLang's own option is wanted on this request.
fn asks_sglang(tap: &Shared, arrival: &Arrival, request: &RequestFacts) -> bool {
    let route = arrival.takes_stream_options && arrival.route != Route::Generate;
    let engine = match tap.settings.ask_sglang {
        AskSglang::Auto => tap.engine() == Some(EngineName::Sglang),
        AskSglang::On => true,
        AskSglang::Off => false,
    };
    route && engine && (request.stream || tap.settings.ask_sglang_unary)
}

/// Why nothing at all may be added to a request.
fn objection(tap: &Shared, arrival: &Arrival) -> Option<Skip> {
    if !tap.settings.inject.is_on() {
        return Some(Skip::Off);
    }
    // A stripped stream can't be stripped when it is compressed, and what is only shown need not be.
    let strips = tap.settings.expose_usage == ExposeUsage::AsRequested;
    arrival.objection.or_else(|| {
        tap.learned
            .objection(arrival.route, strips && arrival.takes_coding)
    })
}

/// Why usage may not be asked for.
fn usage_objection(
    tap: &Shared,
    arrival: &Arrival,
    request: &RequestFacts,
    strip: bool,
) -> Option<Skip> {
    // vLLM's generate route writes no fingerprint.
    let needs_fingerprint = strip && request.is_several() && arrival.route != Route::Generate;
    if !takes_usage(tap.engine()) {
        Some(Skip::Engine)
    } else if tap.learned.sends_usage_unasked(arrival.route) {
        Some(Skip::SentUnasked)
    } else if needs_fingerprint && tap.learned.fingerprint().is_none() {
        Some(Skip::FingerprintUnknown)
    } else {
        None
    }
}

/// Engines that `include_usage` is good for; llama.cpp would move its `timings` for it.
fn takes_usage(engine: Option<EngineName>) -> bool {
    match engine {
        None
        | Some(
            EngineName::Vllm
            | EngineName::Sglang
            | EngineName::TensorrtLlm
            | EngineName::MlxVlm
            | EngineName::UsageDetails,
        ) => true,
        Some(
            EngineName::LlamaCpp
            | EngineName::VllmMlx
            | EngineName::TokenSpeed
            | EngineName::LmStudio,
        ) => false,
    }
}
