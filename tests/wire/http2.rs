//! HTTP/2 with prior knowledge in front of an engine that speaks HTTP/1.1.

use std::io::Write;
use std::net::TcpStream;
use std::sync::mpsc;
use std::time::Duration;

use http::{Request, Version};
use spectap::proxy::Stopped;

use crate::support::client::{Client, post};
use crate::support::http2::Http2;
use crate::support::origin::{Origin, Then, chunk, json, wait_for_close};
use crate::support::tap::Tap;
use crate::support::{DEADLINE, until};

const HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
const EVENT: &[u8] =
    b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"},\"finish_reason\":null}]}\n\n";
const ASKED: &str = r#"{"stream":true,"stream_options":{"include_usage":true}}"#;

fn chat() -> Request<()> {
    Request::post("http://engine.example/v1/chat/completions?a=1")
        .version(Version::HTTP_2)
        .header("content-type", "application/json")
        .body(())
        .unwrap()
}

#[test]
fn a_request_reaches_the_engine_as_http_1_and_its_answer_comes_back() {
    let origin = Origin::answering(vec![json("201 Created", "{\"a\":1}")]);
    let tap = Tap::before(origin.address);
    let mut client = Http2::connect(tap.data);
    let mut request = chat();
    let headers = request.headers_mut();
    headers.insert("content-length", "2".parse().unwrap());
    for cookie in ["a=1", "b=2"] {
        headers.append("cookie", cookie.parse().unwrap());
    }
    let response = client.send(request, "{}");
    let response = client.head(response);
    assert_eq!(response.status(), 201);
    for of_the_hop in ["connection", "transfer-encoding", "keep-alive"] {
        assert!(!response.headers().contains_key(of_the_hop), "{of_the_hop}");
    }
    assert_eq!(response.headers()["content-length"], "7");
    assert_eq!(
        client.rest(&mut response.into_body()),
        (b"{\"a\":1}".to_vec(), None)
    );
    let seen = origin.request(0);
    assert_eq!(
        seen.head,
        "POST /v1/chat/completions?a=1 HTTP/1.1\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\
         cookie: a=1; b=2\r\nhost: engine.example\r\n\r\n"
    );
    assert_eq!(seen.body(), "{}");

    let bodiless = Request::get("http://engine.example/health")
        .body(())
        .unwrap();
    let response = client.send(bodiless, "");
    assert_eq!(client.head(response).status(), 201);
    let head = origin.request(1).head;
    assert_eq!(head, "GET /health HTTP/1.1\r\nhost: engine.example\r\n\r\n");
}

#[test]
fn streams_of_one_connection_are_observed_and_filtered_each_by_itself() {
    let usage = "data: {\"id\":\"i\",\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}\n\n";
    let finish = "data: {\"id\":\"i\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    let (go, wait) = mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let origin = Origin::start(move |_, _, stream| {
        stream.write_all(HEAD).unwrap();
        stream.write_all(&chunk(EVENT)).unwrap();
        wait.lock().unwrap().recv().unwrap();
        for event in [finish, usage, "data: [DONE]\n\n"] {
            stream.write_all(&chunk(event.as_bytes())).unwrap();
        }
        stream.write_all(b"0\r\n\r\n").unwrap();
        Then::KeepAlive
    });
    let tap = Tap::before(origin.address);
    let mut client = Http2::connect(tap.data);
    let asked = [r#"{"stream":true}"#, ASKED];
    let heads = asked.map(|body| client.send(chat(), body));
    let mut bodies = heads.map(|head| client.head(head).into_body());
    for body in &mut bodies {
        assert_eq!(client.event(body), EVENT);
    }
    let open = "spectap_requests_in_flight{route=\"chat_completions\"}";
    assert_eq!(tap.metric(open), 2.0);
    for _ in 0..2 {
        go.send(()).unwrap();
    }
    let shown = [finish, usage, "data: [DONE]\n\n"].concat().into_bytes();
    let stripped = [finish, "data: [DONE]\n\n"].concat().into_bytes();
    assert_eq!(client.rest(&mut bodies[0]), (stripped, None));
    assert_eq!(client.rest(&mut bodies[1]), (shown, None));
    for observation in tap.observations(2) {
        assert_eq!(observation["outcome"], "complete");
        assert_eq!(observation["usage"]["completion_tokens"], 1);
    }
}

#[test]
fn an_engine_that_breaks_off_is_a_reset_after_every_byte() {
    // More than the window of a stream, so that much of it waits for the client.
    let events = EVENT.repeat(3000);
    let sent = events.clone();
    let origin = Origin::start(move |_, _, stream| {
        stream.write_all(HEAD).unwrap();
        for piece in sent.chunks(10_000) {
            stream.write_all(&chunk(piece)).unwrap();
        }
        Then::Close
    });
    let tap = Tap::before(origin.address);
    let mut client = Http2::connect(tap.data);
    let response = client.send(chat(), ASKED);
    let mut body = client.head(response).into_body();
    // The engine is gone before anything is read here.
    origin.wait_closed(0);
    let (got, reset) = client.rest(&mut body);
    assert_eq!(got.len(), events.len());
    assert!(got == events);
    assert!(reset.is_some(), "ended as if it were complete");
    assert_eq!(tap.observations(1)[0]["outcome"], "truncated");
    // The connection is none the worse for it.
    let response = client.send(chat(), ASKED);
    assert_eq!(client.head(response).status(), 200);
}

