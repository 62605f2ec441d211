//! Reads one reduced JSON object, an event's or a body's, into the facts that a reply collects.
//!
//! Knows the OpenAI shape (chat, completions, vLLM's generate) and, as far as it is cheap, that of the Responses and
//! the Anthropic route, which wrap the response or the message and name the usage members differently.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::Reply;
use crate::engines;
use crate::observation::{Usage, cut_name};

/// Most choices whose finish reason is kept.
const MOST_CHOICES: usize = 1024;

/// Most timing members of the engine that are kept.
const MOST_METRICS: usize = 64;

/// The facts that are only put in order at the end.
#[derive(Debug, Default)]
pub(super) struct Finishes {
    by_choice: BTreeMap<u64, String>,
}

impl Finishes {
    pub(super) fn into_reasons(self) -> Vec<String> {
        self.by_choice.into_values().collect()
    }
}

/// Adds an object's facts to the reply; gives back whether it carries content.
pub(super) fn take(
    object: &Map<String, Value>,
    reply: &mut Reply,
    finishes: &mut Finishes,
) -> bool {
    reply.payloads.take(object, 0);
    let envelope = ["response", "message"]
        .iter()
        .find_map(|name| object.get(*name)?.as_object());
    for source in envelope.into_iter().chain([object]) {
        take_names(source, reply);
        if let Some(usage) = source.get("usage").and_then(Value::as_object) {
            reply.usage_seen = true;
            take_usage(usage, &mut reply.usage);
        }
        if let Some(metrics) = source.get("metrics").and_then(Value::as_object) {
            take_metrics(metrics, &mut reply.engine_metrics);
        }
    }
    let choices = object.get("choices").and_then(Value::as_array);
    let mut has_content = false;
    for (position, choice) in (0u64..).zip(choices.into_iter().flatten()) {
        has_content |= is_content(choice);
        reply.stop_reason_is_string |= choice.get("stop_reason").is_some_and(Value::is_string);
        if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str) {
            let index = choice.get("index").and_then(Value::as_u64);
            let index = index.unwrap_or(position);
            if finishes.by_choice.len() < MOST_CHOICES || finishes.by_choice.contains_key(&index) {
                finishes.by_choice.insert(index, cut_name(reason));
            }
        }
    }
    has_content || (choices.is_none() && is_content_elsewhere(object))
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

/// Usage is cumulative: the last value of each member holds.
fn take_usage(sent: &Map<String, Value>, usage: &mut Usage) {
    let count = |names: [&str; 2]| {
        names
            .iter()
            .find_map(|name| sent.get(*name).and_then(engines::count))
    };
    let detail = |groups: [&str; 2], name: &str| {
        groups
            .iter()
            .find_map(|group| sent.get(*group)?.get(name).and_then(engines::count))
    };
    for (field, value) in [
        (
            &mut usage.prompt_tokens,
            count(["prompt_tokens", "input_tokens"]),
        ),
        (
            &mut usage.completion_tokens,
            count(["completion_tokens", "output_tokens"]),
        ),
        (
            &mut usage.cached_tokens,
            detail(
                ["prompt_tokens_details", "input_tokens_details"],
                "cached_tokens",
            ),
        ),
        (
            &mut usage.reasoning_tokens,
            detail(
                ["completion_tokens_details", "output_tokens_details"],
                "reasoning_tokens",
            ),
        ),
    ] {
        if value.is_some() {
            *field = value;
        }
    }
}

fn take_metrics(sent: &Map<String, Value>, metrics: &mut BTreeMap<String, f64>) {
    for (name, value) in sent {
        if let Some(number) = engines::fraction(value)
            && name != "speculative_decoding"
            && metrics.len() < MOST_METRICS
        {
            metrics.insert(cut_name(name), number);
        }
    }
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
    match object.get("type").and_then(Value::as_str) {
        Some(kind) if kind.starts_with("response.") => kind.ends_with(".delta") && marked("delta"),
        Some(kind) if kind.starts_with("content_block") => {
            kind == "content_block_delta" && marked("delta")
        }
        Some("message") | None => ["content", "text", "output"].into_iter().any(marked),
        Some(_) => false,
    }
}
