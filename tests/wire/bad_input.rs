//! What is wrong is named, counted, and costs no other request anything.

use std::io::Write;
use std::net::TcpListener;

use crate::support::client::{Client, post};
use crate::support::fixtures::capture;
use crate::support::origin::{Origin, Then, chunk, json, stream};
use crate::support::tap::Tap;

const CLOSE: &str = "Connection: close\r\n";

fn refused(tap: &Tap) -> String {
    String::from_utf8(tap.exchange(post("/v1/chat/completions", r#"{"stream":true}"#, CLOSE)))
        .unwrap()
}

#[test]
fn an_engine_that_is_not_there_is_named() {
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let tap = Tap::before(free);
    let answer = refused(&tap);
    assert!(
        answer.starts_with("HTTP/1.1 502 Bad Gateway\r\n"),
        "{answer}"
    );
    assert!(
        answer.contains("x-spectap-error: connect-refused\r\n"),
        "{answer}"
    );
    assert!(
        answer.contains(&free.to_string()) && answer.contains("is it running?"),
        "{answer}"
    );
    assert_eq!(
        tap.metric("spectap_upstream_errors_total{kind=\"connect-refused\"}"),
        1.0
    );
    let seen = &tap.observations(1)[0];
    assert_eq!(
        (&seen["status"], &seen["outcome"]),
        (&502.into(), &"error_status".into())
    );
    let mut client = Client::connect(tap.admin);
    client.send("GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    assert_eq!(client.response().status(), 503);
}

#[test]
fn an_engine_that_speaks_no_http_is_named() {
    let origin = Origin::start(|_, _, stream| {
        stream.write_all(b"SSH-2.0-OpenSSH_9.2\r\n\r\n").unwrap();
        Then::Close
    });
    let tap = Tap::before(origin.address);
    let answer = refused(&tap);
    assert!(answer.contains("x-spectap-error: not-http\r\n"), "{answer}");
}

#[test]
fn an_engine_that_closes_without_an_answer_is_named_and_not_asked_again() {
    let origin = Origin::start(|_, _, _| Then::Close);
    let tap = Tap::before(origin.address);
    let answer = refused(&tap);
    assert!(
        answer.contains("x-spectap-error: closed-early\r\n"),
        "{answer}"
    );
    assert_eq!(origin.requests().len(), 1);
}

#[test]
fn relayed_errors_never_carry_the_mark_of_our_own() {
    let origin = Origin::answering(vec![json("502 Bad Gateway", "{}")]);
    let tap = Tap::before(origin.address);
    assert!(!refused(&tap).contains("x-spectap-error"));
}

#[test]
fn a_body_that_is_no_json_goes_to_the_engine_as_it_is() {
    let origin = Origin::answering(vec![json(
        "400 Bad Request",
        "{\"error\":\"engine's own\"}",
    )]);
    let tap = Tap::before(origin.address);
    for body in [
        "{\"model\":\"m\",",
        "",
        "\u{feff}{}",
        "[1,2",
        "{\"stream\":true}}",
    ] {
        let answer = tap.exchange(post("/v1/chat/completions", body, CLOSE));
        assert!(answer.ends_with(b"engine's own\"}"));
    }
    let bodies: Vec<String> = origin
        .requests()
        .iter()
        .map(|request| request.body())
        .collect();
    assert_eq!(
        bodies,
        [
            "{\"model\":\"m\",",
            "",
            "\u{feff}{}",
            "[1,2",
            "{\"stream\":true}}"
        ]
    );
}

#[test]
fn an_endless_event_passes_in_bounded_memory_and_the_rest_is_seen() {
    let usage = capture("ngram-summary/chat-stream-include-usage").body;
    let origin = Origin::start(move |_, _, stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n").unwrap();
        stream.write_all(&chunk(b"data: ")).unwrap();
        for _ in 0..48 {
            stream.write_all(&chunk(&vec![b'x'; 64 << 10])).unwrap();
        }
        stream.write_all(&chunk(b"\n\n")).unwrap();
        stream.write_all(&chunk(&usage)).unwrap();
        stream.write_all(b"0\r\n\r\n").unwrap();
        Then::KeepAlive
    });
    let tap = Tap::before(origin.address);
    let mut client = Client::connect(tap.data);
    client.send(post(
        "/v1/chat/completions",
        r#"{"stream":true,"stream_options":{"include_usage":true}}"#,
        "",
    ));
    let body = client.response().body();
    assert!(body.len() > 3 << 20 && body.ends_with(b"data: [DONE]\n\n"));
    let seen = &tap.observations(1)[0];
    assert_eq!(
        (&seen["outcome"], &seen["acceptance"]),
        (&"complete".into(), &"recorded".into())
    );
}

#[test]
fn a_stream_of_nothing_but_an_endless_event_is_counted() {
    // What is kept of it is itself too large.
    let mut body = b"{\"usage\":{\"x\":[".to_vec();
    body.extend(b"1,".repeat(1 << 20));
    let origin = Origin::answering(vec![stream([&b"data: "[..], &body])]);
    let tap = Tap::before(origin.address);
    tap.exchange(post("/v1/chat/completions", r#"{"stream":true}"#, CLOSE));
    let seen = &tap.observations(1)[0];
    assert_eq!(
        (&seen["acceptance"], &seen["reason"]),
        (&"unobserved".into(), &"event_too_large".into())
    );
    assert_eq!(
        tap.metric("spectap_unobserved_total{reason=\"event_too_large\"}"),
        1.0
    );
}

#[test]
fn a_malformed_payload_is_counted_by_its_reason_and_the_answer_passes() {
    let good = String::from_utf8(capture("ngram-summary/chat-nonstream").body).unwrap();
    let cases = [
        (
            "\"num_spec_steps\":4",
            "\"num_spec_steps\":5",
            "identity_sum",
        ),
        (
            "\"num_accepted_draft_tokens\":7",
            "\"num_accepted_draft_tokens\":6",
            "identity_weighted",
        ),
        (
            "\"num_draft_tokens\":16",
            "\"num_draft_tokens\":6",
            "accepted_gt_drafted",
        ),
        (
            "\"num_draft_tokens\":16",
            "\"num_draft_tokens\":\"16\"",
            "bad_number",
        ),
        ("[0,2,1,1,0]", "[0,2,1,1]", "histogram_length"),
        ("[0,2,1,1,0]", "[0,2,1,true,0]", "bad_number"),
    ];
    let answers = cases
        .iter()
        .map(|(from, to, _)| json("200 OK", &good.replacen(from, to, 1)))
        .collect();
    let origin = Origin::answering(answers);
    let tap = Tap::before(origin.address);
    for (number, (from, to, reason)) in cases.iter().enumerate() {
        let answer = tap.exchange(post("/v1/chat/completions", "{}", CLOSE));
        assert!(
            answer.ends_with(good.replacen(from, to, 1).as_bytes()),
            "{reason}"
        );
        let seen = &tap.observations(number + 1)[0];
        assert_eq!(
            (&seen["acceptance"], &seen["reason"]),
            (&"malformed".into(), &(*reason).into())
        );
    }
    assert_eq!(tap.json("/api/v1/summary")["n"]["malformed"], cases.len());
}

#[test]
fn one_bad_connection_costs_the_others_nothing() {
    let origin = Origin::answering(vec![json("200 OK", "{}")]);
    let tap = Tap::before(origin.address);
    let mut rude: Vec<Client> = (0..20).map(|_| Client::connect(tap.data)).collect();
    for (number, client) in rude.iter_mut().enumerate() {
        let _ = client.stream.write_all(match number % 4 {
            0 => b"\x16\x03\x01\x02\x00".as_slice(),
            1 => b"GET / HTTP/9.9\r\n\r\n",
            2 => b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 99\r\n\r\n{",
            _ => b"GET / HTTP/1.1\r\nHost: a\r\nBad Header\r\n\r\n",
        });
    }
    let answer = tap.exchange(post("/v1/chat/completions", "{}", CLOSE));
    assert!(answer.starts_with(b"HTTP/1.1 200 OK"));
}
