//! What the engine gets instead of the client's body, byte for byte.

use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::sync::mpsc;

use serde_json::Value;

use crate::support::client::{Client, post};
use crate::support::fixtures::{capture, path};
use crate::support::origin::{Origin, chunk, json, stream};
use crate::support::tap::Tap;
use crate::support::{DEADLINE, until};

const CLOSE: &str = "Connection: close\r\n";
const PLAIN: &str = r#"{"model":"m","messages":[],"stream":true}"#;
const SPLICED: &str =
    r#"{"model":"m","messages":[],"stream":true,"stream_options":{"include_usage":true}}"#;

/// An engine that answers everything with an empty object.
fn silent() -> Origin {
    Origin::answering(vec![json("200 OK", "{}")])
}

/// An engine that first shows itself as a vLLM, with its fingerprint.
fn vllm_first() -> (Origin, Tap) {
    let origin = Origin::answering(vec![
        capture("ngram-summary/chat-nonstream").raw,
        json("200 OK", "{}"),
    ]);
    let tap = Tap::before(origin.address);
    tap.exchange(post("/v1/chat/completions", "{}", CLOSE));
    tap.observations(1);
    (origin, tap)
}

#[test]
fn every_sample_case_leaves_exactly_the_expected_bytes() {
    let cases = fs::read_to_string(path("samples/requests/cases.jsonl")).unwrap();
    let mut checked = 0;
    for case in cases
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
    {
        if case["action"] == "inject-sglang" {
            // Only a known SGLang gets this one: see sglang.rs.
            continue;
        }
        let (input, output) = (case["in"].as_str().unwrap(), case["out"].as_str().unwrap());
        let (origin, tap) = vllm_first();
        tap.exchange(post(
            &format!("/any/prefix{}", case["path"].as_str().unwrap()),
            input,
            CLOSE,
        ));
        let seen = origin.request(1);
        assert_eq!(seen.body(), output, "{}", case["name"]);
        assert!(
            seen.head
                .contains(&format!("Content-Length: {}\r\n", output.len())),
            "{}",
            seen.head
        );
        checked += 1;
    }
    assert_eq!(checked, 20);
}

#[test]
fn an_unknown_engine_gets_no_lone_continuous_usage_and_no_several_sequences() {
    let origin = silent();
    let tap = Tap::before(origin.address);
    let bodies = [
        r#"{"stream":true,"stream_options":{"continuous_usage_stats":true}}"#,
        r#"{"stream":true,"n":2}"#,
        r#"{"stream":true,"prompt":["a","b"]}"#,
    ];
    for (number, body) in bodies.iter().enumerate() {
        tap.exchange(post("/v1/chat/completions", body, CLOSE));
        assert_eq!(origin.request(number).body(), *body);
    }
    assert_eq!(
        tap.metric("spectap_injections_skipped_total{reason=\"continuous_usage\"}"),
        1.0
    );
    assert_eq!(
        tap.metric("spectap_injections_skipped_total{reason=\"fingerprint_unknown\"}"),
        2.0
    );
}

#[test]
fn a_chunked_body_is_spliced_and_stays_chunked() {
    let origin = silent();
    let tap = Tap::before(origin.address);
    let mut request = b"POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n".to_vec();
    for piece in PLAIN.as_bytes().chunks(7) {
        request.extend(chunk(piece));
    }
    request.extend_from_slice(b"0\r\n\r\n");
    tap.exchange(request);
    assert_eq!(origin.request(0).body(), SPLICED);
    assert!(
        origin
            .request(0)
            .head
            .contains("Transfer-Encoding: chunked")
    );
}

#[test]
fn bodies_that_can_not_be_altered_pass_untouched_and_are_counted() {
    let origin = silent();
    let tap = Tap::before(origin.address);
    let cases = [
        ("Content-Encoding: gzip\r\n", "encoding"),
        ("Content-Digest: sha-256=:x:\r\n", "signed"),
        ("Signature-Input: sig\r\n", "signed"),
    ];
    for (number, (extra, reason)) in cases.iter().enumerate() {
        let request = post("/v1/chat/completions", PLAIN, &format!("{CLOSE}{extra}"));
        tap.exchange(&request);
        assert_eq!(origin.request(number).body(), PLAIN, "{reason}");
        assert!(
            tap.metric(&format!(
                "spectap_injections_skipped_total{{reason=\"{reason}\"}}"
            )) >= 1.0,
            "{reason}"
        );
    }
    let request =
        post("/v1/chat/completions", PLAIN, CLOSE).replace("application/json", "text/plain");
    tap.exchange(request);
    assert_eq!(origin.request(cases.len()).body(), PLAIN);
    assert_eq!(
        tap.metric("spectap_injections_skipped_total{reason=\"not_json\"}"),
        1.0
    );
}

