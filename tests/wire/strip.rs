//! A client that did not ask for usage gets the stream that it would have had without spectap.

use std::io::Write;
use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver, Sender};

use serde_json::{Value, json};

use crate::support::DEADLINE;
use crate::support::client::{Client, dechunk, post};
use crate::support::fixtures::{Capture, capture, events, masked, path};
use crate::support::origin::{Origin, Then, chunk, stream};
use crate::support::tap::Tap;

const CLOSE: &str = "Connection: close\r\n";

/// Folder, what the client sent, what the engine answers to the altered request.
const PAIRS: &[(&str, &str, &str)] = &[
    (
        "ngram-summary",
        "chat-stream-no-options",
        "chat-stream-include-usage",
    ),
    (
        "ngram-summary",
        "chat-stream-include-usage-false",
        "chat-stream-include-usage",
    ),
    (
        "ngram-summary",
        "chat-stream-options-empty",
        "chat-stream-include-usage",
    ),
    (
        "ngram-summary",
        "chat-stream-options-null",
        "chat-stream-include-usage",
    ),
    (
        "ngram-summary",
        "chat-stream-continuous-usage-only",
        "chat-stream-include-usage",
    ),
    (
        "ngram-summary",
        "completions-stream-no-options",
        "completions-stream-include-usage",
    ),
    (
        "ngram-summary",
        "completions-stream-include-usage-false",
        "completions-stream-include-usage",
    ),
    (
        "ngram-summary",
        "generate-stream",
        "generate-stream-include-usage",
    ),
    (
        "ngram-detailed",
        "chat-stream-no-options",
        "chat-stream-include-usage",
    ),
    (
        "ngram-detailed",
        "chat-stream-include-usage-false",
        "chat-stream-include-usage",
    ),
    (
        "ngram-detailed",
        "completions-stream-no-options",
        "completions-stream-include-usage",
    ),
    (
        "ngram-detailed",
        "generate-stream",
        "generate-stream-include-usage",
    ),
    (
        "draft-model-detailed",
        "chat-stream-no-options",
        "chat-stream-include-usage",
    ),
    (
        "ngram-summary-per-request-metrics",
        "chat-stream-no-options",
        "chat-stream-include-usage",
    ),
    (
        "ngram-detailed-api-key-no-fingerprint/with-key",
        "chat-stream-no-options",
        "chat-stream-include-usage",
    ),
    (
        "ngram-detailed-api-key-no-fingerprint/with-key",
        "completions-stream-no-options",
        "completions-stream-include-usage",
    ),
    (
        "ngram-level-none",
        "chat-stream-no-options",
        "chat-stream-include-usage",
    ),
    (
        "no-speculation",
        "chat-stream-no-options",
        "chat-stream-include-usage",
    ),
];

fn route(case: &str) -> &'static str {
    match case.split('-').next().unwrap() {
        "chat" => "/v1/chat/completions",
        "completions" => "/v1/completions",
        "generate" => "/inference/v1/generate",
        other => panic!("{other}"),
    }
}

/// How an answer's bytes are cut into HTTP chunks.
fn cuttings(body: &[u8]) -> Vec<Vec<Vec<u8>>> {
    vec![
        events(body),
        vec![body.to_vec()],
        body.chunks(1).map(<[u8]>::to_vec).collect(),
        body.chunks(97).map(<[u8]>::to_vec).collect(),
    ]
}

fn strip_pair(folder: &str, asked: &str, answered: &str) {
    let without = capture(&format!("{folder}/{asked}"));
    let with = capture(&format!("{folder}/{answered}"));
    for (cutting, pieces) in cuttings(&with.body).into_iter().enumerate() {
        let first = capture(&format!("{}/chat-nonstream", folder)).raw;
        let origin = Origin::answering(vec![first, stream(pieces.iter().map(Vec::as_slice))]);
        let tap = Tap::before(origin.address);
        if asked.contains("continuous") {
            // Only a known vLLM gets this one injected.
            tap.exchange(post("/v1/chat/completions", "{}", CLOSE));
            tap.observations(1);
        } else {
            tap.exchange(post("/v1/embeddings", "{}", CLOSE));
        }
        let answer = tap.exchange(post(route(asked), &without.request.to_string(), CLOSE));
        let body = memchr::memmem::find(&answer, b"\r\n\r\n").unwrap() + 4;
        assert_eq!(
            masked(&dechunk(&answer[body..])),
            masked(&without.body),
            "{folder}/{asked}, cutting {cutting}"
        );
        let sent: Value = serde_json::from_str(&origin.request(1).body()).unwrap();
        assert_eq!(sent["stream_options"]["include_usage"], true);
        assert_ne!(sent["stream_options"]["continuous_usage_stats"], true);
        assert_eq!(tap.metric("spectap_stripped_events_total"), 1.0);
    }
}

