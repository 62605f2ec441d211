//! Limits on time: each is a 504 that says which one while the client has nothing yet, and a cut after that.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc;
use std::time::Duration;

use crate::support::client::{Client, dechunk, post};
use crate::support::origin::{Origin, Then, chunk, wait_for_close};
use crate::support::tap::Tap;

const HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
const EVENT: &[u8] =
    b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"},\"finish_reason\":null}]}\n\n";
const PATH: &str = "/v1/chat/completions";
const ASKED: &str = r#"{"stream":true,"stream_options":{"include_usage":true}}"#;
const NOT_ASKED: &str = r#"{"stream":true}"#;

fn count_of(tap: &Tap, kind: &str) -> f64 {
    tap.metric(&format!("spectap_upstream_errors_total{{kind=\"{kind}\"}}"))
}

fn all_is_over(tap: &Tap) {
    tap.until_metric(
        "spectap_requests_in_flight{route=\"chat_completions\"}",
        0.0,
    );
    tap.until_metric("spectap_upstream_connections{state=\"active\"}", 0.0);
}

/// The answer is spectap's own 504 of this kind.
fn assert_refused(tap: &Tap, request: &str, status: u16, kind: &str) {
    let mut client = Client::connect(tap.data);
    client.send(request);
    let response = client.response();
    assert_eq!(response.status(), status, "{kind}: {}", response.head);
    let named = format!("x-spectap-error: {kind}\r\n");
    assert!(response.head.contains(&named), "{kind}: {}", response.head);
    let error: serde_json::Value = serde_json::from_slice(&response.body()).unwrap();
    assert_eq!(error["error"]["code"], status, "{kind}");
    let seen = &tap.observations(1)[0];
    assert_eq!(
        (&seen["outcome"], &seen["status"]),
        (&"error_status".into(), &status.into()),
        "{kind}"
    );
    all_is_over(tap);
}

/// An address at which connections neither open nor fail, as long as what is given beside it lives.
fn nowhere() -> (SocketAddr, impl Sized) {
    let listener =
        socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
    listener.bind(&any.into()).unwrap();
    listener.listen(0).unwrap();
    let address = listener.local_addr().unwrap().as_socket().unwrap();
    let mut queue = Vec::new();
    // The queue is full once one more does not get in.
    while let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_millis(200)) {
        queue.push(stream);
    }
    (address, (listener, queue))
}

#[test]
fn a_connection_that_does_not_open_is_a_504_after_the_connect_timeout() {
    let (address, _full) = nowhere();
    let tap = Tap::with(address, &["--connect-timeout=100ms"]);
    assert_refused(&tap, &post(PATH, ASKED, ""), 504, "connect-timeout");
    assert_eq!(count_of(&tap, "connect-timeout"), 1.0);
}

#[test]
fn a_client_that_leaves_while_its_connection_opens_is_not_waited_for() {
    let (address, _full) = nowhere();
    let tap = Tap::with(address, &["--connect-timeout=1h"]);
    let mut client = Client::connect(tap.data);
    client.send(post(PATH, ASKED, ""));
    tap.until_metric(
        "spectap_requests_in_flight{route=\"chat_completions\"}",
        1.0,
    );
    drop(client);
    assert_eq!(tap.observations(1)[0]["outcome"], "cancelled");
    all_is_over(&tap);
}

#[test]
fn an_engine_that_does_not_answer_is_a_504_and_its_connection_closes() {
    for (flag, kind) in [
        ("--response-head-timeout=100ms", "response-head-timeout"),
        ("--total-timeout=100ms", "total-timeout"),
    ] {
        let (gone, left) = mpsc::channel();
        let origin = Origin::start(move |_, _, stream| {
            wait_for_close(stream);
            gone.send(()).unwrap();
            Then::Close
        });
        let tap = Tap::with(origin.address, &[flag]);
        assert_refused(&tap, &post(PATH, ASKED, ""), 504, kind);
        left.recv_timeout(Duration::from_secs(10)).unwrap();
        assert_eq!(count_of(&tap, kind), 1.0);
        assert_eq!(origin.requests().len(), 1, "asked again");
    }
}

