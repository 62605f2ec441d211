//! Each stored response of a real vLLM server gives a payload exactly where the table in its README says one is, with
//! the numbers that stand in it.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test may panic anywhere"
)]

mod reply_support;

use reply_support::{Kind, first_response, fixture, fixtures, observe};
use serde_json::Value;
use spectap::engines;
use spectap::observation::Acceptance;

const FOLDER: &str = "captures/vllm-0.32.0";

struct Row {
    folder: String,
    case: String,
    events: Option<u64>,
    place: String,
}

/// The rows of the README's tables that have a response.
fn rows() -> Vec<Row> {
    let readme = String::from_utf8(fixture(format!("{FOLDER}/README.md"))).unwrap();
    let mut folder = String::new();
    let mut rows = Vec::new();
    for line in readme.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            folder = heading.trim().to_owned();
        }
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if let [_, case, _, events, place, _, _] = cells[..] {
            let path = format!("{FOLDER}/{folder}/{case}.http");
            if fixtures().join(path).exists() {
                rows.push(Row {
                    folder: folder.clone(),
                    case: case.to_owned(),
                    events: events.parse().ok(),
                    place: place.to_owned(),
                });
            }
        }
    }
    rows
}

/// The objects of a body, read the slow and simple way.
fn objects(kind: Kind, body: &[u8]) -> Vec<Value> {
    let text = String::from_utf8_lossy(body);
    match kind {
        Kind::Json => vec![serde_json::from_str(&text).unwrap()],
        Kind::Stream => text
            .lines()
            .filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok())
            .collect(),
    }
}

#[test]
fn every_capture_gives_a_payload_exactly_where_one_is() {
    let mut with_payload = 0;
    let mut bodies = 0;
    for row in rows() {
        let Row {
            folder,
            case,
            events,
            place,
        } = &row;
        let bytes = fixture(format!("{FOLDER}/{folder}/{case}.http"));
        if bytes.is_empty() {
            continue;
        }
        let (_, content_type, body) = first_response(&bytes);
        let kind = match content_type.split(';').next() {
            Some("text/event-stream") => Kind::Stream,
            Some("application/json") if !body.is_empty() => Kind::Json,
            _ => continue,
        };
        bodies += 1;
        let reply = observe(kind, [&body[..]]);
        let verdict = engines::read(&reply.payloads, &reply.usage, 1);
        let context = format!("{folder}/{case} ({place}): {reply:?} {verdict:?}");
        // The table counts blocks: comments too, and what stands behind the last whole block of a cut stream.
        if let (Some(blocks), false) = (events, case == "chat-stream-client-disconnect") {
            let comments = body
                .split(|byte| *byte == b'\n')
                .filter(|line| line.starts_with(b":"))
                .count() as u64;
            assert_eq!(reply.events, blocks - comments, "{context}");
        }
        let objects = objects(kind, &body);
        let sent = objects
            .iter()
            .find_map(|object| object["metrics"]["speculative_decoding"].as_object());
        let has_payload = place == "top level" || place.contains("usage event");
        assert_eq!(sent.is_some(), has_payload, "{context}");
        assert_eq!(
            matches!(
                verdict.acceptance,
                Acceptance::Recorded | Acceptance::ZeroStep
            ),
            has_payload,
            "{context}"
        );
        if place.contains("usage event") {
            assert!(reply.usage_event_seen, "{context}");
        }
        let usages: Vec<_> = objects
            .iter()
            .filter_map(|object| {
                [object, &object["message"], &object["response"]]
                    .into_iter()
                    .find_map(|object| object["usage"].as_object())
            })
            .collect();
        assert_eq!(reply.usage_seen, !usages.is_empty(), "{context}");
        if let Some(usage) = usages.last() {
            let completion = usage
                .get("completion_tokens")
                .or_else(|| usage.get("output_tokens"));
            assert_eq!(
                reply.usage.completion_tokens,
                completion.and_then(Value::as_u64),
                "{context}"
            );
        }
        let Some(sent) = sent else {
            assert_eq!(verdict.acceptance, Acceptance::Absent, "{context}");
            continue;
        };
        with_payload += 1;
        let record = serde_json::to_value(&verdict.records[0]).unwrap();
        for name in [
            "mean_acceptance_length",
            "draft_acceptance_rate",
            "num_spec_steps",
            "num_accepted_draft_tokens",
            "num_draft_tokens",
            "num_spec_tokens",
            "per_step_accepted",
            "per_step_drafted",
        ] {
            let sent = sent.get(name).filter(|value| !value.is_null());
            assert_eq!(record.get(name), sent, "{name}: {context}");
        }
        assert_eq!(
            record["completion_tokens"].as_u64(),
            reply.usage.completion_tokens,
            "{context}"
        );
        assert!(!verdict.contradiction, "{context}");
    }
    assert!(bodies > 150, "only {bodies} bodies: is the table read?");
    assert!(with_payload > 60, "only {with_payload} payloads");
}

/// Content as AIPerf counts it, the slow and simple way: parsed event by event.
fn has_content(object: &Value) -> bool {
    let Some(choices) = object["choices"].as_array() else {
        let kind = object["type"].as_str().unwrap_or_default();
        let delta = &object["delta"];
        return kind == "content_block_delta"
            || (kind.ends_with("text.delta") && delta.as_str().is_some_and(|d| !d.is_empty()));
    };
    choices.iter().any(|choice| {
        let filled = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
        let delta = &choice["delta"];
        filled(&delta["content"])
            || filled(&delta["reasoning"])
            || filled(&choice["text"])
            || delta["tool_calls"].as_array().is_some_and(|calls| {
                calls.iter().any(|call| {
                    filled(&call["function"]["name"]) || filled(&call["function"]["arguments"])
                })
            })
            || (delta.is_null()
                && choice.get("text").is_none()
                && choice["token_ids"]
                    .as_array()
                    .is_some_and(|ids| !ids.is_empty()))
    })
}

#[test]
fn every_streamed_capture_has_its_content_chunks() {
    let mut streams = 0;
    for row in rows() {
        let bytes = fixture(format!("{FOLDER}/{}/{}.http", row.folder, row.case));
        if bytes.is_empty() {
            continue;
        }
        let (_, content_type, body) = first_response(&bytes);
        if !content_type.starts_with("text/event-stream") {
            continue;
        }
        streams += 1;
        let reply = observe(Kind::Stream, [&body[..]]);
        let expected = objects(Kind::Stream, &body)
            .iter()
            .filter(|object| has_content(object))
            .count() as u64;
        assert_eq!(
            reply.content_chunks, expected,
            "{}/{}",
            row.folder, row.case
        );
        if row.case != "chat-stream-engine-killed" {
            assert!(!reply.error_event, "{}/{}", row.folder, row.case);
        } else {
            assert!(reply.error_event);
        }
    }
    assert!(streams > 60, "only {streams} streams");
}
