//! Ends that the matrix does not hold: other framings, a body on its way, and how often an engine is asked.

use std::io::Write;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::relay::{After, Fault, FaultProxy, Kind, Way};
use crate::support::client::{Client, post};
use crate::support::origin::{Origin, Then, json};
use crate::support::tap::Tap;

const PATH: &str = "/v1/chat/completions";

fn all_is_over(tap: &Tap) {
    tap.until_metric(
        "spectap_requests_in_flight{route=\"chat_completions\"}",
        0.0,
    );
    tap.until_metric("spectap_upstream_connections{state=\"active\"}", 0.0);
}

#[test]
fn an_answer_of_any_framing_that_breaks_off_comes_with_every_byte_and_without_a_proper_end() {
    for (framing, rest) in [
        ("content-length: 100\r\n", "{\"half\": \"of it"),
        (
            "transfer-encoding: chunked\r\n",
            "f\r\n{\"half\": \"of it\r\n",
        ),
        ("transfer-encoding: chunked\r\n", "64\r\n{\"half\": \"of it"),
    ] {
        let answer =
            format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n{framing}\r\n{rest}");
        let origin = Origin::start(move |_, _, stream| {
            stream.write_all(answer.as_bytes()).unwrap();
            Then::Close
        });
        let tap = Tap::before(origin.address);
        let got = tap.exchange(post(PATH, "{}", ""));
        let got = String::from_utf8(got).unwrap();
        assert!(got.contains("{\"half\": \"of it"), "{framing}: {got}");
        assert!(got.contains(framing), "{framing}: {got}");
        assert!(!got.ends_with("0\r\n\r\n"), "{framing}: a proper end");
        assert_eq!(tap.observations(1)[0]["outcome"], "truncated", "{framing}");
        all_is_over(&tap);
    }
}

#[test]
fn an_answer_without_framing_ends_where_its_connection_ends() {
    // Nobody can tell this end from a proper one, with or without spectap.
    let origin = Origin::start(|_, _, stream| {
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{\"half\"")
            .unwrap();
        Then::Close
    });
    let tap = Tap::before(origin.address);
    let got = tap.exchange(post(PATH, "{}", ""));
    assert!(got.ends_with(b"\r\n\r\n{\"half\""));
    all_is_over(&tap);
}

#[test]
fn a_client_that_leaves_within_a_body_that_is_streamed_through_closes_the_engines_connection() {
    let origin = Origin::answering(vec![json("200 OK", "{}")]);
    let place = Fault {
        way: Way::Up,
        after: After::Text(b"some of it"),
        kind: Kind::Delay,
        waits: false,
    };
    let way_out = FaultProxy::once(origin.address, Some(place));
    let tap = Tap::before(way_out.address);
    let mut client = Client::connect(tap.data);
    client.send(format!(
        "POST {PATH} HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nContent-Length: 100\r\n\r\nsome of it"
    ));
    // It has come as far as the engine.
    way_out.wait_reached();
    drop(client);
    origin.wait_closed(0);
    assert_eq!(tap.observations(1)[0]["outcome"], "cancelled");
    assert_eq!(origin.requests().len(), 0);
    all_is_over(&tap);
}

#[test]
fn a_request_whose_client_is_gone_before_it_is_read_is_counted() {
    // A place that is taken keeps it from being read before its client has left.
    let origin = Origin::answering(vec![json("200 OK", "{}")]);
    let tap = Tap::with(origin.address, &["--max-connections=1"]);
    let first = Client::connect(tap.data);
    tap.until_metric("spectap_client_connections", 1.0);
    let mut second = Client::connect(tap.data);
    second.send(post(PATH, "{}", ""));
    drop(second);
    drop(first);
    assert_eq!(tap.observations(1)[0]["outcome"], "cancelled");
    all_is_over(&tap);
}

/// An engine that answers its first request and from then on closes every connection as soon as it is asked; it counts
/// the connections.
fn dies_after_the_first() -> (std::net::SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let opened = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&opened);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let number = count.fetch_add(1, Ordering::SeqCst);
            let mut stream = stream.unwrap();
            let mut buffer = [0; 4096];
            let mut read = || std::io::Read::read(&mut stream, &mut buffer).unwrap_or(0);
            if number == 0 && read() > 0 {
                stream.write_all(&json("200 OK", "{}")).unwrap();
            }
            // The next request is read, and not answered.
            let _ = std::io::Read::read(&mut stream, &mut buffer);
        }
    });
    (address, opened)
}

#[test]
fn an_engine_that_is_down_is_asked_once_more_at_most_for_each_request() {
    let (address, opened) = dies_after_the_first();
    let tap = Tap::before(address);
    let mut client = Client::connect(tap.data);
    for number in 0..21 {
        client.send(post(PATH, "{}", ""));
        let status = client.response().status();
        assert_eq!(status, if number == 0 { 200 } else { 502 });
    }
    // The first, the second try of the second on a new connection, and one for each of the rest.
    assert_eq!(opened.load(Ordering::SeqCst), 21);
    assert_eq!(tap.metric("spectap_upstream_retries_total"), 1.0);
    assert_eq!(
        tap.metric("spectap_upstream_errors_total{kind=\"closed-early\"}"),
        20.0
    );
    all_is_over(&tap);
}
