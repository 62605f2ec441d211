//! Every sample response, through a running tap that knows nothing of its engine: the bytes pass, the record is what the
//! engine said.

use serde_json::Value;

use crate::support::client::{Client, post};
use crate::support::fixtures::{events, path};
use crate::support::origin::{Origin, chunk, json};
use crate::support::tap::Tap;

fn route(file: &str) -> &'static str {
    let name = file.rsplit('/').next().unwrap();
    match name.split(['_', '.']).next().unwrap() {
        "completions" => "/v1/completions",
        "completion" => "/completion",
        "generate" if file.starts_with("vllm") => "/inference/v1/generate",
        "generate" => "/generate",
        "responses" => "/v1/responses",
        "messages" => "/v1/messages",
        _ => "/v1/chat/completions",
    }
}

/// The same body in chunks: per event, one byte, whole, and cut in the middle of events.
fn cuttings(body: &[u8]) -> Vec<Vec<Vec<u8>>> {
    vec![
        events(body),
        body.chunks(1).map(<[u8]>::to_vec).collect(),
        vec![body.to_vec()],
        body.chunks(113).map(<[u8]>::to_vec).collect(),
    ]
}

fn answer(kind: &str, body: &[u8], pieces: &[Vec<u8>]) -> Vec<u8> {
    if kind == "json" {
        return json("200 OK", std::str::from_utf8(body).unwrap());
    }
    let coding = if kind == "sse+gzip" {
        "content-encoding: gzip\r\n"
    } else {
        ""
    };
    let mut answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n{coding}transfer-encoding: chunked\r\n\r\n"
    )
    .into_bytes();
    pieces.iter().for_each(|piece| answer.extend(chunk(piece)));
    answer.extend_from_slice(b"0\r\n\r\n");
    answer
}

/// What of a record the expectations name, in their words.
fn shown(record: &Value) -> Value {
    let engine = match record["engine"].as_str().unwrap() {
        "tensorrt_llm" => "trtllm",
        other => other,
    };
    serde_json::json!({
        "engine": engine,
        "accepted": record["num_accepted_draft_tokens"],
        "drafted": record["num_draft_tokens"],
    })
}

#[test]
fn every_sample_passes_byte_for_byte_and_gives_its_record() {
    let expected = std::fs::read_to_string(path("samples/expected.jsonl")).unwrap();
    let mut checked = 0;
    for line in expected
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
    {
        let (file, kind) = (
            line["file"].as_str().unwrap(),
            line["kind"].as_str().unwrap(),
        );
        if !matches!(kind, "json" | "sse" | "sse+gzip") {
            continue;
        }
        let body = std::fs::read(path(&format!("samples/{file}"))).unwrap();
        let stream = kind != "json";
        for pieces in cuttings(&body) {
            let origin = Origin::answering(vec![answer(kind, &body, &pieces)]);
            let tap = Tap::with(origin.address, &["--usage-details"]);
            let mut client = Client::connect(tap.data);
            // The client asks for everything itself, so that nothing is added and nothing taken out.
            let request = if stream {
                r#"{"stream":true,"stream_options":{"include_usage":true}}"#
            } else {
                "{}"
            };
            client.send(post(route(file), request, ""));
            assert!(client.response().body() == body, "{file}: bytes changed");
            let seen = &tap.observations(1)[0];
            let records = seen["spec_decode_acceptance"].as_array().unwrap();
            let want = line["records"].as_array().unwrap();
            let is_tentative = want.iter().any(|record| {
                ["ambiguous", "tentative", "anomaly"]
                    .iter()
                    .any(|mark| !record[mark].is_null())
            });
            if !is_tentative && line["outcome"] != "malformed" {
                assert_eq!(records.len(), want.len(), "{file}: {seen}");
                for (record, want) in records.iter().zip(want) {
                    let shown = shown(record);
                    assert_eq!(shown["accepted"], want["accepted"], "{file}");
                    assert_eq!(shown["drafted"], want["drafted"], "{file}");
                }
            }
            if line["outcome"] == "malformed" {
                assert_eq!(seen["acceptance"], "malformed", "{file}");
            }
            checked += 1;
        }
    }
    assert!(checked > 200, "only {checked}");
}

#[test]
fn usage_details_are_read_only_when_told() {
    for file in [
        "smg/chat.json",
        "tabbyapi/chat.json",
        "openai/predicted_outputs.json",
    ] {
        let body = std::fs::read_to_string(path(&format!("samples/{file}"))).unwrap();
        let origin = Origin::answering(vec![json("200 OK", &body)]);
        let tap = Tap::before(origin.address);
        let mut client = Client::connect(tap.data);
        client.send(post("/v1/chat/completions", "{}", ""));
        client.response();
        let seen = &tap.observations(1)[0];
        assert_eq!(
            seen["spec_decode_acceptance"],
            serde_json::json!([]),
            "{file}"
        );
    }
}
