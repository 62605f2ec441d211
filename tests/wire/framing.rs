//! Bodies keep the class of their framing in both directions.

use crate::support::client::{Client, post};
use crate::support::origin::{Origin, chunk, json, stream};
use crate::support::tap::Tap;

fn through(answer: Vec<u8>, request: &str) -> String {
    let origin = Origin::answering(vec![answer]);
    let tap = Tap::before(origin.address);
    String::from_utf8(tap.exchange(request)).unwrap()
}

const GET: &str = "GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

#[test]
fn a_length_stays_a_length() {
    let origin = Origin::answering(vec![json("200 OK", "{}")]);
    let tap = Tap::before(origin.address);
    tap.exchange(post("/x", "{\"a\":1}", "Connection: close\r\n"));
    let seen = origin.request(0);
    assert!(
        seen.head.contains("Content-Length: 7\r\n") && !seen.head.contains("ransfer-"),
        "{}",
        seen.head
    );
    assert_eq!(seen.raw_body, b"{\"a\":1}");
}

#[test]
fn a_chunked_request_stays_chunked_on_every_route() {
    for path in ["/x", "/v1/chat/completions"] {
        for pieces in [&["{\"a\"", ":1}"][..], &[][..]] {
            let origin = Origin::answering(vec![json("200 OK", "{}")]);
            let tap = Tap::before(origin.address);
            let mut request = format!(
                "POST {path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
            )
            .into_bytes();
            for piece in pieces {
                request.extend(chunk(piece.as_bytes()));
            }
            request.extend_from_slice(b"0\r\n\r\n");
            tap.exchange(request);
            let seen = origin.request(0);
            assert!(
                seen.head.contains("Transfer-Encoding: chunked\r\n"),
                "{path}: {}",
                seen.head
            );
            assert!(
                !seen.head.to_lowercase().contains("content-length"),
                "{path}: {}",
                seen.head
            );
            assert_eq!(seen.body(), pieces.concat(), "{path}");
        }
    }
}

#[test]
fn no_body_gets_no_framing_and_a_zero_length_is_kept() {
    let origin = Origin::answering(vec![json("200 OK", "{}")]);
    let tap = Tap::before(origin.address);
    tap.exchange("POST /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    tap.exchange("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    assert_eq!(
        origin.request(0).head,
        "POST /x HTTP/1.1\r\nHost: a\r\n\r\n"
    );
    assert_eq!(
        origin.request(1).head,
        "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"
    );
}

#[test]
fn a_message_with_both_framings_is_read_as_chunked() {
    let origin = Origin::answering(vec![json("200 OK", "{}")]);
    let tap = Tap::before(origin.address);
    tap.exchange(
        "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    );
    let seen = origin.request(0);
    assert!(
        !seen.head.to_lowercase().contains("content-length"),
        "{}",
        seen.head
    );
    assert_eq!(seen.body(), "ok");
    let both = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n".to_vec();
    let answer = through(both, GET);
    assert!(
        !answer.contains("Content-Length") && answer.ends_with("2\r\nok\r\n0\r\n\r\n"),
        "{answer}"
    );
}

#[test]
fn another_transfer_coding_is_refused() {
    let origin = Origin::answering(vec![json("200 OK", "{}")]);
    let tap = Tap::before(origin.address);
    let answer = tap.exchange(
        "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\nConnection: close\r\n\r\n0\r\n\r\n",
    );
    let answer = String::from_utf8(answer).unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 501 ")
            && answer.contains("x-spectap-error: transfer-coding\r\n"),
        "{answer}"
    );
    assert!(origin.requests().is_empty());
}

#[test]
fn a_chunked_response_stays_chunked_and_its_head_keeps_its_order() {
    let answer = through(stream([&b"data: a\n\n"[..], b"data: b\n\n"]), GET);
    assert_eq!(
        answer,
        "HTTP/1.1 200 OK\r\nserver: engine\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\
         connection: close\r\n\r\n9\r\ndata: a\n\n\r\n9\r\ndata: b\n\n\r\n0\r\n\r\n"
    );
}

#[test]
fn a_response_that_ends_with_its_connection_stays_one() {
    for version in ["1.0", "1.1"] {
        let engine =
            format!("HTTP/{version} 200 OK\r\nX-A: 1\r\nConnection: close\r\n\r\nuntil the end")
                .into_bytes();
        let answer = through(engine, "GET /x HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(
            answer.starts_with("HTTP/1.0 200 OK\r\nX-A: 1\r\n"),
            "{answer}"
        );
        assert!(answer.ends_with("\r\n\r\nuntil the end"), "{answer}");
        assert!(!answer.contains("chunked"), "{answer}");
    }
}

#[test]
fn an_http_1_0_client_gets_no_chunks() {
    let answer = through(stream([&b"data: a\n\n"[..]]), "GET /x HTTP/1.0\r\n\r\n");
    assert!(
        !answer.contains("chunked") && answer.ends_with("\r\n\r\ndata: a\n\n"),
        "{answer}"
    );
}

#[test]
fn responses_without_a_body_keep_their_length_where_it_means_something() {
    let head = |status: &str| {
        format!("HTTP/1.1 {status}\r\nContent-Length: 42\r\nX-A: 1\r\n\r\n").into_bytes()
    };
    let mut client_heads = Vec::new();
    for (status, method) in [
        ("200 OK", "HEAD"),
        ("304 Not Modified", "GET"),
        ("204 No Content", "GET"),
    ] {
        let origin = Origin::start({
            let head = head(status);
            move |_, _, stream| {
                use std::io::Write;
                stream.write_all(&head).unwrap();
                crate::support::origin::Then::KeepAlive
            }
        });
        let tap = Tap::before(origin.address);
        let mut client = Client::connect(tap.data);
        for _ in 0..2 {
            client.send(format!("{method} /x HTTP/1.1\r\nHost: a\r\n\r\n"));
            client_heads.push(String::from_utf8(client.read_until(b"\r\n\r\n")).unwrap());
        }
    }
    assert_eq!(
        client_heads[0],
        "HTTP/1.1 200 OK\r\nContent-Length: 42\r\nX-A: 1\r\n\r\n"
    );
    assert_eq!(
        client_heads[2],
        "HTTP/1.1 304 Not Modified\r\nContent-Length: 42\r\nX-A: 1\r\n\r\n"
    );
    assert_eq!(client_heads[4], "HTTP/1.1 204 No Content\r\nX-A: 1\r\n\r\n");
    for pair in client_heads.chunks(2) {
        assert_eq!(pair[0], pair[1], "the connection serves on");
    }
}

#[test]
fn trailers_pass_when_both_sides_speak_of_them() {
    let engine = b"HTTP/1.1 200 OK\r\nTrailer: x-sum\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nx-sum: 7\r\n\r\n";
    let origin = Origin::answering(vec![engine.to_vec()]);
    let tap = Tap::before(origin.address);
    let mut client = Client::connect(tap.data);
    client.send("GET /x HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nConnection: te\r\n\r\n");
    client.read_until(b"0\r\n");
    assert_eq!(client.read_until(b"\r\n\r\n"), b"x-sum: 7\r\n\r\n");
    assert!(origin.request(0).head.contains("TE: trailers\r\n"));
}

#[test]
fn trailers_come_behind_what_the_strip_still_held() {
    let finish = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    let engine = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTrailer: x-sum\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{finish}\r\n0\r\nx-sum: 7\r\n\r\n",
        finish.len()
    );
    let origin = Origin::answering(vec![engine.into_bytes()]);
    let tap = Tap::before(origin.address);
    let mut client = Client::connect(tap.data);
    client.send(post(
        "/v1/chat/completions",
        "{\"stream\":true}",
        "TE: trailers\r\nConnection: te\r\n",
    ));
    client.read_until(finish.as_bytes());
    client.read_until(b"0\r\n");
    assert_eq!(client.read_until(b"\r\n\r\n"), b"x-sum: 7\r\n\r\n");
    assert_eq!(tap.observations(1)[0]["outcome"], "complete");
}

