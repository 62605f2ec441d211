//! Reads one reduced JSON object, an event's or a body's, into the facts that a reply collects.
//!
//! Knows the OpenAI shape (chat, completions, vLLM's generate), that of the Responses and the Anthropic route, which wrap
//! the response or the message and name things differently, and the native routes of llama.cpp and SGLang.

use std::collections::BTreeMap;

use super::Reply;
use super::sequences::Sequences;
use super::usage::{native_usage, take_usage};
use crate::engines::{self, Json, Object, elements};
use crate::observation::cut_name;

/// Most timing members of the engine that are kept.
const MOST_METRICS: usize = 64;

/// Adds the facts of a body's or an event's objects to the reply: one, or the elements of a list. Gives back whether
/// there is content.
pub(super) fn take_all(json: Json<'_>, reply: &mut Reply, sequences: &mut Sequences) -> bool {
    if let Json::Object(object) = json {
        return take(object, None, reply, sequences);
    }
    let mut has_content = false;
    for (position, item) in (0u32..).zip(elements(Some(json))) {
        if let Json::Object(object) = item {
            has_content |= take(object, Some(position), reply, sequences);
        }
    }
    has_content
}

/// Adds an object's facts to the reply; gives back whether it carries content. `position` is its own in a list, if it
/// stands in one.
pub(super) fn take(
    object: &dyn Object,
    position: Option<u32>,
    reply: &mut Reply,
    sequences: &mut Sequences,
) -> bool {
    reply.payloads.take(object, position);
    if let Some(engine) = engines::hint(object) {
        reply.engine_hint = Some(engine);
    }
    let envelope = ["response", "message", "meta_info"]
        .iter()
        .find_map(|name| object.get(name)?.as_object());
    for source in envelope.into_iter().chain([object]) {
        take_names(source, reply);
        if let Some(usage) = source.get("usage").and_then(Json::as_object) {
            reply.usage_seen = true;
            take_usage(usage, &mut reply.usage);
        }
        // llama.cpp calls its times `timings`; their names carry the unit, too.
        for name in ["metrics", "timings"] {
            if let Some(metrics) = source.get(name).and_then(Json::as_object) {
                take_metrics(metrics, &mut reply.engine_metrics);
            }
        }
    }
    let choices = object.get("choices").filter(|choices| choices.is_list());
    let mut has_content = false;
    let mut sequence = None;
    for (position, choice) in (0u64..).zip(elements(choices)) {
        has_content |= is_content(choice);
        reply.stop_reason_is_string |= choice.get("stop_reason").is_some_and(Json::is_text);
        let index = choice.get("index").and_then(Json::as_u64);
        let index = index.unwrap_or(position);
        sequence = sequence.or(Some(index));
        if let Some(reason) = choice.get("finish_reason").and_then(Json::as_str) {
            sequences.finish(index, reason);
        }
    }
    let index = object.get("index").and_then(Json::as_u64);
    let sequence = position.map(u64::from).or(sequence).or(index).unwrap_or(0);
    if let Some(usage) = native_usage(object) {
        sequences.note_usage(sequence, usage);
    }
    if choices.is_none() {
        if let Some(reason) = finish_reason_elsewhere(object) {
            sequences.finish(sequence, reason);
        }
        has_content = is_content_elsewhere(object);
    }
    has_content
}

/// Whether an object says that the engine failed.
pub(super) fn is_error(object: &dyn Object) -> bool {
    let says = |member: &str, value: &str| object.get(member).and_then(Json::as_str) == Some(value);
    // An error's text is reduced to a mark, see the filter.
    let has_error = |object: &dyn Object| {
        object
            .get("error")
            .is_some_and(|error| error.is_object() || error.is_text())
    };
    says("object", "error")
        || says("type", "error")
        || has_error(object)
        || object
            .get("response")
            .and_then(Json::as_object)
            .is_some_and(has_error)
}

/// Whether an object is what `include_usage` adds: usage, and no choice beside it.
pub(super) fn is_usage_event(object: &dyn Object) -> bool {
    has_usage(object) && elements(object.get("choices")).next().is_none()
}

/// Whether the object itself has a usage object.
pub(super) fn has_usage(object: &dyn Object) -> bool {
    object.get("usage").is_some_and(Json::is_object)
}

