//! Each sample payload gives what its line in `expected.jsonl` says, however its bytes are cut.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test may panic anywhere"
)]

mod reply_support;

use std::collections::BTreeMap;

use reply_support::{Kind, chunkings, fixture, observe};
use serde_json::Value;
use spectap::engines::{self, Verdict};
use spectap::observation::Acceptance;
use spectap::tap::reply::Reply;

/// Shapes that are not read: a pull request's from before its merge.
const NOT_READ: &[&str] = &["vllm/legacy_per_choice.json"];

fn n_of(reply: &Reply) -> u32 {
    u32::try_from(reply.payloads.len().max(1)).unwrap()
}

fn check(entry: &Value, chunking: &str, reply: &Reply, verdict: &Verdict) {
    let context = format!(
        "{} cut {chunking}: {verdict:?}",
        entry["file"].as_str().unwrap()
    );
    let expected = entry["records"].as_array().unwrap();
    assert_eq!(verdict.records.len(), expected.len(), "{context}");
    for (record, expected) in verdict.records.iter().zip(expected) {
        let engine = match expected["engine"].as_str().unwrap() {
            "trtllm" => "tensorrt_llm",
            name => name,
        };
        assert_eq!(record.engine.as_str(), engine, "{context}");
        let count = |name: &str| expected[name].as_u64();
        assert_eq!(
            Some(record.num_accepted_draft_tokens),
            count("accepted"),
            "{context}"
        );
        assert_eq!(Some(record.num_draft_tokens), count("drafted"), "{context}");
        assert_eq!(record.num_spec_steps, count("steps"), "{context}");
        assert_eq!(record.num_spec_tokens, count("k"), "{context}");
        assert_eq!(
            record.completion_tokens,
            count("completion_tokens"),
            "{context}"
        );
        let choice = expected.get("choice").and_then(Value::as_u64);
        assert_eq!(record.choice_index.map(u64::from), choice, "{context}");
        let histogram: BTreeMap<u32, u64> = (0..)
            .zip(expected["histogram"].as_array().unwrap())
            .map(|(accepted, steps)| (accepted, steps.as_u64().unwrap()))
            .filter(|(_, steps)| *steps > 0)
            .collect();
        assert_eq!(record.acceptance_histogram, histogram, "{context}");
        for (array, name) in [
            (&record.per_step_accepted, "per_step_accepted"),
            (&record.per_step_drafted, "per_step_drafted"),
        ] {
            let expected = expected
                .get(name)
                .map(|list| serde_json::from_value::<Vec<u64>>(list.clone()).unwrap());
            assert_eq!(*array, expected, "{context}");
        }
        if let Some(mean) = expected.get("reported_mean") {
            assert_eq!(record.mean_acceptance_length, mean.as_f64(), "{context}");
            assert!(verdict.contradiction, "{context}");
        }
    }
    let is_zero_step = expected.iter().any(|record| record["zero_step"] == true);
    let acceptance = match entry.get("outcome").and_then(Value::as_str) {
        Some("malformed") => Acceptance::Malformed,
        _ if expected.is_empty() => Acceptance::Absent,
        _ if is_zero_step => Acceptance::ZeroStep,
        _ => Acceptance::Recorded,
    };
    assert_eq!(verdict.acceptance, acceptance, "{context}");
    let is_stream = entry["kind"] == "sse";
    let says_error = entry
        .get("outcome")
        .is_some_and(|outcome| outcome == "error");
    assert_eq!(reply.error_event, is_stream && says_error, "{context}");
    assert_eq!(reply.fault, None, "{context}");
}

#[test]
fn every_sample_gives_what_is_expected_at_every_chunking() {
    let expected = String::from_utf8(fixture("samples/expected.jsonl")).unwrap();
    let mut seen = 0;
    for line in expected.lines() {
        let entry: Value = serde_json::from_str(line).unwrap();
        let file = entry["file"].as_str().unwrap();
        let folder = file.split('/').next().unwrap();
        if !["vllm", "trtllm", "framing"].contains(&folder) || NOT_READ.contains(&file) {
            continue;
        }
        let bytes = fixture(format!("samples/{file}"));
        let (kind, body) = match entry["kind"].as_str().unwrap() {
            "json" => (Kind::Json, bytes),
            "sse" => (Kind::Stream, bytes),
            "http" => (Kind::Json, reply_support::first_response(&bytes).2),
            "chunks" => {
                let chunks = stored_chunks(&bytes);
                let reply = observe(Kind::Stream, chunks.iter().map(Vec::as_slice));
                let verdict = engines::read(&reply.payloads, &reply.usage, 1);
                check(&entry, "as stored", &reply, &verdict);
                (Kind::Stream, chunks.concat())
            }
            _ => continue,
        };
        for (chunking, chunks) in chunkings(&body) {
            let reply = observe(kind, chunks);
            let verdict = engines::read(&reply.payloads, &reply.usage, n_of(&reply));
            check(&entry, chunking, &reply, &verdict);
        }
        seen += 1;
    }
    assert_eq!(seen, 36, "samples were added or lost");
}

fn stored_chunks(bytes: &[u8]) -> Vec<Vec<u8>> {
    let stored: Value = serde_json::from_slice(bytes).unwrap();
    let chunks = stored["chunks"].as_array().unwrap();
    chunks
        .iter()
        .map(|chunk| {
            let hex = chunk.as_str().unwrap();
            (0..hex.len())
                .step_by(2)
                .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
                .collect()
        })
        .collect()
}