#[test]
fn a_body_above_the_limit_passes_untouched_and_is_counted() {
    let origin = silent();
    let tap = Tap::before(origin.address);
    let big = format!("{{\"stream\":true,\"x\":\"{}\"}}", "y".repeat(16 << 20));
    tap.exchange(post("/v1/chat/completions", &big, CLOSE));
    let mut chunked = b"POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n".to_vec();
    for piece in big.as_bytes().chunks(1 << 20) {
        chunked.extend(chunk(piece));
    }
    chunked.extend_from_slice(b"0\r\n\r\n");
    tap.exchange(chunked);
    for number in 0..2 {
        assert!(
            origin.request(number).body() == big,
            "request {number} changed"
        );
    }
    assert_eq!(
        tap.metric("spectap_injections_skipped_total{reason=\"too_large\"}"),
        2.0
    );
}

#[test]
fn a_body_that_is_announced_as_too_large_is_not_waited_for() {
    let engine = TcpListener::bind("127.0.0.1:0").unwrap();
    let tap = Tap::before(engine.local_addr().unwrap());
    let mut client = Client::connect(tap.data);
    client.send("POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 17000000\r\n\r\n{\"a");
    let (mut stream, _) = engine.accept().unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    let mut seen = Vec::new();
    while !seen.ends_with(b"\r\n\r\n{\"a") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        seen.extend(byte);
    }
}

#[test]
fn all_held_bodies_together_are_bounded_and_the_room_is_given_back() {
    let origin = silent();
    let tap = Tap::before(origin.address);
    let ask = || {
        tap.exchange(post("/v1/chat/completions", PLAIN, CLOSE));
        origin.requests().last().unwrap().body() == PLAIN
    };
    let mut holders = Vec::new();
    let nearly_all = vec![b' '; (16 << 20) - 1];
    for _ in 0..17 {
        let mut client = Client::connect(tap.data);
        client.send("POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 16777216\r\n\r\n");
        client.send(&nearly_all);
        holders.push(client);
    }
    until("a request left alone", || ask().then_some(()));
    assert!(tap.metric("spectap_injections_skipped_total{reason=\"memory\"}") >= 1.0);
    drop(holders);
    until("a request altered again", || (!ask()).then_some(()));
}

#[test]
fn a_body_with_trailers_passes_with_them() {
    let (seen, arrived) = mpsc::channel();
    let engine = TcpListener::bind("127.0.0.1:0").unwrap();
    let tap = Tap::before(engine.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = engine.accept().unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"0\r\nx-sum: 7\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            request.extend(byte);
        }
        seen.send(request).unwrap();
    });
    let mut client = Client::connect(tap.data);
    client.send(format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTrailer: x-sum\r\nTransfer-Encoding: chunked\r\n\r\n{:X}\r\n{PLAIN}\r\n0\r\nx-sum: 7\r\n\r\n",
        PLAIN.len()
    ));
    let request = arrived.recv_timeout(DEADLINE).unwrap();
    let request = String::from_utf8(request).unwrap();
    let (_, body) = request.split_once("\r\n\r\n").unwrap();
    assert_eq!(
        body,
        format!("{:X}\r\n{PLAIN}\r\n0\r\nx-sum: 7\r\n\r\n", PLAIN.len())
    );
    assert_eq!(
        tap.metric("spectap_injections_skipped_total{reason=\"too_large\"}"),
        1.0
    );
}

