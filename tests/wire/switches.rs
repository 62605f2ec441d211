//! Connections that switch to another protocol than HTTP, such as WebSocket: bytes both ways, nothing else.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use spectap::proxy::Stopped;

use crate::support::client::Client;
use crate::support::origin::{Origin, Then, json};
use crate::support::tap::Tap;

const ASK: &str = "GET /v1/realtime?a=1 HTTP/1.1\r\nHost: engine\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n\
                   Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
const SWITCHED: &[u8] =
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\
      Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

/// Every byte, and some that look like HTTP.
fn frames() -> Vec<u8> {
    let all = (0..=255_u8).cycle().take(300_000);
    all.chain(*b"HTTP/1.1 200 OK\r\n\r\n0\r\n\r\n").collect()
}

/// Switches, says `hello` in the same write, then sends back what it gets until the client is through.
fn echoes() -> Origin {
    Origin::start(|_, _, stream| {
        stream.write_all(&[SWITCHED, b"hello"].concat()).unwrap();
        echo(stream);
        Then::Close
    })
}

fn echo(stream: &mut TcpStream) {
    let mut buffer = [0; 8192];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(count) => stream.write_all(&buffer[..count]).unwrap(),
        }
    }
}

/// A client through whose tunnel `hello` has come.
fn switched(tap: &Tap) -> Client {
    let mut client = Client::connect(tap.data);
    client.send(ASK);
    assert_eq!(client.read_until(b"\r\n\r\n"), SWITCHED);
    assert_eq!(client.read_until(b"hello"), b"hello");
    client
}

#[test]
fn a_websocket_passes_with_every_byte_both_ways() {
    let origin = echoes();
    let tap = Tap::before(origin.address);
    let mut client = switched(&tap);
    let head = origin.request(0).head;
    assert_eq!(head, ASK.replace("keep-alive, Upgrade", "upgrade"));
    let frames = frames();
    let mut sender = client.stream.try_clone().unwrap();
    let sent = frames.clone();
    let sending = std::thread::spawn(move || {
        sender.write_all(&sent).unwrap();
        sender.shutdown(Shutdown::Write).unwrap();
    });
    assert!(client.read_to_end() == frames, "other bytes came back");
    sending.join().unwrap();
    origin.wait_closed(0);
    tap.until_metric("spectap_requests_total{code=\"101\",route=\"other\"}", 1.0);
    tap.until_metric("spectap_requests_in_flight{route=\"other\"}", 0.0);
    tap.until_metric("spectap_upstream_connections{state=\"active\"}", 0.0);
}

#[test]
fn a_drain_waits_for_a_websocket_and_the_end_of_the_grace_cuts_it() {
    let origin = echoes();
    let mut tap = Tap::before(origin.address);
    let mut client = switched(&tap);
    let stopped = tap.stop();
    crate::support::until("a closed port", || TcpStream::connect(tap.data).err());
    client.send("still here");
    assert_eq!(client.read_until(b"still here"), b"still here");
    client.stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.read_to_end(), b"");
    let deadline = Duration::from_secs(10);
    assert_eq!(stopped.recv_timeout(deadline).unwrap(), Stopped::Drained);

    let mut tap = Tap::with(origin.address, &["--grace=50ms"]);
    let mut client = switched(&tap);
    let stopped = tap.stop();
    assert_eq!(client.read_to_end(), b"");
    assert_eq!(stopped.recv_timeout(deadline).unwrap(), Stopped::Cut);
}

#[test]
fn an_engine_that_does_not_switch_answers_as_ever() {
    let origin = Origin::answering(vec![
        json("426 Upgrade Required", "{}"),
        json("200 OK", "{}"),
    ]);
    let tap = Tap::before(origin.address);
    let mut client = Client::connect(tap.data);
    client.send(ASK);
    let first = client.response();
    assert_eq!((first.status(), first.body()), (426, b"{}".to_vec()));
    client.send("GET /health HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.response().status(), 200);
}

#[test]
fn a_switch_that_nobody_asked_for_is_no_answer() {
    let origin = echoes();
    let tap = Tap::before(origin.address);
    for ask in [
        ASK.replace("Upgrade: websocket\r\n", ""),
        ASK.replace("keep-alive, Upgrade", "keep-alive"),
        ASK.replace("websocket", "h2c"),
        ASK.replace("HTTP/1.1", "HTTP/1.0"),
    ] {
        let mut client = Client::connect(tap.data);
        client.send(&ask);
        let answer = client.response();
        assert_eq!(answer.status(), 502, "{ask}");
        assert!(answer.head.contains("x-spectap-error: not-http\r\n"));
    }
    for request in origin.requests() {
        let head = request.head.to_ascii_lowercase();
        assert!(
            !head.contains("upgrade") && !head.contains("connection"),
            "{head}"
        );
    }
}
