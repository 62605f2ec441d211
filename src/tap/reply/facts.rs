//! Reads one reduced JSON object, an event's or a body's, into the facts that a reply collects.
//!
//! Knows the OpenAI shape (chat, completions, vLLM's generate), that of the Responses and the Anthropic route, which wrap
//! the response or the message and name things differently, and the native routes of llama.cpp and SGLang.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::Reply;
use super::sequences::Sequences;
use super::usage::{native_usage, take_usage};
use crate::engines;
use crate::observation::cut_name;

/// Most timing members of the engine that are kept.
const MOST_METRICS: usize = 64;

/// Adds the facts of a body's or an event's objects to the reply: one, or the elements of a list. Gives back whether
/// there is content.
pub(super) fn take_all(value: &Value, reply: &mut Reply, sequences: &mut Sequences) -> bool {
    match value {
        Value::Object(object) => take(object, None, reply, sequences),
        Value::Array(batch) => {
            let mut has_content = false;
            for (position, item) in (0u32..).zip(batch) {
                if let Value::Object(object) = item {
                    has_content |= take(object, Some(position), reply, sequences);
                }
            }
            has_content
        }
        _ => false,
    }
}

/// Adds an object's facts to the reply; gives back whether it carries content. `position` is its own in a list, if it
/// stands in one.
pub(super) fn take(
    object: &Map<String, Value>,
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
        .find_map(|name| object.get(*name)?.as_object());
    for source in envelope.into_iter().chain([object]) {
        take_names(source, reply);
        if let Some(usage) = source.get("usage").and_then(Value::as_object) {
            reply.usage_seen = true;
            take_usage(usage, &mut reply.usage);
        }
        // llama.cpp calls its times `timings`; their names carry the unit, too.
        for name in ["metrics", "timings"] {
            if let Some(metrics) = source.get(name).and_then(Value::as_object) {
                take_metrics(metrics, &mut reply.engine_metrics);
            }
        }
    }
    let choices = object.get("choices").and_then(Value::as_array);
    let mut has_content = false;
    let mut sequence = None;
    for (position, choice) in (0u64..).zip(choices.into_iter().flatten()) {
        has_content |= is_content(choice);
        reply.stop_reason_is_string |= choice.get("stop_reason").is_some_and(Value::is_string);
        let index = choice.get("index").and_then(Value::as_u64);
        let index = index.unwrap_or(position);
        sequence = sequence.or(Some(index));
        if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str) {
            sequences.finish(index, reason);
        }
    }
    let index = object.get("index").and_then(Value::as_u64);
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
pub(super) fn is_error(object: &Map<String, Value>) -> bool {
    let says = |member: &str, value: &str| object.get(member).is_some_and(|found| found == value);
    // An error's text is reduced to a mark, see the filter.
    let has_error = |object: &Map<String, Value>| {
        object
            .get("error")
            .is_some_and(|error| error.is_object() || error.is_string())
    };
    says("object", "error")
        || says("type", "error")
        || has_error(object)
        || object
            .get("response")
            .and_then(Value::as_object)
            .is_some_and(has_error)
}

/// Whether an object is what `include_usage` adds: usage, and no choice beside it.
pub(super) fn is_usage_event(object: &Map<String, Value>) -> bool {
    let has_choice = object
        .get("choices")
        .and_then(Value::as_array)
        .is_some_and(|choices| !choices.is_empty());
    has_usage(object) && !has_choice
}

/// Whether the object itself has a usage object.
pub(super) fn has_usage(object: &Map<String, Value>) -> bool {
    object.get("usage").is_some_and(Value::is_object)
}

fn take_names(object: &Map<String, Value>, reply: &mut Reply) {
    for (members, field) in [
        (&["id", "request_id"][..], &mut reply.response_id),
        (&["model"], &mut reply.model),
        (&["system_fingerprint"], &mut reply.system_fingerprint),
    ] {
        if let Some(name) = members
            .iter()
            .find_map(|member| object.get(*member)?.as_str())
            && field.as_deref() != Some(name)
        {
            *field = Some(cut_name(name));
        }
    }
}

fn take_metrics(sent: &Map<String, Value>, metrics: &mut BTreeMap<String, f64>) {
    for (name, value) in sent {
        if let Some(number) = engines::fraction(value)
            && is_time(name)
            && metrics.len() < MOST_METRICS
        {
            metrics.insert(cut_name(name), number);
        }
    }
}

/// Times and rates; counts such as `draft_n` stand elsewhere.
fn is_time(name: &str) -> bool {
    name.ends_with("_ms") || name.ends_with("per_second")
}

/// The finish reason where there are no choices, as each route names it: SGLang's `meta_info.finish_reason`, llama.cpp's
/// `stop_type`, Anthropic's `stop_reason`, and of a response that is over why it is incomplete, else its status.
fn finish_reason_elsewhere(object: &Map<String, Value>) -> Option<&str> {
    fn text<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
        object.get(name).and_then(Value::as_str)
    }
    let inner = |name: &str| object.get(name).and_then(Value::as_object);
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
fn is_content(choice: &Value) -> bool {
    let marked = |value: Option<&Value>| value.is_some_and(Value::is_string);
    let message = choice.get("delta").or_else(|| choice.get("message"));
    match (message, choice.get("text")) {
        (Some(message), _) => message
            .as_object()
            .is_some_and(|message| message.values().any(Value::is_string)),
        (None, Some(text)) => text.is_string(),
        (None, None) => marked(choice.get("token_ids")),
    }
}

/// Content outside of choices: the Responses route (`response.output_text.delta`, which gives its text again when a part
/// is over, and the body's `output`), the Anthropic route (`content_block_delta`, the body's `content`) and the native
/// routes of llama.cpp (`content`) and SGLang (`text`).
fn is_content_elsewhere(object: &Map<String, Value>) -> bool {
    let marked = |member: &str| object.get(member).is_some_and(Value::is_string);
    let delta_is_marked = || match object.get("delta") {
        Some(Value::Object(delta)) => delta
            .iter()
            .any(|(name, value)| name != "stop_reason" && value.is_string()),
        delta => delta.is_some_and(Value::is_string),
    };
    match object.get("type").and_then(Value::as_str) {
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
