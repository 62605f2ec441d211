//! Exchanges one by one as CSV, for spreadsheets: a row per sequence that reported, and one for an exchange without any.

use std::fmt::Write;

use serde_json::Value;

use super::csv;
use crate::observation::Observation;
use crate::record::AcceptanceRecord;

/// Columns of the exchange, then those of the sequence; names as in the JSON of an observation, parts joined by a dot.
const EXCHANGE: [&str; 34] = [
    "id",
    "request_id",
    "x_request_id",
    "trace_id",
    "started_at",
    "ended_at",
    "lane",
    "route",
    "model",
    "tag",
    "run",
    "stream",
    "n",
    "prompts",
    "stream_options_asked",
    "in_flight",
    "status",
    "outcome",
    "acceptance",
    "reason",
    "content_chunks",
    "facets.temperature",
    "facets.format",
    "usage.prompt_tokens",
    "usage.completion_tokens",
    "usage.cached_tokens",
    "usage.reasoning_tokens",
    "timing.time_to_first_byte_ms",
    "timing.time_to_first_token_ms",
    "timing.inter_token_latency_ms",
    "timing.inter_chunk_latency_ms",
    "timing.request_latency_ms",
    "timing.upstream_connect_ms",
    "finish_reasons",
];

const SEQUENCE: [&str; 11] = [
    "engine",
    "provenance",
    "choice_index",
    "mean_acceptance_length",
    "draft_acceptance_rate",
    "num_accepted_draft_tokens",
    "num_draft_tokens",
    "num_spec_steps",
    "num_spec_tokens",
    "sequence_completion_tokens",
    "acceptance_histogram",
];

/// The line of headings.
pub fn headings() -> String {
    csv::line(EXCHANGE.iter().chain(&SEQUENCE).copied())
}

/// The rows of an exchange; none, if it could not be written as JSON.
pub fn of(observation: &Observation) -> String {
    let Ok(members) = serde_json::to_value(observation) else {
        return String::new();
    };
    let exchange: Vec<String> = EXCHANGE.iter().map(|name| cell(&members, name)).collect();
    let mut rows = String::new();
    let mut push = |sequence: [String; SEQUENCE.len()]| {
        rows.push_str(&csv::line(
            exchange.iter().chain(&sequence).map(String::as_str),
        ));
    };
    if observation.spec_decode_acceptance.is_empty() {
        push(Default::default());
    }
    for record in &observation.spec_decode_acceptance {
        push(sequence(record));
    }
    rows
}

fn cell(members: &Value, name: &str) -> String {
    let value = name
        .split('.')
        .try_fold(members, |value, part| value.get(part));
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(texts)) => {
            let texts: Vec<&str> = texts.iter().filter_map(Value::as_str).collect();
            texts.join(" ")
        }
        Some(other) => other.to_string(),
    }
}

fn sequence(record: &AcceptanceRecord) -> [String; SEQUENCE.len()] {
    let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    let count = |value: Option<u64>| value.map(|value| value.to_string()).unwrap_or_default();
    let provenance = serde_json::to_value(record.provenance).unwrap_or_default();
    let mut histogram = String::new();
    for (accepted, steps) in &record.acceptance_histogram {
        let separator = if histogram.is_empty() { "" } else { " " };
        // Writing to a String never fails.
        let _ = write!(histogram, "{separator}{accepted}:{steps}");
    }
    [
        record.engine.as_str().to_owned(),
        provenance.as_str().unwrap_or_default().to_owned(),
        count(record.choice_index.map(u64::from)),
        number(record.mean_acceptance_length),
        number(record.draft_acceptance_rate),
        record.num_accepted_draft_tokens.to_string(),
        record.num_draft_tokens.to_string(),
        count(record.num_spec_steps),
        count(record.num_spec_tokens),
        count(record.completion_tokens),
        histogram,
    ]
}
