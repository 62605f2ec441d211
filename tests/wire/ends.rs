//! Every end reaches the other side as what it is, after every byte that came.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::sync::mpsc;
use std::time::Duration;

use spectap::proxy::Stopped;

use crate::support::client::{Client, post};
use crate::support::origin::{Origin, Then, chunk, json, wait_for_close};
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
    let (go, wait) = mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let origin = Origin::start(move |_, _, stream| {
        stream.write_all(HEAD).unwrap();
        stream.write_all(&chunk(EVENT)).unwrap();
        // All that was read so far has left, so that only what is held is still to go.
        wait.lock().unwrap().recv().unwrap();
        for piece in [FINISH, b": still here\n\n", HALF] {
            stream.write_all(&chunk(piece)).unwrap();
        }
        Then::Close
    });
    let tap = Tap::before(origin.address);
    let mut client = Client::connect(tap.data);
    client.send(post("/v1/chat/completions", r#"{"stream":true}"#, ""));
    let mut got = client.read_until(b"null}]}\n\n\r\n");
    go.send(()).unwrap();
    got.extend(client.read_to_end());
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
    // The engine answers by the head alone; the client holds the rest of its body back until it has that answer.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let (mut seen, mut buffer) = (Vec::new(), [0; 4096]);
        while memchr::memmem::find(&seen, b"\r\n\r\n").is_none() {
            let count = stream.read(&mut buffer).unwrap();
            seen.extend_from_slice(&buffer[..count]);
        }
        stream
            .write_all(&json("413 Content Too Large", "{}"))
            .unwrap();
        wait_for_close(&mut stream);
    });
    let tap = Tap::before(address);
    let mut client = Client::connect(tap.data);
    client.send("POST /v1/embeddings HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhalf");
    let response = client.response();
    assert_eq!((response.status(), response.body()), (413, b"{}".to_vec()));
}

#[test]
fn an_engine_that_answers_early_and_closes_is_seen_to_close() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut seen = Vec::new();
        let mut buffer = [0; 4096];
        while !seen.ends_with(b"half") {
            let count = stream.read(&mut buffer).unwrap();
            seen.extend_from_slice(&buffer[..count]);
        }
        let answer = json("413 Content Too Large", "{}");
        stream.write_all(&answer).unwrap();
    });
    let tap = Tap::before(address);
    let mut client = Client::connect(tap.data);
    client.send("POST /v1/embeddings HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhalf");
    assert_eq!(client.response().status(), 413);
    // What is left of the body is nobody's any more.
    assert_eq!(client.read_to_end(), b"");
}

#[test]
fn an_answer_that_begins_in_a_drain_says_close() {
    let (go, wait) = mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let origin = Origin::start(move |_, _, stream| {
        wait.lock().unwrap().recv().unwrap();
        stream.write_all(&json("200 OK", "{}")).unwrap();
        Then::KeepAlive
    });
    let mut tap = Tap::before(origin.address);
    let mut client = Client::connect(tap.data);
    client.send(post("/v1/chat/completions", ASKED, ""));
    origin.request(0);
    let stopped = tap.stop();
    crate::support::until("a closed port", || {
        std::net::TcpStream::connect(tap.data).err()
    });
    go.send(()).unwrap();
    let answer = String::from_utf8(client.read_to_end()).unwrap();
    assert!(answer.contains("connection: close\r\n"), "{answer}");
    assert!(answer.ends_with("{}"), "{answer}");
    assert_eq!(
        stopped.recv_timeout(Duration::from_secs(10)).unwrap(),
        Stopped::Drained
    );
}

#[test]
fn an_open_admin_connection_does_not_hold_the_drain() {
    let origin = Origin::answering(vec![json("200 OK", "{}")]);
    let mut tap = Tap::before(origin.address);
    // One that is idle between two requests, and one in the middle of a head.
    let mut idle = Client::connect(tap.admin);
    idle.send("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(idle.response().status(), 200);
    let mut half = Client::connect(tap.admin);
    half.send("GET /livez HTTP/1.1\r\nHost: loc");
    let stopped = tap.stop();
    assert_eq!(
        stopped.recv_timeout(Duration::from_secs(8)).unwrap(),
        Stopped::Drained
    );
}

#[test]
fn each_end_is_counted_exactly_once() {
    let origin = Origin::start(|number, _, stream| {
        match number {
            0 => stream.write_all(&json("200 OK", "{}")).unwrap(),
            1 => stream.write_all(&json("500 Oops", "{}")).unwrap(),
            2 => {
                stream.write_all(HEAD).unwrap();
                stream.write_all(&chunk(EVENT)).unwrap();
                return Then::Close;
            }
            _ => {
                stream.write_all(HEAD).unwrap();
                stream.write_all(&chunk(EVENT)).unwrap();
                wait_for_close(stream);
            }
        }
        Then::KeepAlive
    });
    let tap = Tap::before(origin.address);
    for (number, close) in [(1, true), (2, true), (3, true), (4, false)] {
        let mut client = Client::connect(tap.data);
        let more = if close { "Connection: close\r\n" } else { "" };
        client.send(post("/v1/chat/completions", ASKED, more));
        if close {
            client.read_to_end();
        } else {
            client.read_until(EVENT);
            drop(client);
        }
        tap.observations(number);
    }
    idle(&tap);
    assert_eq!(tap.observations(4).len(), 4);
    for outcome in ["complete", "error_status", "truncated", "cancelled"] {
        let series = format!("spectap_exchange_outcomes_total{{outcome=\"{outcome}\"}}");
        assert_eq!(tap.metric(&series), 1.0, "{outcome}");
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
