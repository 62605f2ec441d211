//! Each sample payload gives what its line in `expected.jsonl` says, however its bytes are cut.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test may panic anywhere"
)]

mod reply_support;

use std::collections::BTreeMap;

use reply_support::{Kind, chunkings, fixture, observe_with, observer};
use serde_json::{Value, json};
use spectap::engines::{self, Options, Verdict};
use spectap::observation::{Acceptance, Reason};
use spectap::record::{EngineName, Provenance};
use spectap::tap::decoding::Decoder;
use spectap::tap::reply::{Reply, ReplyObserver};

/// Members that an expected record has and ours leaves open, because the server's code says otherwise.
const LEFT_OPEN: &[(&str, &[&str])] = &[
    // A round's drafts adapt to what was accepted: their mean is no bound.
    ("mlx_vlm/chat.json", &["k"]),
    ("mlx_vlm/chat_stream.sse", &["k"]),
    // `mtp_drafts` counts tokens, and a step may have several of them.
    ("vllm_mlx/chat.json", &["k", "steps"]),
];

/// Why a sample is malformed.
const REASONS: &[(&str, Reason)] = &[
    ("tokenspeed/generate_negative.json", Reason::BadNumber),
    (
        "framing/numbers_as_floats_and_strings.json",
        Reason::BadNumber,
    ),
    ("framing/inconsistent_histogram.json", Reason::IdentitySum),
];

const WITH_USAGE_DETAILS: Options = Options {
    usage_details: true,
};

fn n_of(reply: &Reply) -> u32 {
    u32::try_from(reply.payloads.len().max(1)).unwrap()
}

/// The engine's name where the sample calls it otherwise.
fn engine_of(expected: &Value) -> &str {
    match expected["engine"].as_str().unwrap() {
        "trtllm" => "tensorrt_llm",
        "vllm-draft-pr" => "vllm",
        "sglang-native" => "sglang",
        "usage-details" => "usage_details",
        "mlx-vlm" => "mlx_vlm",
        "vllm-mlx" => "vllm_mlx",
        name => name,
    }
}

