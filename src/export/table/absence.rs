//! What became of the exchanges' acceptance numbers, in one sentence; and why there are none.

use std::collections::BTreeMap;

use crate::export::summary::{Counts, Reasons};
use crate::observation::{Acceptance, Reason};

/// The sentence: how many exchanges there were, what became of their numbers, and what to do about the commonest reason.
pub fn sentence(n: &Counts, reasons: &Reasons) -> String {
    if n.exchanges == 0 {
        return "No acceptance numbers: no inference request has been answered with success yet; \
                are the clients pointed at spectap's data port?"
            .into();
    }
    let commonest = reasons
        .values()
        .flatten()
        .max_by_key(|&(reason, count)| (*count, std::cmp::Reverse(*reason)))
        .map(|(&reason, _)| reason);
    let hint = match commonest {
        Some(reason) => format!(": {}", advice(reason)),
        // Valid numbers are there, but none that AIPerf would count.
        None if n.recorded + n.zero_step > 0 => {
            ": none is complete, has content and asks for one sequence; the view of all sequences has them"
                .to_owned()
        }
        None => String::new(),
    };
    format!("No acceptance numbers: {}{hint}", counts(n, reasons))
}

/// How many exchanges there were and what became of their numbers: `9 exchanges, 7 recorded, 2 absent (n_gt_1)`.
pub(super) fn counts(n: &Counts, reasons: &Reasons) -> String {
    let mut parts = Vec::new();
    for (acceptance, count) in [
        (Acceptance::Recorded, n.recorded),
        (Acceptance::ZeroStep, n.zero_step),
        (Acceptance::Absent, n.absent),
        (Acceptance::Malformed, n.malformed),
        (Acceptance::Ambiguous, n.ambiguous),
        (Acceptance::Unobserved, n.unobserved),
    ] {
        if count > 0 {
            let why = reasons.get(&acceptance).map(names).unwrap_or_default();
            parts.push(format!("{count} {}{why}", acceptance.as_str()));
        }
    }
    let exchanges = if n.exchanges == 1 {
        "1 exchange".to_owned()
    } else {
        format!("{} exchanges", n.exchanges)
    };
    format!("{exchanges}, {}", parts.join(", "))
}

fn names(reasons: &BTreeMap<Reason, u64>) -> String {
    let mut reasons: Vec<(&Reason, &u64)> = reasons.iter().collect();
    reasons.sort_by_key(|&(reason, count)| (std::cmp::Reverse(count), reason));
    match reasons.as_slice() {
        [] => String::new(),
        [(only, _)] => format!(" ({})", only.as_str()),
        several => {
            let list: Vec<String> = several
                .iter()
                .map(|(reason, count)| format!("{} {count}", reason.as_str()))
                .collect();
            format!(" ({})", list.join(", "))
        }
    }
}

/// What a reason means, and what to set where something helps.
pub fn advice(reason: Reason) -> &'static str {
    match reason {
        Reason::NGt1 => "vLLM sends none for n > 1; ask for one sequence",
        Reason::MultiPrompt => {
            "vLLM sends none for several prompts in one request; send one prompt"
        }
        Reason::StopString => "vLLM sends none when a stop string ended the text",
        Reason::BeamSearch => "the engine sends none with beam search",
        Reason::Aborted => "the engine aborted the requests",
        Reason::Cancelled => "the clients went away before the numbers came",
        Reason::Truncated => "the engine went away before the numbers came",
        Reason::NoUsageEvent => {
            "the streams ended without the usage event that carries them; let spectap ask for it (--inject auto)"
        }
        Reason::LevelOff => {
            "the engine has sent none so far; is speculation on, and are its numbers \
             (vLLM: --per-request-spec-decode-metrics summary)? docs/engines.md says how, engine by engine"
        }
        Reason::NotDrafted => "the engine drafted nothing for these requests",
        Reason::PrefillLeg => {
            "these are the prefill legs of split requests; put spectap before the decode engine"
        }
        Reason::RouteWithoutPayload => {
            "the engine sends none on these routes; use chat or completions"
        }
        Reason::InjectOff => {
            "injection is off and the clients do not ask for usage; switch it on (--inject auto)"
        }
        Reason::InjectSkipped => {
            "the requests did not ask for them and were sent on as they came; \
             spectap_injections_skipped_total says why, and SGLang without streams needs --inject-sglang-unary"
        }
        Reason::ErrorEvent => "the streams carried an error",
        Reason::Unknown => "the responses give no hint why",
        Reason::Encoding => "the responses are compressed; let the clients accept identity",
        Reason::NotJson => "the responses are no JSON",
        Reason::EventTooLarge => "single events are too large to be looked at",
        Reason::ObserverFailed => "the observer failed; the log says where",
        Reason::AmbiguousSignature => {
            "more than one engine's shape fits the payload; say which with --engine"
        }
        Reason::TwoPayloads => "the responses carry two payloads for one sequence",
        Reason::IdentitySum
        | Reason::IdentityWeighted
        | Reason::IdentityPerStep
        | Reason::AcceptedGtDrafted
        | Reason::HistogramLength
        | Reason::ZeroStepsWithDrafts
        | Reason::BadNumber => {
            "the engine's numbers contradict themselves; this is worth a report to the engine"
        }
    }
}