#[test]
fn off_changes_no_byte_and_the_switch_works_while_running() {
    let origin = silent();
    let tap = Tap::with(origin.address, &["--inject=off"]);
    let request = post("/v1/chat/completions", PLAIN, "");
    let send = |number: usize| {
        tap.exchange(request.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n"));
        let seen = origin.request(number);
        (format!("{}{}", seen.head, seen.body()), seen.body())
    };
    assert_eq!(send(0).0, request);
    assert_eq!(tap.json("/api/v1/inject")["enabled"], false);
    tap.switch_injection(true);
    assert_eq!(send(1).1, SPLICED);
    tap.switch_injection(false);
    assert_eq!(send(2).0, request);
    assert_eq!(
        tap.metric("spectap_injections_skipped_total{reason=\"off\"}"),
        2.0
    );
}

#[test]
fn always_leaves_a_refusal_alone() {
    let origin = silent();
    let tap = Tap::with(origin.address, &["--expose-usage=always"]);
    let refused = r#"{"stream":true,"stream_options":{"include_usage":false}}"#;
    tap.exchange(post("/v1/chat/completions", refused, CLOSE));
    tap.exchange(post("/v1/chat/completions", PLAIN, CLOSE));
    assert_eq!(origin.request(0).body(), refused);
    assert_eq!(origin.request(1).body(), SPLICED);
}

#[test]
fn other_methods_and_paths_are_never_touched() {
    let origin = silent();
    let tap = Tap::before(origin.address);
    let request = |method: &str, path: &str| post(path, PLAIN, CLOSE).replace("POST", method);
    let cases = [
        ("PUT", "/v1/chat/completions"),
        ("POST", "/v1/chat/completions/"),
        ("POST", "/v1/embeddings"),
    ];
    for (number, (method, path)) in cases.iter().enumerate() {
        tap.exchange(request(method, path));
        assert_eq!(origin.request(number).body(), PLAIN, "{method} {path}");
    }
    tap.exchange(request("POST", "/v1/chat/completions?x=1"));
    assert_eq!(
        origin.request(cases.len()).body(),
        SPLICED,
        "a query is not part of the path"
    );
}

#[test]
fn a_body_that_can_not_be_read_is_counted_and_is_the_reason_for_what_is_missing() {
    const ANSWER: &[u8] = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let utf16: Vec<u8> = PLAIN.encode_utf16().flat_map(u16::to_le_bytes).collect();
    // Python's parser takes all of these, so that an engine may well stream its answer.
    let bodies = [
        format!("\u{feff}{PLAIN}").into_bytes(),
        br#"{"temperature":NaN,"stream":true}"#.to_vec(),
        utf16,
    ];
    for body in bodies {
        let origin = Origin::answering(vec![stream([ANSWER])]);
        let tap = Tap::before(origin.address);
        let mut request = post("/v1/chat/completions", "", CLOSE)
            .replace(
                "Content-Length: 0",
                &format!("Content-Length: {}", body.len()),
            )
            .into_bytes();
        request.extend_from_slice(&body);
        tap.exchange(request);
        assert_eq!(origin.raw_bodies(), [body]);
        assert_eq!(
            tap.metric("spectap_injections_skipped_total{reason=\"not_json\"}"),
            1.0
        );
        let seen = &tap.observations(1)[0];
        assert_eq!(
            (&seen["stream"], &seen["reason"]),
            (&true.into(), &"inject_skipped".into())
        );
        assert!(seen["timing"]["time_to_first_token_ms"].is_number());
    }
}

#[test]
fn several_sequences_are_several_however_the_number_is_written() {
    for n in ["2", "2.0", "2e0", "\"2\""] {
        let origin = silent();
        let tap = Tap::before(origin.address);
        let body = format!("{{\"n\":{n},\"stream\":true}}");
        tap.exchange(post("/v1/chat/completions", &body, CLOSE));
        assert_eq!(origin.request(0).body(), body);
        assert_eq!(
            tap.metric("spectap_injections_skipped_total{reason=\"fingerprint_unknown\"}"),
            1.0,
            "{n}"
        );
        assert_eq!(tap.observations(1)[0]["n"], 2);
    }
}

#[test]
fn only_a_stream_that_is_literally_true_is_touched() {
    let origin = silent();
    let tap = Tap::before(origin.address);
    let bodies = [
        r#"{"stream":"true"}"#,
        r#"{"stream":1}"#,
        r#"{"stream":null}"#,
        r#"{"stream":True}"#,
        r#"{"a":{"stream":true}}"#,
        r#"{"stream":false}"#,
        r#"{}"#,
    ];
    for (number, body) in bodies.iter().enumerate() {
        tap.exchange(post("/v1/chat/completions", body, CLOSE));
        assert_eq!(origin.request(number).body(), *body);
    }
    tap.exchange(post("/v1/chat/completions", PLAIN, CLOSE));
    assert_eq!(origin.request(bodies.len()).body(), SPLICED);
}