#[test]
fn an_engine_that_falls_silent_or_goes_on_too_long_is_cut_after_every_byte() {
    for (flag, kind, ends) in [
        ("--idle-timeout=150ms", "idle-timeout", true),
        ("--total-timeout=300ms", "total-timeout", false),
    ] {
        for body in [ASKED, NOT_ASKED] {
            let (gone, left) = mpsc::channel();
            let origin = Origin::start(move |_, _, stream| {
                stream.write_all(HEAD).unwrap();
                let mut sent = 0;
                while sent < 3 || !ends {
                    if stream.write_all(&chunk(EVENT)).is_err() {
                        break;
                    }
                    sent += 1;
                    // The pace of an engine, well within the idle limit.
                    std::thread::sleep(Duration::from_millis(20));
                }
                if ends {
                    wait_for_close(stream);
                }
                gone.send(sent).unwrap();
                Then::Close
            });
            let tap = Tap::with(origin.address, &[flag]);
            let mut client = Client::connect(tap.data);
            client.send(post(PATH, body, ""));
            let got = client.read_to_end();
            let at = memchr::memmem::find(&got, b"\r\n\r\n").unwrap() + 4;
            let events = dechunk(&got[at..]);
            let sent = left.recv_timeout(Duration::from_secs(10)).unwrap();
            assert!(!got.ends_with(b"0\r\n\r\n"), "{kind}: a proper end");
            assert_eq!(events.len() % EVENT.len(), 0, "{kind}: half an event");
            let events = events.len() / EVENT.len();
            assert!(
                if ends { events == 3 } else { events <= sent },
                "{kind}: {events} of {sent}"
            );
            assert_eq!(tap.observations(1)[0]["outcome"], "truncated", "{kind}");
            assert_eq!(count_of(&tap, kind), 1.0);
            all_is_over(&tap);
        }
    }
}

#[test]
fn an_engine_that_is_slow_but_never_silent_for_long_is_let_be() {
    let origin = Origin::start(|_, _, stream| {
        stream.write_all(HEAD).unwrap();
        for _ in 0..40 {
            stream.write_all(&chunk(EVENT)).unwrap();
            // All of it takes longer than the limit, each gap far less.
            std::thread::sleep(Duration::from_millis(50));
        }
        stream.write_all(b"0\r\n\r\n").unwrap();
        Then::KeepAlive
    });
    let tap = Tap::with(
        origin.address,
        &["--idle-timeout=1s", "--response-head-timeout=1s"],
    );
    let mut client = Client::connect(tap.data);
    client.send(post(PATH, ASKED, ""));
    assert_eq!(client.response().body(), EVENT.repeat(40));
    assert_eq!(count_of(&tap, "idle-timeout"), 0.0);
}

#[test]
fn a_request_that_never_becomes_whole_is_a_408() {
    // Held until it is whole; and streamed, where the engine has begun to read it.
    for (kind, status, word) in [
        ("application/json", 408, "request-timeout"),
        ("text/plain", 504, "total-timeout"),
    ] {
        let origin = Origin::start(|_, _, _| Then::Close);
        let tap = Tap::with(origin.address, &["--total-timeout=100ms"]);
        let request = format!(
            "POST {PATH} HTTP/1.1\r\nHost: a\r\nContent-Type: {kind}\r\nContent-Length: 100\r\n\r\n{{\"half"
        );
        assert_refused(&tap, &request, status, word);
        let counted = if status == 504 { 1.0 } else { 0.0 };
        assert_eq!(count_of(&tap, word), counted);
    }
}

#[test]
fn a_reply_that_is_held_and_never_becomes_whole_is_a_504() {
    let origin = Origin::start(|_, _, stream| {
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{\"half\"")
            .unwrap();
        wait_for_close(stream);
        Then::Close
    });
    let flags = [
        "--engine=sglang",
        "--inject-sglang-unary",
        "--idle-timeout=100ms",
    ];
    let tap = Tap::with(origin.address, &flags);
    assert_refused(&tap, &post(PATH, "{}", ""), 504, "idle-timeout");
    assert_eq!(count_of(&tap, "idle-timeout"), 1.0);
}
