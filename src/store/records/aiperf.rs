//! Lines that AIPerf's readers of `profile_export.jsonl` take: `metadata`, `metrics`, `spec_decode_acceptance`, `error`.
//!
//! All members of the observation stay, since those readers let others be. `spec_decode_acceptance` is one object and only
//! there where AIPerf would have it; records that AIPerf has no place for (several sequences, zero-step, totals alone) are in
//! `spec_decode_sequences`, so that nothing is lost for other readers.

use std::time::{Duration, SystemTime};

use serde_json::{Map, Value, json};

use crate::observation::{Observation, Outcome};
use crate::record::{AcceptanceRecord, Provenance};

use super::manifest::Manifest;

/// Member for the records that AIPerf has no place for.
pub(super) const SEQUENCES: &str = "spec_decode_sequences";

/// Lets AIPerf take the manifest for a warm-up request, which no figure of its own counts.
pub(super) fn add_to_head(head: &mut Map<String, Value>, manifest: &Manifest) {
    let at = nanoseconds(manifest.start);
    head.insert(
        "metadata".to_owned(),
        json!({
            "session_num": 0, "request_start_ns": at, "request_end_ns": at, "worker_id": "spectap",
            "record_processor_id": "spectap", "benchmark_phase": "warmup", "phase_kind": "warmup",
        }),
    );
    head.insert("metrics".to_owned(), json!({}));
}

/// The line of an observation.
pub(super) fn line(observation: &Observation, number: u64) -> serde_json::Result<Value> {
    let mut line = Map::from_iter([
        ("metadata".to_owned(), metadata(observation, number)),
        ("metrics".to_owned(), metrics(observation)),
    ]);
    if let Value::Object(mut members) = serde_json::to_value(observation)? {
        if let Some(records) = members.remove("spec_decode_acceptance") {
            match aiperfs_own(observation) {
                Some(record) => {
                    line.insert("spec_decode_acceptance".to_owned(), json!(record));
                }
                None => {
                    line.insert(SEQUENCES.to_owned(), records);
                }
            }
        }
        if let Some(error) = error(observation) {
            line.insert("error".to_owned(), error);
        }
        line.extend(members);
    }
    Ok(Value::Object(line))
}

/// The record where AIPerf would have one: the only sequence, with steps and with all that AIPerf demands of a record.
fn aiperfs_own(observation: &Observation) -> Option<&AcceptanceRecord> {
    let [record] = observation.spec_decode_acceptance.as_slice() else {
        return None;
    };
    let is_whole = record.provenance != Provenance::Counts
        && record.mean_acceptance_length.is_some()
        && record.draft_acceptance_rate.is_some()
        && record.num_spec_steps.is_some_and(|steps| steps > 0);
    (observation.n == 1 && is_whole).then_some(record)
}

fn metadata(observation: &Observation, number: u64) -> Value {
    let start = nanoseconds(observation.started_at);
    let after = |milliseconds: f64| start.saturating_add((milliseconds * 1e6) as u64);
    let mut metadata = json!({
        "session_num": number,
        "x_request_id": observation.x_request_id,
        "request_start_ns": start,
        "request_ack_ns": observation.timing.time_to_first_byte_ms.map(after),
        "request_end_ns": nanoseconds(observation.ended_at),
        "worker_id": "spectap",
        "record_processor_id": observation.lane,
        "benchmark_phase": "profiling",
        "phase_kind": "profiling",
        "was_cancelled": observation.outcome == Outcome::Cancelled,
    });
    // AIPerf puts a request's category there.
    if let Some(tag) = &observation.tag {
        metadata["source_kind"] = json!(tag);
    }
    metadata
}

fn metrics(observation: &Observation) -> Value {
    let (timing, usage) = (&observation.timing, &observation.usage);
    let record = aiperfs_own(observation);
    let of = |value: fn(&AcceptanceRecord) -> Option<f64>| record.and_then(value);
    let count = |value: fn(&AcceptanceRecord) -> u64| record.map(value);
    let per = |value: Option<f64>, time: Option<f64>| {
        let per_second = value? / time.filter(|time| *time > 0.0)? * 1e3;
        per_second.is_finite().then_some(per_second)
    };
    let (first, latency) = (timing.time_to_first_token_ms, timing.request_latency_ms);
    let output = usage.completion_tokens.map(|tokens| tokens as f64);
    let input = usage.prompt_tokens.map(|tokens| tokens as f64);
    let figures: [(&str, &str, Option<Value>); 17] = [
        (
            "spec_decode_acceptance_length",
            "ratio",
            of(|r| r.mean_acceptance_length).map(Value::from),
        ),
        (
            "spec_decode_draft_acceptance_rate",
            "%",
            of(|r| r.draft_acceptance_rate.map(|rate| rate * 100.0)).map(Value::from),
        ),
        (
            "spec_decode_accepted_per_verified",
            "ratio",
            of(AcceptanceRecord::accepted_per_verified).map(Value::from),
        ),
        (
            "spec_decode_steps",
            "count",
            record.and_then(|r| r.num_spec_steps).map(Value::from),
        ),
        (
            "spec_decode_accepted_draft_tokens",
            "tokens",
            count(|r| r.num_accepted_draft_tokens).map(Value::from),
        ),
        (
            "spec_decode_draft_tokens",
            "tokens",
            count(|r| r.num_draft_tokens).map(Value::from),
        ),
        ("time_to_first_token", "ms", first.map(Value::from)),
        ("request_latency", "ms", latency.map(Value::from)),
        (
            "decode_duration",
            "ms",
            first
                .zip(latency)
                .map(|(first, latency)| Value::from(latency - first)),
        ),
        (
            "inter_token_latency",
            "ms",
            timing.inter_token_latency_ms.map(Value::from),
        ),
        (
            "output_sequence_length",
            "tokens",
            usage.completion_tokens.map(Value::from),
        ),
        (
            "input_sequence_length",
            "tokens",
            usage.prompt_tokens.map(Value::from),
        ),
        (
            "usage_completion_tokens",
            "tokens",
            usage.completion_tokens.map(Value::from),
        ),
        (
            "usage_prompt_tokens",
            "tokens",
            usage.prompt_tokens.map(Value::from),
        ),
        (
            "output_token_throughput_per_user",
            "tokens/sec/user",
            per(Some(1.0), timing.inter_token_latency_ms).map(Value::from),
        ),
        (
            "e2e_output_token_throughput",
            "tokens/sec/user",
            per(output, latency).map(Value::from),
        ),
        (
            "prefill_throughput_per_user",
            "tokens/sec/user",
            per(input, first).map(Value::from),
        ),
    ];
    let metrics = figures.into_iter().filter_map(|(tag, unit, value)| {
        Some((tag.to_owned(), json!({"value": value?, "unit": unit})))
    });
    Value::Object(metrics.collect())
}

fn error(observation: &Observation) -> Option<Value> {
    let message = match observation.outcome {
        Outcome::Complete => return None,
        Outcome::ErrorStatus => "the engine answered with an error status",
        Outcome::ErrorEvent => "the stream carried an error",
        Outcome::Truncated => "the engine went away before the end",
        Outcome::Cancelled => "the client went away before the end",
    };
    Some(json!({
        "code": observation.status, "type": observation.outcome.as_str(), "message": message,
    }))
}

fn nanoseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    u64::try_from(since.unwrap_or(Duration::ZERO).as_nanos()).unwrap_or(u64::MAX)
}
