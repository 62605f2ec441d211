//! Every end reaches the other side as what it is, after every byte that came.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::sync::mpsc;
use std::time::Duration;

use spectap::proxy::Stopped;

use crate::support::client::{Client, post};
use crate::support::origin::{Origin, Then, chunk, json, stream, wait_for_close};
use crate::support::tap::Tap;

const HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
const EVENT: &[u8] =
    b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"},\"finish_reason\":null}]}\n\n";
const ASKED: &str = r#"{"stream":true,"stream_options":{"include_usage":true}}"#;

fn idle(tap: &Tap) {
    tap.until_metric(
        "spectap_requests_in_flight{route=\"chat_completions\"}",
        0.0,
    );
    tap.until_metric("spectap_upstream_connections{state=\"active\"}", 0.0);
}

#[test]
fn an_engine_that_breaks_off_is_seen_as_a_cut_after_every_byte() {
    for (body, framing) in [(ASKED, "asked"), (r#"{"stream":true}"#, "stripped")] {
        let origin = Origin::start(|_, _, stream| {
            stream.write_all(HEAD).unwrap();
            for _ in 0..5 {
                stream.write_all(&chunk(EVENT)).unwrap();
            }
            Then::Close
        });
        let tap = Tap::before(origin.address);
        let got = tap.exchange(post("/v1/chat/completions", body, ""));
        let events = memchr::memmem::find_iter(&got, EVENT).count();
        assert_eq!(events, 5, "{framing}: {}", String::from_utf8_lossy(&got));
        assert!(!got.ends_with(b"0\r\n\r\n"), "{framing}: a clean end");
        let seen = &tap.observations(1)[0];
        assert_eq!(
            (&seen["outcome"], &seen["reason"]),
            (&"truncated".into(), &"truncated".into())
        );
        idle(&tap);
    }
}

#[test]
fn what_a_stripped_stream_holds_goes_out_before_the_cut() {
    const FINISH: &[u8] =
        b"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    const HALF: &[u8] = b"data: {\"choices\":[],\"usage\":{\"total";
    let origin = Origin::start(|_, _, stream| {
        stream.write_all(HEAD).unwrap();
        for piece in [EVENT, FINISH, b": still here\n\n", HALF] {
            stream.write_all(&chunk(piece)).unwrap();
        }
        Then::Close
    });
    let tap = Tap::before(origin.address);
    let got = tap.exchange(post("/v1/chat/completions", r#"{"stream":true}"#, ""));
    let at = memchr::memmem::find(&got, b"\r\n\r\n").unwrap() + 4;
    let body = crate::support::client::dechunk(&got[at..]);
    let sent = [EVENT, FINISH, b": still here\n\n", HALF].concat();
    assert_eq!(
        String::from_utf8_lossy(&body),
        String::from_utf8_lossy(&sent)
    );
    assert!(!got.ends_with(b"0\r\n\r\n"), "a clean end");
}

#[test]
fn an_answer_with_a_length_that_breaks_off_is_cut_too() {
    let origin = Origin::start(|_, _, stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{\"half\"").unwrap();
        Then::Close
    });
    let tap = Tap::before(origin.address);
    let got = tap.exchange(post("/v1/chat/completions", "{}", ""));
    assert!(
        got.ends_with(b"{\"half\""),
        "{}",
        String::from_utf8_lossy(&got)
    );
    assert_eq!(tap.observations(1)[0]["outcome"], "truncated");
}

#[test]
fn a_slow_reader_gets_every_byte_before_the_cut() {
    for kilobytes in [1usize, 64, 300, 1024, 4096] {
        let sent: Vec<u8> = (0..kilobytes * 1024).map(|at| (at / 7) as u8).collect();
        let origin = {
            let sent = sent.clone();
            Origin::start(move |_, _, stream| {
                stream
                    .write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
                    .unwrap();
                for piece in sent.chunks(16 << 10) {
                    stream.write_all(&chunk(piece)).unwrap();
                }
                Then::Close
            })
        };
        let tap = Tap::before(origin.address);
        let mut client = Client::connect(tap.data);
        client.send("GET /x HTTP/1.1\r\nHost: a\r\n\r\n");
        // Nothing is read before the engine has closed: what fits no buffer must wait.
        origin.request(0);
        if kilobytes <= 64 {
            origin.wait_closed(0);
        }
        let got = client.read_to_end();
        let at = memchr::memmem::find(&got, b"\r\n\r\n").unwrap() + 4;
        assert!(
            crate::support::client::dechunk(&got[at..]) == sent,
            "{kilobytes} kB: bytes were lost"
        );
        assert!(!got.ends_with(b"0\r\n\r\n"), "{kilobytes} kB: a clean end");
    }
}

#[test]
fn a_client_that_leaves_closes_the_engines_connection() {
    // Before the head, and in the middle of a stream.
    for events in [None, Some(3)] {
        let (gone, left) = mpsc::channel();
        let origin = Origin::start(move |_, _, stream| {
            if let Some(events) = events {
                stream.write_all(HEAD).unwrap();
                for _ in 0..events {
                    stream.write_all(&chunk(EVENT)).unwrap();
                }
            }
            wait_for_close(stream);
            gone.send(()).unwrap();
            Then::Close
        });
        let tap = Tap::before(origin.address);
        let mut client = Client::connect(tap.data);
        client.send(post("/v1/chat/completions", ASKED, ""));
        origin.request(0);
        for _ in 0..events.unwrap_or(0) {
            client.read_until(b"\n\n");
        }
        drop(client);
        left.recv_timeout(Duration::from_secs(10))
            .expect("the engine never noticed");
        let seen = &tap.observations(1)[0];
        assert_eq!(seen["outcome"], "cancelled");
        let status = events.map_or(serde_json::Value::Null, |_| 200.into());
        assert_eq!(seen["status"], status);
        idle(&tap);
    }
}

#[test]
fn a_client_that_hangs_up_after_the_sentinel_has_had_everything() {
    let origin = Origin::start(|_, _, stream| {
        stream.write_all(HEAD).unwrap();
        stream.write_all(&chunk(EVENT)).unwrap();
        stream.write_all(&chunk(b"data: [DONE]\n\n")).unwrap();
        // The last chunk never comes: OpenAI's client does not wait for it.
        wait_for_close(stream);
        Then::Close
    });
    let tap = Tap::before(origin.address);
    for body in [ASKED, r#"{"stream":true}"#] {
        let mut client = Client::connect(tap.data);
        client.send(post("/v1/chat/completions", body, ""));
        client.read_until(b"data: [DONE]\n\n");
        drop(client);
    }
    for seen in tap.observations(2) {
        assert_eq!(seen["outcome"], "complete");
    }
}

#[test]
fn a_client_that_half_closes_is_taken_as_gone_as_vllm_does() {
    let (gone, left) = mpsc::channel();
    let origin = Origin::start(move |_, _, stream| {
        stream.write_all(HEAD).unwrap();
        wait_for_close(stream);
        gone.send(()).unwrap();
        Then::Close
    });
    let tap = Tap::before(origin.address);
    let mut client = Client::connect(tap.data);
    client.send(post("/v1/chat/completions", ASKED, ""));
    client.read_until(b"\r\n\r\n");
    client.stream.shutdown(Shutdown::Write).unwrap();
    left.recv_timeout(Duration::from_secs(10))
        .expect("the engine never noticed");
}

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
    let all_here = std::sync::Arc::new(std::sync::Barrier::new(3));
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
fn stopping_lets_a_stream_finish_and_takes_no_new_client() {
    let (go, wait) = mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let origin = Origin::start(move |_, _, stream| {
        stream.write_all(HEAD).unwrap();
        stream.write_all(&chunk(EVENT)).unwrap();
        wait.lock().unwrap().recv().unwrap();
        stream.write_all(&chunk(EVENT)).unwrap();
        stream.write_all(b"0\r\n\r\n").unwrap();
        Then::KeepAlive
    });
    let mut tap = Tap::before(origin.address);
    let mut client = Client::connect(tap.data);
    client.send(post("/v1/chat/completions", ASKED, ""));
    client.read_until(b"\n\n");
    let stopped = tap.stop();
    crate::support::until("a closed port", || {
        std::net::TcpStream::connect(tap.data).err()
    });
    go.send(()).unwrap();
    let rest = client.read_to_end();
    assert!(
        rest.ends_with(b"0\r\n\r\n"),
        "{}",
        String::from_utf8_lossy(&rest)
    );
    assert_eq!(
        stopped.recv_timeout(Duration::from_secs(10)).unwrap(),
        Stopped::Drained
    );
}

#[test]
fn streams_that_outlast_the_grace_are_cut() {
    let origin = Origin::start(|_, _, stream| {
        stream.write_all(HEAD).unwrap();
        wait_for_close(stream);
        Then::Close
    });
    let mut tap = Tap::with(origin.address, &["--grace=50ms"]);
    let mut client = Client::connect(tap.data);
    client.send(post("/v1/chat/completions", ASKED, ""));
    client.read_until(b"\r\n\r\n");
    let stopped = tap.stop();
    assert_eq!(client.read_to_end(), b"");
    assert_eq!(
        stopped.recv_timeout(Duration::from_secs(10)).unwrap(),
        Stopped::Cut
    );
}

#[test]
fn events_are_passed_on_as_they_come_and_not_collected() {
    let (go, wait) = mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let origin = Origin::start(move |_, _, stream| {
        stream.write_all(HEAD).unwrap();
        for _ in 0..3 {
            stream.write_all(&chunk(EVENT)).unwrap();
            // The next event is sent only after the client has this one.
            wait.lock().unwrap().recv().unwrap();
        }
        stream.write_all(b"0\r\n\r\n").unwrap();
        Then::KeepAlive
    });
    let tap = Tap::before(origin.address);
    for body in [ASKED, r#"{"stream":true}"#] {
        let mut client = Client::connect(tap.data);
        client.send(post("/v1/chat/completions", body, ""));
        for _ in 0..3 {
            client.read_until(EVENT);
            go.send(()).unwrap();
        }
        client.read_until(b"0\r\n\r\n");
    }
}

#[test]
fn a_slow_client_slows_the_engine_instead_of_filling_memory() {
    let (told, progress) = mpsc::channel();
    let origin = Origin::start(move |_, _, stream| {
        stream.write_all(HEAD).unwrap();
        stream
            .set_write_timeout(Some(Duration::from_millis(500)))
            .unwrap();
        let piece = chunk(&EVENT.repeat(200));
        let mut sent = 0usize;
        while sent < 256 << 20 && stream.write_all(&piece).is_ok() {
            sent += piece.len();
        }
        told.send(sent).unwrap();
        Then::Close
    });
    let tap = Tap::before(origin.address);
    let mut client = Client::connect(tap.data);
    client.send(post("/v1/chat/completions", ASKED, ""));
    let sent = progress.recv_timeout(Duration::from_secs(60)).unwrap();
    assert!(
        sent < 64 << 20,
        "{sent} bytes went into a reader that reads nothing"
    );
    let mut some = [0; 1024];
    assert!(client.stream.read(&mut some).unwrap() > 0);
}

#[test]
fn an_answer_that_comes_before_the_requests_end_is_relayed() {
    let origin = Origin::start(|_, _, stream| {
        stream.write_all(&stream_head_only()).unwrap();
        Then::Close
    });
    let tap = Tap::before(origin.address);
    let answer = tap.exchange(post(
        "/v1/embeddings",
        &"x".repeat(100),
        "Connection: close\r\n",
    ));
    assert!(
        answer.starts_with(b"HTTP/1.1 200 OK"),
        "{}",
        String::from_utf8_lossy(&answer)
    );
}

fn stream_head_only() -> Vec<u8> {
    stream(std::iter::empty())
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
fn a_client_that_leaves_within_its_request_is_cancelled_and_one_that_sends_nonsense_is_refused() {
    let origin = Origin::answering(vec![json("200 OK", "{}")]);
    let tap = Tap::before(origin.address);
    // Held until it is whole, and streamed through.
    for (number, kind) in ["application/json", "text/plain"].iter().enumerate() {
        let head =
            format!("POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Type: {kind}\r\n");
        let mut client = Client::connect(tap.data);
        client.send(format!("{head}Content-Length: 100\r\n\r\n{{\"half"));
        drop(client);
        let left = &tap.observations(2 * number + 1)[0];
        assert_eq!(
            (&left["outcome"], left["status"].is_null()),
            (&"cancelled".into(), true),
            "{kind}"
        );
        let refused = tap.exchange(format!(
            "{head}Transfer-Encoding: chunked\r\n\r\nnonsense\r\n"
        ));
        assert!(
            refused.starts_with(b"HTTP/1.1 400 "),
            "{}",
            String::from_utf8_lossy(&refused)
        );
        let refused = &tap.observations(2 * number + 2)[0];
        assert_eq!(refused["outcome"], "error_status", "{kind}");
    }
    idle(&tap);
}

#[test]
fn connections_of_all_lanes_are_counted_together() {
    let engines = [0, 1].map(|_| Origin::answering(vec![json("200 OK", "{}")]));
    let lane = format!("--lane=127.0.0.1:0=http://{}", engines[1].address);
    let tap = Tap::with(engines[0].address, &[&lane]);
    for (number, address) in tap.lanes.iter().enumerate() {
        let request = post("/v1/chat/completions", "{}", "Connection: close\r\n");
        crate::support::client::exchange(*address, &request);
        tap.until_metric(
            "spectap_upstream_connections{state=\"idle\"}",
            number as f64 + 1.0,
        );
    }
    tap.until_metric("spectap_upstream_connections{state=\"idle\"}", 0.0);
}
