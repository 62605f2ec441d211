//! Each edge case that AIPerf was asked about gets AIPerf's verdict, but for the differences in this table.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test may panic anywhere"
)]

mod reply_support;

use reply_support::{Kind, fixture, observe};
use serde_json::Value;
use spectap::engines;
use spectap::observation::{Acceptance, Reason};

/// Where we know better, and what we say.
const DIFFERENCES: &[(&str, Acceptance, Option<Reason>)] = &[
    // A number in a string is a broken server's.
    (
        "vllm/counts as strings",
        Acceptance::Malformed,
        Some(Reason::BadNumber),
    ),
    (
        "vllm/rate as string",
        Acceptance::Malformed,
        Some(Reason::BadNumber),
    ),
    // AIPerf goes by the mean's presence, we by the counts' names: both engines claim it.
    (
        "vllm keys without mean, plus trtllm totals",
        Acceptance::Ambiguous,
        Some(Reason::AmbiguousSignature),
    ),
    // Forks still send the shape from before the merge.
    ("vllm/old per-choice place", Acceptance::Recorded, None),
    // The AIPerf that was asked reads neither SGLang, which its next release does, nor llama.cpp's totals.
    ("llamacpp/stream", Acceptance::Recorded, None),
    ("sglang/stream", Acceptance::Recorded, None),
    ("sglang/body", Acceptance::Recorded, None),
    // Several sequences: one record each. What AIPerf reports leaves such requests out, and so does our `aiperf` view.
    ("trtllm/n=2 body", Acceptance::Recorded, None),
    ("trtllm/n=2 stream, one payload", Acceptance::Recorded, None),
    ("vllm/n=2 request", Acceptance::Recorded, None),
];

#[test]
fn every_edge_case_gets_aiperfs_verdict_or_a_documented_one() {
    let stored: Value = serde_json::from_slice(&fixture("aiperf/edge-cases.json")).unwrap();
    let mut differences_met = 0;
    for case in stored["cases"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let n = u32::try_from(case["n"].as_u64().unwrap()).unwrap();
        let objects = case["chunks"].as_array().unwrap();
        let reply = if objects.len() == 1 {
            observe(Kind::Json, [objects[0].to_string().as_bytes()])
        } else {
            let stream: String = objects
                .iter()
                .map(|object| format!("data: {object}\n\n"))
                .chain(["data: [DONE]\n\n".to_owned()])
                .collect();
            observe(Kind::Stream, [stream.as_bytes()])
        };
        let verdict = engines::read(&reply.payloads, &reply.usage, n);
        if let Some((_, acceptance, reason)) = DIFFERENCES.iter().find(|(known, ..)| *known == name)
        {
            assert_eq!(verdict.acceptance, *acceptance, "{name}");
            assert_eq!(verdict.reason, *reason, "{name}");
            differences_met += 1;
            continue;
        }
        let ours = match verdict.acceptance {
            Acceptance::Recorded => "record",
            Acceptance::ZeroStep => "zero_step",
            _ => "none",
        };
        assert_eq!(case["verdict"], ours, "{name}: {verdict:?}");
        if let Some(expected) = case["record"].as_object() {
            let record = serde_json::to_value(&verdict.records[0]).unwrap();
            for (member, value) in expected {
                assert_eq!(record[member], *value, "{name}: {member}");
            }
        } else {
            assert!(verdict.records.is_empty(), "{name}");
        }
    }
    assert_eq!(differences_met, DIFFERENCES.len(), "a difference is stale");
}