fn take_names(object: &dyn Object, reply: &mut Reply) {
    for (members, field) in [
        (&["id", "request_id"][..], &mut reply.response_id),
        (&["model"], &mut reply.model),
        (&["system_fingerprint"], &mut reply.system_fingerprint),
    ] {
        if let Some(name) = members
            .iter()
            .find_map(|member| object.get(member)?.as_str())
            && field.as_deref() != Some(name)
        {
            *field = Some(cut_name(name));
        }
    }
}

fn take_metrics(sent: &dyn Object, metrics: &mut BTreeMap<String, f64>) {
    sent.each(&mut |name, value| {
        if let Some(number) = engines::fraction(value)
            && is_time(name)
            && metrics.len() < MOST_METRICS
        {
            metrics.insert(cut_name(name), number);
        }
    });
}

/// Times and rates; counts such as `draft_n` stand elsewhere.
fn is_time(name: &str) -> bool {
    name.ends_with("_ms") || name.ends_with("per_second")
}

/// The finish reason where there are no choices, as each route names it: SGLang's `meta_info.finish_reason`, llama.cpp's
/// `stop_type`, Anthropic's `stop_reason`, and of a response that is over why it is incomplete, else its status.
fn finish_reason_elsewhere(object: &dyn Object) -> Option<&str> {
    fn text<'a>(object: &'a dyn Object, name: &str) -> Option<&'a str> {
        object.get(name).and_then(Json::as_str)
    }
    let inner = |name: &str| object.get(name).and_then(Json::as_object);
    if let Some(finish) = inner("meta_info").and_then(|meta_info| meta_info.get("finish_reason")) {
        return finish.as_str().or_else(|| finish.get("type")?.as_str());
    }
    if let Some(stopped_by) = text(object, "stop_type") {
        return Some(stopped_by).filter(|name| *name != "none");
    }
    let kind = text(object, "type");
    if kind == Some("message") {
        return text(object, "stop_reason");
    }
    if kind == Some("message_delta") {
        return text(inner("delta")?, "stop_reason");
    }
    let response = match inner("response") {
        Some(response) => response,
        None if text(object, "object") == Some("response") => object,
        None => return None,
    };
    let incomplete = response
        .get("incomplete_details")
        .and_then(|details| details.get("reason")?.as_str());
    incomplete.or_else(|| {
        text(response, "status").filter(|status| !matches!(*status, "in_progress" | "queued"))
    })
}

/// Whether a choice carries text, reasoning or a tool call. Token ids are content where there is nothing else: on the
/// generate route. On chat they may run ahead of the text, which is then empty.
fn is_content(choice: Json<'_>) -> bool {
    let marked = |value: Option<Json<'_>>| value.is_some_and(Json::is_text);
    let message = choice.get("delta").or_else(|| choice.get("message"));
    match (message, choice.get("text")) {
        (Some(message), _) => message.as_object().is_some_and(|message| {
            let mut has_text = false;
            message.each(&mut |_, value| has_text |= value.is_text());
            has_text
        }),
        (None, Some(text)) => text.is_text(),
        (None, None) => marked(choice.get("token_ids")),
    }
}

/// Content outside of choices: the Responses route (`response.output_text.delta`, which gives its text again when a part
/// is over, and the body's `output`), the Anthropic route (`content_block_delta`, the body's `content`) and the native
/// routes of llama.cpp (`content`) and SGLang (`text`).
fn is_content_elsewhere(object: &dyn Object) -> bool {
    let marked = |member: &str| object.get(member).is_some_and(Json::is_text);
    let delta_is_marked = || match object.get("delta") {
        Some(Json::Object(delta)) => {
            let mut has_text = false;
            delta.each(&mut |name, value| has_text |= name != "stop_reason" && value.is_text());
            has_text
        }
        delta => delta.is_some_and(Json::is_text),
    };
    match object.get("type").and_then(Json::as_str) {
        Some(kind) if kind.starts_with("response.") => {
            kind.ends_with(".delta") && delta_is_marked()
        }
        Some(kind) if kind.starts_with("content_block") => {
            kind == "content_block_delta" && delta_is_marked()
        }
        Some("message") | None => ["content", "text", "output"].into_iter().any(marked),
        Some(_) => false,
    }
}