#[test]
fn a_last_byte_that_waits_for_the_window_comes_before_the_reset() {
    // As much as a client takes unasked, and one byte.
    const WINDOW: usize = 65_535;
    let origin = Origin::start(|_, _, stream| {
        let body = chunk(&[b'x'; WINDOW + 1]);
        stream.write_all(&[HEAD, &body].concat()).unwrap();
        Then::Close
    });
    let tap = Tap::before(origin.address);
    let mut client = Http2::connect(tap.data);
    let response = client.send(chat(), ASKED);
    let mut body = client.head(response).into_body();
    let mut got = 0;
    while got < WINDOW {
        got += client.wait(body.data()).unwrap().unwrap().len();
    }
    body.flow_control().release_capacity(got).unwrap();
    let (rest, reset) = client.rest(&mut body);
    assert_eq!(rest, b"x");
    assert!(reset.is_some(), "ended as if it were complete");
}

#[test]
fn a_stream_that_the_client_resets_ends_its_own_request_and_no_other() {
    let (gone, left) = mpsc::channel();
    let (go, wait) = mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let origin = Origin::start(move |_, request, stream| {
        stream.write_all(HEAD).unwrap();
        stream.write_all(&chunk(EVENT)).unwrap();
        if request.body().contains("leaves") {
            wait_for_close(stream);
            gone.send(()).unwrap();
            return Then::Close;
        }
        wait.lock().unwrap().recv().unwrap();
        stream
            .write_all(&[&chunk(EVENT)[..], b"0\r\n\r\n"].concat())
            .unwrap();
        Then::KeepAlive
    });
    let tap = Tap::before(origin.address);
    let mut client = Http2::connect(tap.data);
    let stays = client.send(chat(), ASKED);
    let leaves = client.send(
        chat(),
        r#"{"stream":true,"stream_options":{"include_usage":true},"user":"leaves"}"#,
    );
    let mut stays = client.head(stays).into_body();
    let mut leaving = client.head(leaves).into_body();
    for body in [&mut stays, &mut leaving] {
        assert_eq!(client.event(body), EVENT);
    }
    drop(leaving);
    left.recv_timeout(DEADLINE)
        .expect("the engine never noticed");
    assert_eq!(tap.observations(1)[0]["outcome"], "cancelled");
    go.send(()).unwrap();
    assert_eq!(client.rest(&mut stays), (EVENT.to_vec(), None));
}

#[test]
fn a_drain_says_goaway_and_lets_streams_finish() {
    let (go, wait) = mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let origin = Origin::start(move |_, _, stream| {
        stream.write_all(HEAD).unwrap();
        stream.write_all(&chunk(EVENT)).unwrap();
        wait.lock().unwrap().recv().unwrap();
        stream
            .write_all(&[&chunk(EVENT)[..], b"0\r\n\r\n"].concat())
            .unwrap();
        Then::KeepAlive
    });
    let mut tap = Tap::before(origin.address);
    let mut client = Http2::connect(tap.data);
    let response = client.send(chat(), ASKED);
    let mut body = client.head(response).into_body();
    assert_eq!(client.event(&mut body), EVENT);
    let stopped = tap.stop();
    until("no new stream", || {
        let sender = client.sender.clone();
        client.wait(sender.ready()).err()
    });
    go.send(()).unwrap();
    assert_eq!(client.rest(&mut body), (EVENT.to_vec(), None));
    client.closed.recv_timeout(DEADLINE).expect("left open");
    assert_eq!(
        stopped.recv_timeout(Duration::from_secs(10)).unwrap(),
        Stopped::Drained
    );
}

#[test]
fn a_stream_may_take_longer_than_a_head_and_then_the_idle_connection_is_closed() {
    let origin = Origin::start(move |_, _, stream| {
        stream.write_all(HEAD).unwrap();
        for _ in 0..8 {
            stream.write_all(&chunk(EVENT)).unwrap();
            // Four times the limit in all.
            std::thread::sleep(Duration::from_millis(100));
        }
        stream.write_all(b"0\r\n\r\n").unwrap();
        Then::KeepAlive
    });
    let tap = Tap::with(origin.address, &["--head-timeout=200ms"]);
    let mut client = Http2::connect(tap.data);
    let response = client.send(chat(), ASKED);
    let mut body = client.head(response).into_body();
    assert_eq!(client.rest(&mut body), (EVENT.repeat(8), None));
    client.closed.recv_timeout(DEADLINE).expect("left open");
}

#[test]
fn a_client_that_begins_and_never_asks_is_closed() {
    let tap = Tap::with(
        Origin::answering(Vec::new()).address,
        &["--head-timeout=100ms"],
    );
    // The preface with nothing behind it, with the settings that must follow, and a head that never ends.
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    let half_a_head = [0, 0, 1, 1, 0, 0, 0, 0, 1, 0x82];
    for frames in [
        &[][..],
        &settings,
        &[settings.as_slice(), &half_a_head].concat(),
    ] {
        let mut client = Client::connect(tap.data);
        client.send([b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", frames].concat());
        // Settings and a goodbye, and then the end.
        client.read_to_end();
    }
    tap.until_metric("spectap_client_connections", 0.0);
}

#[test]
fn a_method_that_begins_like_the_preface_is_http_1() {
    let origin = Origin::answering(vec![json("200 OK", "{}")]);
    let tap = Tap::before(origin.address);
    for method in ["PROPFIND", "PRI", "P"] {
        let request = post("/x", "", "Connection: close\r\n").replacen("POST", method, 1);
        let mut client = Client::connect(tap.data);
        for byte in request.as_bytes() {
            client.send([*byte]);
        }
        let answer = client.read_to_end();
        assert!(answer.starts_with(b"HTTP/1.1 200 OK"), "{method}");
    }
    // A preface that breaks off is nothing, and does no harm.
    let mut stream = TcpStream::connect(tap.data).unwrap();
    stream.write_all(b"PRI * HTTP/2.0\r\n").unwrap();
    let answer = tap.exchange(post("/x", "", "Connection: close\r\n"));
    assert!(answer.starts_with(b"HTTP/1.1 200"));
}
