//! Kept connections to the engine: used again, replaced without the client noticing, and closed in time.

use std::io::Write;
use std::sync::{Arc, Barrier, mpsc};
use std::time::Duration;

use crate::support::client::{exchange, post};
use crate::support::origin::{Origin, Then, json, wait_for_close};
use crate::support::tap::Tap;

#[test]
fn a_kept_connection_that_turns_out_closed_is_replaced_without_the_client_noticing() {
    let origin = Origin::start(|_, request, stream| {
        // The first connection serves one request, takes a second one and dies without a word.
        let served = request.connection > 0 || !request.body().contains("second");
        if served {
            stream.write_all(&json("200 OK", "{}")).unwrap();
            Then::KeepAlive
        } else {
            Then::Close
        }
    });
    let tap = Tap::before(origin.address);
    tap.exchange(post("/v1/chat/completions", "{}", "Connection: close\r\n"));
    let answer = tap.exchange(post(
        "/v1/chat/completions",
        "{\"second\":1}",
        "Connection: close\r\n",
    ));
    assert!(
        answer.starts_with(b"HTTP/1.1 200 OK"),
        "{}",
        String::from_utf8_lossy(&answer)
    );
    let connections: Vec<usize> = origin
        .requests()
        .iter()
        .map(|request| request.connection)
        .collect();
    assert_eq!(connections, [0, 0, 1]);
    assert_eq!(tap.metric("spectap_upstream_retries_total"), 1.0);
    assert_eq!(tap.observations(2)[0]["outcome"], "complete");
}

/// An engine whose first connection serves one request, takes a second one and dies without a word.
fn dies_at_the_second() -> Origin {
    Origin::start(|_, request, stream| {
        if request.connection == 0 && request.head.contains("second") {
            Then::Close
        } else {
            stream.write_all(&json("200 OK", "{}")).unwrap();
            Then::KeepAlive
        }
    })
}

/// Sends a first request, then one with the header `X: second`.
fn first_and_second(tap: &Tap, request: &str) -> String {
    tap.exchange(request);
    tap.until_metric("spectap_upstream_connections{state=\"idle\"}", 1.0);
    let second = request.replacen("Connection", "X: second\r\nConnection", 1);
    String::from_utf8(tap.exchange(second)).unwrap()
}

#[test]
fn a_request_that_may_have_had_an_effect_is_not_sent_twice() {
    // Not idempotent, with a body and without.
    for request in [
        post("/v1/some/action", "{}", "Connection: close\r\n"),
        post("/v1/some/action", "", "Connection: close\r\n"),
    ] {
        let origin = dies_at_the_second();
        let tap = Tap::before(origin.address);
        let answer = first_and_second(&tap, &request);
        assert!(
            answer.starts_with("HTTP/1.1 502 ")
                && answer.contains("x-spectap-error: closed-early\r\n"),
            "{answer}"
        );
        assert_eq!(origin.requests().len(), 2);
    }
}

#[test]
fn no_replay_sends_an_inference_request_once_at_most() {
    let origin = dies_at_the_second();
    let tap = Tap::with(origin.address, &["--no-replay"]);
    let request = post("/v1/chat/completions", "{}", "Connection: close\r\n");
    let answer = first_and_second(&tap, &request);
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    assert_eq!(origin.requests().len(), 2);
    assert_eq!(tap.metric("spectap_upstream_retries_total"), 0.0);
}

#[test]
fn an_engine_that_keeps_connections_for_less_is_heeded() {
    // One second less than one second is none at all: each request gets a connection of its own.
    let answer = "HTTP/1.1 200 OK\r\nKeep-Alive: max=9, timeout=1\r\nContent-Length: 2\r\n\r\n{}";
    let origin = Origin::answering(vec![answer.as_bytes().to_vec()]);
    let tap = Tap::before(origin.address);
    for _ in 0..2 {
        let got = tap.exchange("GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        assert!(got.starts_with(b"HTTP/1.1 200 OK"));
        tap.until_metric("spectap_upstream_connections{state=\"active\"}", 0.0);
    }
    let connections: Vec<usize> = origin.requests().iter().map(|r| r.connection).collect();
    assert_eq!(connections, [0, 1]);
}

#[test]
fn an_idempotent_request_is_sent_again_if_nothing_of_it_is_gone() {
    let origin = dies_at_the_second();
    let tap = Tap::before(origin.address);
    let get = "GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let answer = first_and_second(&tap, get);
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    assert_eq!(origin.requests().len(), 3);

    // A body that was streamed is gone: without it the request would say something else.
    let origin = dies_at_the_second();
    let tap = Tap::before(origin.address);
    let put = "PUT /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc";
    let answer = first_and_second(&tap, put);
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    assert_eq!(origin.requests().len(), 2);
}

#[test]
fn a_connection_that_dies_late_did_not_die_of_being_kept() {
    let origin = Origin::start(|_, request, stream| {
        if request.body().contains("second") {
            // More than the second within which a stale connection shows.
            std::thread::sleep(Duration::from_millis(1100));
            return Then::Close;
        }
        stream.write_all(&json("200 OK", "{}")).unwrap();
        Then::KeepAlive
    });
    let tap = Tap::before(origin.address);
    let close = "Connection: close\r\n";
    tap.exchange(post("/v1/chat/completions", "{}", close));
    tap.until_metric("spectap_upstream_connections{state=\"idle\"}", 1.0);
    let answer = tap.exchange(post("/v1/chat/completions", "{\"second\":1}", close));
    assert!(answer.starts_with(b"HTTP/1.1 502 "));
    let connections: Vec<usize> = origin.requests().iter().map(|r| r.connection).collect();
    assert_eq!(connections, [0, 0]);
}

#[test]
fn a_second_try_goes_over_a_new_connection_even_if_others_are_kept() {
    let all_here = Arc::new(Barrier::new(3));
    let origin = Origin::start(move |_, request, stream| {
        if request.body().contains("second") && request.connection < 3 {
            return Then::Close;
        }
        if request.connection < 3 {
            all_here.wait();
        }
        stream.write_all(&json("200 OK", "{}")).unwrap();
        Then::KeepAlive
    });
    let tap = Tap::before(origin.address);
    let close = "Connection: close\r\n";
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| tap.exchange(post("/v1/chat/completions", "{}", close)));
        }
    });
    tap.until_metric("spectap_upstream_connections{state=\"idle\"}", 3.0);
    let answer = tap.exchange(post("/v1/chat/completions", "{\"second\":1}", close));
    assert!(answer.starts_with(b"HTTP/1.1 200 OK"));
    assert_eq!(origin.requests().len(), 5);
    assert_eq!(tap.metric("spectap_upstream_retries_total"), 1.0);
}