fn check(entry: &Value, chunking: &str, reply: &Reply, verdict: &Verdict) {
    let file = entry["file"].as_str().unwrap();
    let context = format!("{file} cut {chunking}: {verdict:?}");
    let expected = entry["records"].as_array().unwrap();
    assert_eq!(verdict.records.len(), expected.len(), "{context}");
    let left_open = LEFT_OPEN
        .iter()
        .find(|(known, _)| *known == file)
        .map_or(&[][..], |(_, members)| *members);
    for (record, expected) in verdict.records.iter().zip(expected) {
        assert_eq!(record.engine.as_str(), engine_of(expected), "{context}");
        let count = |name: &str| {
            expected[name]
                .as_u64()
                .filter(|_| !left_open.contains(&name))
        };
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
            .zip(expected["histogram"].as_array().into_iter().flatten())
            .map(|(accepted, steps)| (accepted, steps.as_u64().unwrap()))
            .filter(|(_, steps)| *steps > 0)
            .collect();
        assert_eq!(record.acceptance_histogram, histogram, "{context}");
        let provenance = if expected.get("per_step_accepted").is_some() {
            Provenance::PerStep
        } else if expected["histogram"].is_null() {
            Provenance::Counts
        } else {
            Provenance::Histogram
        };
        assert_eq!(record.provenance, provenance, "{context}");
        for (array, name) in [
            (&record.per_step_accepted, "per_step_accepted"),
            (&record.per_step_drafted, "per_step_drafted"),
        ] {
            let expected = expected
                .get(name)
                .map(|list| serde_json::from_value::<Vec<u64>>(list.clone()).unwrap());
            assert_eq!(*array, expected, "{context}");
        }
        // The drafts of SGLang's shape that no release has yet are exact, its others nominal.
        let is_nominal = record.engine == EngineName::Sglang && expected.get("tentative").is_none();
        assert_eq!(record.nominal_drafts, is_nominal, "{context}");
        assert_eq!(
            record.zero_filled,
            expected.get("anomaly").is_some(),
            "{context}"
        );
        let contradicts =
            expected.get("anomaly").is_some() || expected.get("reported_mean").is_some();
        assert_eq!(verdict.contradiction, contradicts, "{context}");
        if let Some(mean) = expected.get("reported_mean") {
            assert_eq!(record.mean_acceptance_length, mean.as_f64(), "{context}");
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
    let reason = REASONS.iter().find(|(known, _)| *known == file);
    assert_eq!(verdict.reason, reason.map(|(_, why)| *why), "{context}");
    let is_stream = entry["kind"] == "sse";
    let says_error = entry
        .get("outcome")
        .is_some_and(|outcome| outcome == "error");
    assert_eq!(reply.error_event, is_stream && says_error, "{context}");
    assert_eq!(reply.fault, None, "{context}");
}

type MakeObserver = fn() -> ReplyObserver;

/// A sample's body and who observes it; none for what is no response.
fn sample(entry: &Value) -> Option<(MakeObserver, Vec<u8>)> {
    let bytes = fixture(format!("samples/{}", entry["file"].as_str().unwrap()));
    let json: MakeObserver = || observer(Kind::Json);
    let stream: MakeObserver = || observer(Kind::Stream);
    Some(match entry["kind"].as_str().unwrap() {
        "json" => (json, bytes),
        "sse" => (stream, bytes),
        "sse+gzip" => (
            || observer(Kind::Stream).decoding(Decoder::new("gzip").unwrap()),
            bytes,
        ),
        "http" => (json, reply_support::first_response(&bytes).2),
        "chunks" => (stream, stored_chunks(&bytes).concat()),
        _ => return None,
    })
}

fn entries() -> Vec<Value> {
    let expected = String::from_utf8(fixture("samples/expected.jsonl")).unwrap();
    expected
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn verdict(reply: &Reply) -> Verdict {
    engines::read(&reply.payloads, &reply.usage, n_of(reply))
}

#[test]
fn every_sample_gives_what_is_expected_at_every_chunking() {
    let mut seen = 0;
    for entry in entries() {
        let Some((observer, body)) = sample(&entry) else {
            continue;
        };
        if entry["kind"] == "chunks" {
            let chunks = stored_chunks(&fixture(format!(
                "samples/{}",
                entry["file"].as_str().unwrap()
            )));
            let reply = observe_with(observer(), chunks.iter().map(Vec::as_slice));
            check(&entry, "as stored", &reply, &verdict(&reply));
        }
        for (chunking, chunks) in chunkings(&body) {
            let reply = observe_with(observer().reading(WITH_USAGE_DETAILS), chunks);
            check(&entry, chunking, &reply, &verdict(&reply));
        }
        seen += 1;
    }
    assert_eq!(seen, 69, "samples were added or lost");
}

#[test]
fn usage_details_are_read_only_when_asked_for() {
    let mut seen = 0;
    for mut entry in entries() {
        let Some((observer, body)) = sample(&entry) else {
            continue;
        };
        let records = entry["records"].as_array().unwrap();
        if records
            .iter()
            .any(|record| record["engine"] == "usage-details")
        {
            entry["records"] = json!([]);
            seen += 1;
        }
        let reply = observe_with(observer(), [&body[..]]);
        check(&entry, "whole", &reply, &verdict(&reply));
        if entry["records"] == json!([]) && entry.get("outcome").is_none() {
            assert!(reply.payloads.is_empty(), "{entry}");
        }
    }
    assert_eq!(seen, 4, "samples were added or lost");
}

#[test]
fn a_batch_gives_a_record_for_each_of_its_elements() {
    for file in [
        "sglang/generate_native.json",
        "llamacpp/completion_native.json",
    ] {
        let element = String::from_utf8(fixture(format!("samples/{file}"))).unwrap();
        let body = format!("[{element},null,{element}]");
        for (chunking, chunks) in chunkings(body.as_bytes()) {
            let reply = observe_with(observer(Kind::Json), chunks);
            let verdict = engines::read(&reply.payloads, &reply.usage, 2);
            let context = format!("{file} cut {chunking}: {verdict:?}");
            assert_eq!(verdict.acceptance, Acceptance::Recorded, "{context}");
            assert_eq!(verdict.records.len(), 2, "{context}");
            for record in &verdict.records {
                assert_eq!(record.num_accepted_draft_tokens, 25, "{context}");
                assert_eq!(record.completion_tokens, Some(46), "{context}");
            }
        }
    }
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