#[test]
fn an_expectation_is_met_before_the_body_and_not_asked_for_twice() {
    let origin = Origin::answering(vec![json("200 OK", "{}")]);
    let tap = Tap::before(origin.address);
    let mut client = Client::connect(tap.data);
    client.send(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n",
    );
    assert_eq!(
        client.read_until(b"\r\n\r\n"),
        b"HTTP/1.1 100 Continue\r\n\r\n"
    );
    client.send("{}");
    assert_eq!(client.response().status(), 200);
    assert!(!origin.request(0).head.to_lowercase().contains("expect"));
}

#[test]
fn a_large_body_passes_in_both_directions() {
    let big = "x".repeat(3 << 20);
    let origin = Origin::answering(vec![json("200 OK", &big)]);
    let tap = Tap::before(origin.address);
    let answer = tap.exchange(post("/x", &big, "Connection: close\r\n"));
    assert!(answer.ends_with(big.as_bytes()));
    assert_eq!(origin.request(0).raw_body, big.as_bytes());
}

#[test]
fn trailers_come_behind_every_byte_of_a_stripped_stream_and_end_it() {
    const FINISH: &str = "data: {\"id\":\"a\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    let engine = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTrailer: x-sum\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{FINISH}\r\n0\r\nx-sum: 7\r\n\r\n",
        FINISH.len()
    );
    // With the trailers and without, stripped and not.
    for te in ["TE: trailers\r\nConnection: te\r\n", ""] {
        for body in [
            r#"{"stream":true}"#,
            r#"{"stream":true,"stream_options":{"include_usage":true}}"#,
        ] {
            let origin = Origin::answering(vec![engine.clone().into_bytes()]);
            let tap = Tap::before(origin.address);
            for number in 0..2 {
                let mut client = Client::connect(tap.data);
                client.send(post("/v1/chat/completions", body, te));
                client.read_until(FINISH.as_bytes());
                let end: &[u8] = if te.is_empty() {
                    b"\r\n0\r\n\r\n"
                } else {
                    b"\r\n0\r\nx-sum: 7\r\n\r\n"
                };
                assert_eq!(client.read_until(b"\r\n\r\n"), end);
                assert_eq!(tap.observations(number + 1)[0]["outcome"], "complete");
                tap.until_metric("spectap_upstream_connections{state=\"idle\"}", 1.0);
            }
            assert_eq!(origin.request(1).connection, 0, "not kept: {te:?} {body}");
        }
    }
}

#[test]
fn lengths_that_contradict_and_folded_lines_are_refused_without_asking_the_engine() {
    let origin = Origin::answering(vec![json("200 OK", "{}")]);
    let tap = Tap::before(origin.address);
    for fields in [
        "Content-Length: 2\r\nContent-Length: 3\r\n",
        "Content-Length: 2, 3\r\n",
        "Content-Length: +2\r\n",
        "X-A: 1\r\n folded\r\nContent-Length: 2\r\n",
        "Content-Length : 2\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: xchunked\r\n",
    ] {
        let answer = tap.exchange(format!(
            "POST /x HTTP/1.1\r\nHost: a\r\n{fields}Connection: close\r\n\r\nok"
        ));
        let status = String::from_utf8_lossy(&answer);
        assert!(
            status.starts_with("HTTP/1.1 400 ") || status.starts_with("HTTP/1.1 501 "),
            "{fields:?}: {status}"
        );
    }
    assert!(origin.requests().is_empty(), "{:?}", origin.requests());
}