#[test]
fn idle_connections_are_closed_before_the_engine_would() {
    let (gone, left) = mpsc::channel();
    let origin = Origin::start(move |_, _, stream| {
        stream.write_all(&json("200 OK", "{}")).unwrap();
        wait_for_close(stream);
        gone.send(()).unwrap();
        Then::Close
    });
    let tap = Tap::before(origin.address);
    tap.exchange("GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    tap.until_metric("spectap_upstream_connections{state=\"idle\"}", 1.0);
    left.recv_timeout(Duration::from_secs(10))
        .expect("kept for ever");
    tap.until_metric("spectap_upstream_connections{state=\"idle\"}", 0.0);
}

#[test]
fn a_connection_that_the_engine_closed_meanwhile_is_not_used_again() {
    let (closing, close) = mpsc::channel::<()>();
    let close = std::sync::Mutex::new(close);
    let origin = Origin::start(move |number, _, stream| {
        stream.write_all(&json("200 OK", "{}")).unwrap();
        if number == 0 {
            close.lock().unwrap().recv().unwrap();
            return Then::Close;
        }
        Then::KeepAlive
    });
    let tap = Tap::before(origin.address);
    // Not to be sent twice, and its body is gone after the first try: it must not meet a closed connection at all.
    let request = post("/v1/some/action", "abc", "Connection: close\r\n");
    tap.exchange(&request);
    tap.until_metric("spectap_upstream_connections{state=\"idle\"}", 1.0);
    closing.send(()).unwrap();
    origin.wait_closed(0);
    let answer = tap.exchange(&request);
    assert!(
        answer.starts_with(b"HTTP/1.1 200 OK"),
        "{}",
        String::from_utf8_lossy(&answer)
    );
    let connections: Vec<usize> = origin.requests().iter().map(|r| r.connection).collect();
    assert_eq!(connections, [0, 1]);
    assert_eq!(tap.metric("spectap_upstream_retries_total"), 0.0);
}

#[test]
fn an_answer_that_breaks_off_in_its_head_is_not_asked_for_again() {
    for beginning in [
        "HTTP/1.1 200 OK\r\nx-half",
        "HTTP/1.1 103 Early Hints\r\n\r\n",
    ] {
        let origin = Origin::start(move |number, _, stream| {
            if number == 0 {
                stream.write_all(&json("200 OK", "{}")).unwrap();
                Then::KeepAlive
            } else {
                stream.write_all(beginning.as_bytes()).unwrap();
                Then::Close
            }
        });
        let tap = Tap::before(origin.address);
        let request = post("/v1/chat/completions", "{}", "Connection: close\r\n");
        tap.exchange(&request);
        tap.until_metric("spectap_upstream_connections{state=\"idle\"}", 1.0);
        let answer = String::from_utf8(tap.exchange(&request)).unwrap();
        assert!(
            answer.starts_with("HTTP/1.1 502 ")
                && answer.contains("x-spectap-error: closed-early\r\n"),
            "{answer}"
        );
        let connections: Vec<usize> = origin.requests().iter().map(|r| r.connection).collect();
        assert_eq!(connections, [0, 0], "{beginning:?}");
        assert_eq!(tap.metric("spectap_upstream_retries_total"), 0.0);
    }
}

#[test]
fn connections_of_all_lanes_are_counted_together() {
    let engines = [0, 1].map(|_| Origin::answering(vec![json("200 OK", "{}")]));
    let lane = format!("--lane=127.0.0.1:0=http://{}", engines[1].address);
    let tap = Tap::with(engines[0].address, &[&lane]);
    for (number, address) in tap.lanes.iter().enumerate() {
        let request = post("/v1/chat/completions", "{}", "Connection: close\r\n");
        exchange(*address, &request);
        tap.until_metric(
            "spectap_upstream_connections{state=\"idle\"}",
            number as f64 + 1.0,
        );
    }
    tap.until_metric("spectap_upstream_connections{state=\"idle\"}", 0.0);
}