#[test]
fn every_captured_pair_is_equal_byte_for_byte_in_any_cutting() {
    for (folder, asked, answered) in PAIRS {
        strip_pair(folder, asked, answered);
    }
}

#[test]
fn no_captured_pair_is_left_out() {
    let base = path("captures/vllm-0.32.0");
    let suffixes = [
        "-no-options",
        "-include-usage-false",
        "-options-empty",
        "-options-null",
        "-continuous-usage-only",
    ];
    let mut missing = Vec::new();
    let mut folders = vec![base.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
        {
            if entry.is_dir() {
                folders.push(entry);
                continue;
            }
            let name = entry.strip_prefix(&base).unwrap().to_str().unwrap();
            let Some(case) = name.strip_suffix(".http") else {
                continue;
            };
            let (folder, case) = case.rsplit_once('/').unwrap();
            let is_asked =
                !case.contains("nonstream") && suffixes.iter().any(|suffix| case.ends_with(suffix));
            let is_asked = is_asked || case == "generate-stream";
            // The forced ones pass whole: see below.
            let known = PAIRS.iter().any(|pair| (pair.0, pair.1) == (folder, case))
                || folder.contains("force");
            if is_asked && !known {
                missing.push(name.to_owned());
            }
        }
    }
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn comments_errors_and_stop_strings_stay() {
    for (folder, case) in [
        (
            "ngram-summary-connections",
            "chat-stream-sse-keep-alive-comments",
        ),
        ("ngram-summary-connections", "chat-stream-engine-killed"),
        ("ngram-summary-connections", "chat-stream-aborted-by-server"),
        ("ngram-summary", "chat-stream-stop-string-include-usage"),
    ] {
        let with = capture(&format!("{folder}/{case}"));
        let origin = Origin::answering(vec![stream(events(&with.body).iter().map(Vec::as_slice))]);
        let tap = Tap::before(origin.address);
        let answer = tap.exchange(post("/v1/chat/completions", r#"{"stream":true}"#, CLOSE));
        let got = dechunk(&answer[memchr::memmem::find(&answer, b"\r\n\r\n").unwrap() + 4..]);
        assert_eq!(
            String::from_utf8(got).unwrap(),
            without_usage(&with),
            "{case}"
        );
    }
}

/// What a vLLM would have sent without usage: no usage event, its fingerprint on the finish event.
fn without_usage(with: &Capture) -> String {
    let mut kept: Vec<String> = Vec::new();
    for event in events(&with.body) {
        let text = String::from_utf8(event).unwrap();
        if text.contains("\"choices\":[],\"usage\"") {
            let fingerprint = text
                .split("\"system_fingerprint\":")
                .nth(1)
                .unwrap()
                .split(['}', ','])
                .next()
                .unwrap();
            let finish = kept.last_mut().unwrap();
            let at = finish.rfind('}').unwrap();
            finish.insert_str(at, &format!(",\"system_fingerprint\":{fingerprint}"));
        } else {
            kept.push(text);
        }
    }
    kept.concat()
}

#[test]
fn a_client_that_asked_sees_every_byte_of_the_engine() {
    let cases = [
        "chat-stream-include-usage",
        "chat-stream-continuous-usage",
        "completions-stream-include-usage",
    ];
    for case in cases {
        let with = capture(&format!("ngram-summary/{case}"));
        let answer = stream(events(&with.body).iter().map(Vec::as_slice));
        let origin = Origin::answering(vec![answer.clone()]);
        let tap = Tap::before(origin.address);
        let request = with.request.to_string();
        let got = tap.exchange(post(route(case), &request, CLOSE));
        assert_eq!(origin.request(0).body(), request);
        let body =
            |bytes: &[u8]| dechunk(&bytes[memchr::memmem::find(bytes, b"\r\n\r\n").unwrap() + 4..]);
        assert_eq!(body(&got), body(&answer), "{case}");
    }
}

#[test]
fn always_shows_what_was_injected() {
    let with = capture("ngram-summary/chat-stream-include-usage");
    let origin = Origin::answering(vec![stream(events(&with.body).iter().map(Vec::as_slice))]);
    let tap = Tap::with(origin.address, &["--expose-usage=always"]);
    let answer = tap.exchange(post("/v1/chat/completions", r#"{"stream":true}"#, CLOSE));
    let got = dechunk(&answer[memchr::memmem::find(&answer, b"\r\n\r\n").unwrap() + 4..]);
    assert_eq!(got, with.body);
}

#[test]
fn usage_that_the_engine_forces_passes_whole_and_injection_stops_on_that_route() {
    for case in [
        "chat-stream-no-options",
        "completions-stream-no-options",
        "chat-stream-options-empty",
    ] {
        let forced = capture(&format!("ngram-summary-force-include-usage/{case}"));
        let plain = capture("ngram-summary/chat-stream-no-options");
        let origin = Origin::answering(vec![
            stream(events(&forced.body).iter().map(Vec::as_slice)),
            stream(events(&forced.body).iter().map(Vec::as_slice)),
            stream(events(&plain.body).iter().map(Vec::as_slice)),
            stream(events(&plain.body).iter().map(Vec::as_slice)),
        ]);
        let tap = Tap::before(origin.address);
        let request = post(route(case), &forced.request.to_string(), CLOSE);
        for number in 0..2 {
            let answer = tap.exchange(&request);
            let got = dechunk(&answer[memchr::memmem::find(&answer, b"\r\n\r\n").unwrap() + 4..]);
            assert_eq!(masked(&got), masked(&forced.body), "{case} stream {number}");
            tap.observations(number + 1);
        }
        let asked = |number: usize| {
            let sent: Value = serde_json::from_str(&origin.request(number).body()).unwrap();
            sent["stream_options"]["include_usage"] == json!(true)
        };
        assert!(
            asked(0) && !asked(1),
            "{case}: injection stops after the first stream"
        );
        assert_eq!(
            tap.metric("spectap_injections_skipped_total{reason=\"sent_unasked\"}"),
            1.0
        );
        assert_eq!(tap.metric("spectap_stripped_events_total"), 0.0);
        // A stream without usage shows that the engine was restarted without the flag.
        tap.exchange(&request);
        tap.observations(3);
        tap.exchange(&request);
        assert!(asked(3), "{case}: injection begins again");
    }
}

#[test]
fn several_sequences_each_get_the_fingerprint_back() {
    let with = capture("ngram-summary/chat-stream-n2-include-usage");
    let expected: String = events(&with.body)
        .into_iter()
        .map(|event| String::from_utf8(event).unwrap())
        .filter(|event| !event.contains("\"choices\":[],"))
        .map(|event| {
            let finish = event.contains("\"finish_reason\":\"");
            if finish {
                event.replace("}]}", "}],\"system_fingerprint\":\"vllm-0.32.0-5c435f56\"}")
            } else {
                event
            }
        })
        .collect();
    assert_eq!(expected.matches("system_fingerprint").count(), 2);
    for pieces in cuttings(&with.body) {
        let origin = Origin::answering(vec![
            capture("ngram-summary/chat-nonstream-keepalive").raw,
            stream(pieces.iter().map(Vec::as_slice)),
        ]);
        let tap = Tap::before(origin.address);
        tap.exchange(post("/v1/chat/completions", "{}", CLOSE));
        tap.observations(1);
        let answer = tap.exchange(post(
            "/v1/chat/completions",
            r#"{"stream":true,"n":2}"#,
            CLOSE,
        ));
        let got = dechunk(&answer[memchr::memmem::find(&answer, b"\r\n\r\n").unwrap() + 4..]);
        assert_eq!(
            String::from_utf8(got).unwrap(),
            expected,
            "in {} pieces",
            pieces.len()
        );
    }
}

#[test]
fn the_fingerprint_is_that_of_the_process_behind_the_connection() {
    /// An answer of the process with this fingerprint, as vLLM moves it.
    fn answer(finishes: usize, fingerprint: &str) -> Vec<u8> {
        let finish = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}]}\n\n";
        let usage = format!(
            "data: {{\"choices\":[],\"usage\":{{\"completion_tokens\":2}},\"system_fingerprint\":\"{fingerprint}\"}}\n\n"
        );
        stream([finish.repeat(finishes).as_bytes(), usage.as_bytes()])
    }
    let (go, gone) = [mpsc::channel(), mpsc::channel()].into_iter().unzip();
    let (go, gone): (Vec<Sender<()>>, Vec<Receiver<()>>) = (go, gone);
    let gone = Mutex::new(gone);
    // The first connection leads to process A, the second one to B; the first and the last request wait.
    let origin = Origin::start(move |number, request, stream| {
        if number != 1 {
            let wait = gone.lock().unwrap().remove(0);
            wait.recv_timeout(DEADLINE).unwrap();
        }
        let fingerprint = ["vllm-A", "vllm-B"][request.connection];
        let finishes = if number == 2 { 2 } else { 1 };
        stream.write_all(&answer(finishes, fingerprint)).unwrap();
        Then::KeepAlive
    });
    let tap = Tap::before(origin.address);
    let asked = |body| post("/v1/chat/completions", body, CLOSE);
    let got = std::thread::scope(|scope| {
        scope.spawn(|| tap.exchange(asked(r#"{"stream":true}"#)));
        origin.request(0);
        tap.exchange(asked(r#"{"stream":true}"#));
        tap.observations(1);
        tap.until_metric("spectap_upstream_connections{state=\"idle\"}", 1.0);
        let several = scope.spawn(|| tap.exchange(asked(r#"{"stream":true,"n":2}"#)));
        assert_eq!(origin.request(2).connection, 1);
        // Process A is now the last one that was seen.
        go[0].send(()).unwrap();
        tap.observations(2);
        go[1].send(()).unwrap();
        several.join().unwrap()
    });
    let got = String::from_utf8(got).unwrap();
    assert_eq!(got.matches("\"system_fingerprint\":\"vllm-B\"").count(), 2);
    assert!(!got.contains("vllm-A") && !got.contains("usage"), "{got}");
}

#[test]
fn a_stream_with_a_length_that_must_be_stripped_becomes_chunked() {
    let with = capture("ngram-summary/chat-stream-include-usage");
    let mut answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\ncontent-type: text/event-stream\r\n\r\n",
        with.body.len()
    )
    .into_bytes();
    answer.extend_from_slice(&with.body);
    let origin = Origin::answering(vec![answer]);
    let tap = Tap::before(origin.address);
    let got = tap.exchange(post("/v1/chat/completions", r#"{"stream":true}"#, CLOSE));
    let head = String::from_utf8_lossy(&got[..200]).to_lowercase();
    assert!(
        head.contains("transfer-encoding: chunked") && !head.contains("content-length"),
        "{head}"
    );
    let got = dechunk(&got[memchr::memmem::find(&got, b"\r\n\r\n").unwrap() + 4..]);
    assert_eq!(String::from_utf8(got).unwrap(), without_usage(&with));
}

#[test]
fn a_compressed_answer_passes_and_injection_stops_for_clients_that_take_codings() {
    let answer = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: compress\r\ncontent-length: 4\r\n\r\n\x1f\x8b\x08\x00".to_vec();
    let origin = Origin::answering(vec![answer]);
    let tap = Tap::before(origin.address);
    let body = r#"{"stream":true}"#;
    let coded = post(
        "/v1/chat/completions",
        body,
        "Connection: close\r\nAccept-Encoding: gzip, br\r\n",
    );
    assert!(tap.exchange(&coded).ends_with(b"\x1f\x8b\x08\x00"));
    tap.observations(1);
    tap.exchange(&coded);
    tap.exchange(post(
        "/v1/chat/completions",
        body,
        "Connection: close\r\nAccept-Encoding: identity\r\n",
    ));
    assert_ne!(origin.request(0).body(), body);
    assert_eq!(origin.request(1).body(), body);
    assert_ne!(origin.request(2).body(), body);
    assert_eq!(
        tap.metric("spectap_strips_skipped_total{reason=\"encoding\"}"),
        2.0
    );
    assert_eq!(
        tap.metric("spectap_unobserved_total{reason=\"encoding\"}"),
        3.0
    );
}

#[test]
fn an_event_with_data_of_its_own_beside_the_usage_passes() {
    let native = "data: {\"choices\":[],\"usage\":{\"total_tokens\":1},\"error\":{\"code\":1}}\n\n";
    let caused = "data: {\"choices\":[],\"usage\":{\"total_tokens\":1}}\n\n";
    let content = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"},\"finish_reason\":null}]}\n\n";
    let pieces = [content, native, caused, "data: [DONE]\n\n"];
    let origin = Origin::answering(vec![stream(pieces.iter().map(|piece| piece.as_bytes()))]);
    let tap = Tap::before(origin.address);
    let answer = tap.exchange(post("/v1/chat/completions", r#"{"stream":true}"#, CLOSE));
    let got = dechunk(&answer[memchr::memmem::find(&answer, b"\r\n\r\n").unwrap() + 4..]);
    let kept = [content, native, "data: [DONE]\n\n"].concat();
    assert_eq!(String::from_utf8(got).unwrap(), kept);
}

#[test]
fn an_event_without_end_is_passed_on_and_not_kept() {
    // It may be the caused one as long as one looks, so that it is held at first.
    let (go, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let origin = Origin::start(move |_, _, stream| {
        let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        stream.write_all(head).unwrap();
        let begin = b"data: {\"choices\":[],\"usage\":{\"x\":\"";
        stream.write_all(&chunk(begin)).unwrap();
        for _ in 0..24 {
            let piece = chunk(&vec![b'x'; 64 << 10]);
            stream.write_all(&piece).unwrap();
        }
        // The event ends only after the client has had what came of it.
        wait.lock().unwrap().recv().unwrap();
        stream.write_all(b"0\r\n\r\n").unwrap();
        Then::KeepAlive
    });
    let tap = Tap::before(origin.address);
    let mut client = Client::connect(tap.data);
    client.send(post("/v1/chat/completions", r#"{"stream":true}"#, ""));
    client.read_until(&vec![b'x'; 64 << 10]);
    go.send(()).unwrap();
    client.read_until(b"0\r\n\r\n");
}
