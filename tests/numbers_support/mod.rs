//! Observations to feed the statistics with: made by hand, or rebuilt from what a fake engine sent to AIPerf.

#![allow(dead_code, reason = "each test file uses its own part")]

pub(crate) mod traffic;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::Value;
use spectap::observation::{
    Acceptance, Facets, Observation, ObservationSink, Outcome, Reason, Route, Timing, Usage,
};
use spectap::record::{AcceptanceRecord, EngineName, Provenance};
use spectap::stats::Statistics;

/// A complete chat exchange with content and without acceptance numbers.
pub(crate) fn observation() -> Observation {
    let started_at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    Observation {
        id: "01J00000000000000000000000".into(),
        request_id: None,
        x_request_id: None,
        trace_id: None,
        started_at,
        ended_at: started_at + Duration::from_millis(100),
        lane: "127.0.0.1:8090".into(),
        route: Route::ChatCompletions,
        model: Some("m".into()),
        tag: None,
        run: None,
        stream: true,
        n: 1,
        prompts: 1,
        stream_options_asked: Some(true),
        in_flight: 1,
        status: Some(200),
        outcome: Outcome::Complete,
        acceptance: Some(Acceptance::Absent),
        reason: Some(Reason::Unknown),
        finish_reasons: vec!["stop".into()],
        facets: Facets::default(),
        usage: Usage::default(),
        timing: Timing::default(),
        engine_metrics: Default::default(),
        content_chunks: 3,
        spec_decode_acceptance: Vec::new(),
    }
}

/// A valid vLLM record of k = `histogram.len() - 1`, every step drafting k.
pub(crate) fn record(histogram: &[u64]) -> AcceptanceRecord {
    let steps: u64 = histogram.iter().sum();
    let accepted: u64 = (0_u64..).zip(histogram).map(|(j, steps)| j * steps).sum();
    let k = histogram.len() as u64 - 1;
    let mut record = AcceptanceRecord {
        engine: EngineName::Vllm,
        provenance: Provenance::Histogram,
        choice_index: None,
        mean_acceptance_length: None,
        draft_acceptance_rate: None,
        acceptance_histogram: (0..)
            .zip(histogram.iter().copied())
            .filter(|&(_, steps)| steps > 0)
            .collect(),
        num_accepted_draft_tokens: accepted,
        num_draft_tokens: steps * k,
        num_spec_steps: Some(steps),
        num_spec_tokens: Some(k),
        completion_tokens: None,
        per_step_accepted: None,
        per_step_drafted: None,
        recomputed: None,
        nominal_drafts: false,
        zero_filled: false,
    };
    record.mean_acceptance_length = Some(record.derived_length().unwrap_or(1.0));
    record.draft_acceptance_rate = Some(record.derived_rate().unwrap_or(0.0));
    record.check().expect("a valid record");
    record
}

/// A complete chat exchange that carried these records.
pub(crate) fn recorded(records: Vec<AcceptanceRecord>) -> Observation {
    let zero_step = records.iter().all(AcceptanceRecord::is_zero_step);
    Observation {
        acceptance: Some(if zero_step {
            Acceptance::ZeroStep
        } else {
            Acceptance::Recorded
        }),
        reason: None,
        n: records.len() as u32,
        spec_decode_acceptance: records,
        ..observation()
    }
}

/// Statistics of these observations.
pub(crate) fn statistics(observations: impl IntoIterator<Item = Observation>) -> Arc<Statistics> {
    let statistics = Statistics::new();
    for observation in observations {
        statistics.record(Arc::new(observation));
    }
    Arc::new(statistics)
}

/// A file below the AIPerf fixtures.
pub(crate) fn aiperf_file(run: &str, name: &str) -> String {
    let path = format!(
        "{}/tests/fixtures/aiperf/{run}/{name}",
        env!("CARGO_MANIFEST_DIR")
    );
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The exchanges of a run, rebuilt from the fake engine's own log of what it sent.
pub(crate) fn aiperf_observations(run: &str) -> Vec<Observation> {
    aiperf_file(run, "payload-log.jsonl")
        .lines()
        .map(|line| from_log(&serde_json::from_str(line).expect("a line of the log is JSON")))
        .collect()
}

fn from_log(line: &Value) -> Observation {
    let usage = &line["usage"];
    let completion_tokens = usage["completion_tokens"].as_u64();
    let payload = &line["payload"];
    let verdict = if line["kind"] == "broken:sent_twice" {
        Err((Acceptance::Ambiguous, Reason::TwoPayloads))
    } else if payload.as_object().is_none_or(|object| object.is_empty()) {
        Err((Acceptance::Absent, Reason::Unknown))
    } else {
        read_payload(payload).map_err(|reason| (Acceptance::Malformed, reason))
    };
    let base = Observation {
        usage: Usage {
            prompt_tokens: usage["prompt_tokens"].as_u64(),
            completion_tokens,
            ..Usage::default()
        },
        content_chunks: line["t_chunks_ns"].as_array().expect("chunks").len() as u64,
        ..observation()
    };
    match verdict {
        Ok(record) => Observation {
            spec_decode_acceptance: vec![AcceptanceRecord {
                completion_tokens,
                ..record.clone()
            }],
            ..Observation {
                acceptance: recorded(vec![record]).acceptance,
                reason: None,
                ..base
            }
        },
        Err((acceptance, reason)) => Observation {
            acceptance: Some(acceptance),
            reason: Some(reason),
            ..base
        },
    }
}

fn read_payload(payload: &Value) -> Result<AcceptanceRecord, Reason> {
    let count = |key: &str| payload[key].as_u64().ok_or(Reason::BadNumber);
    let number = |key: &str| payload[key].as_f64().ok_or(Reason::BadNumber);
    let buckets: Vec<u64> = payload["acceptance_histogram"]
        .as_array()
        .ok_or(Reason::BadNumber)?
        .iter()
        .map(|bucket| bucket.as_u64().ok_or(Reason::BadNumber))
        .collect::<Result<_, _>>()?;
    let steps = count("num_spec_steps")?;
    let k = payload["num_spec_tokens"].as_u64();
    if k.is_some_and(|k| buckets.len() as u64 != k + 1) {
        return Err(Reason::HistogramLength);
    }
    let is_trtllm = payload.get("total_draft_tokens").is_some();
    if is_trtllm && steps == 0 {
        return Err(Reason::BadNumber);
    }
    let (engine, accepted, drafted, rate) = if is_trtllm {
        (
            EngineName::TensorrtLlm,
            count("total_accepted_draft_tokens")?,
            count("total_draft_tokens")?,
            number("acceptance_rate")?,
        )
    } else {
        (
            EngineName::Vllm,
            count("num_accepted_draft_tokens")?,
            count("num_draft_tokens")?,
            number("draft_acceptance_rate")?,
        )
    };
    let mean = if is_trtllm {
        1.0 + accepted as f64 / steps as f64
    } else {
        number("mean_acceptance_length")?
    };
    let record = AcceptanceRecord {
        engine,
        provenance: Provenance::Histogram,
        choice_index: None,
        mean_acceptance_length: Some(mean),
        draft_acceptance_rate: Some(rate),
        acceptance_histogram: (0..).zip(buckets).filter(|&(_, steps)| steps > 0).collect(),
        num_accepted_draft_tokens: accepted,
        num_draft_tokens: drafted,
        num_spec_steps: Some(steps),
        num_spec_tokens: k,
        completion_tokens: None,
        per_step_accepted: None,
        per_step_drafted: None,
        recomputed: None,
        nominal_drafts: false,
        zero_filled: false,
    };
    record.check()?;
    Ok(record)
}
