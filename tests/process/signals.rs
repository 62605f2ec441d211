//! How `serve` ends, told by its exit code.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::program::Running;

/// An engine whose first stream never ends; tells when it has begun.
pub(crate) fn endless_engine() -> (SocketAddr, Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, begun) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let tell = tell.clone();
            std::thread::spawn(move || {
                let mut stream = stream.unwrap();
                let mut buffer = [0; 4096];
                if stream.read(&mut buffer).unwrap_or(0) > 0 {
                    let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
                    stream.write_all(head).unwrap();
                    tell.send(()).unwrap();
                    // Until the peer closes.
                    while stream.read(&mut buffer).unwrap_or(0) > 0 {}
                }
            });
        }
    });
    (address, begun)
}

pub(crate) fn open_stream(data: SocketAddr, begun: &Receiver<()>) -> TcpStream {
    let mut client = TcpStream::connect(data).unwrap();
    client
        .write_all(b"GET /endless HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    begun.recv_timeout(Duration::from_secs(20)).unwrap();
    client
}

#[test]
fn an_idle_tap_ends_at_once_with_success() {
    for signal in ["TERM", "INT"] {
        let (engine, _) = endless_engine();
        let (tap, _, _) = Running::serve(engine, &[]);
        tap.signal(signal);
        assert_eq!(tap.end(), (Some(0), String::new()));
    }
}

#[test]
fn a_stream_that_outlasts_the_grace_is_cut_and_told() {
    let (engine, begun) = endless_engine();
    let (tap, data, _) = Running::serve(engine, &["--grace=100ms"]);
    let _client = open_stream(data, &begun);
    tap.signal("TERM");
    assert_eq!(tap.end().0, Some(3));
}

#[test]
fn a_second_signal_ends_at_once() {
    let (engine, begun) = endless_engine();
    let (tap, data, _) = Running::serve(engine, &["--grace=1h"]);
    let _client = open_stream(data, &begun);
    tap.signal("TERM");
    tap.until("a word about the second signal", |line| {
        line.contains("second signal").then_some(())
    });
    let asked = Instant::now();
    tap.signal("INT");
    assert_eq!(tap.end().0, Some(3));
    assert!(asked.elapsed() < Duration::from_secs(20));
}

fn ready(admin: SocketAddr) -> String {
    let mut probe = TcpStream::connect(admin).unwrap();
    let request = b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    probe.write_all(request).unwrap();
    let mut answer = String::new();
    probe.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn readiness_turns_false_while_the_drain_delay_still_accepts() {
    let (engine, begun) = endless_engine();
    let (tap, data, admin) = Running::serve(engine, &["--drain-delay=1h", "--grace=10ms"]);
    tap.signal("TERM");
    tap.until("stopping", |line| line.contains("stopping").then_some(()));
    let begun_at = Instant::now();
    let answer = loop {
        let answer = ready(admin);
        if answer.starts_with("HTTP/1.1 503") || begun_at.elapsed() > Duration::from_secs(20) {
            break answer;
        }
    };
    assert!(answer.contains("draining"), "{answer}");
    let _still_served = open_stream(data, &begun);
    tap.signal("TERM");
    assert_eq!(tap.end().0, Some(3));
}
