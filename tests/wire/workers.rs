//! Several threads that serve clients: one instance all the same.

use std::io::Write;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use spectap::proxy::Stopped;

use crate::support::client::{Client, post};
use crate::support::origin::{Origin, Then, chunk};
use crate::support::tap::Tap;

const CLIENTS: usize = 12;
const ASKED: &str = r#"{"stream":true,"stream_options":{"include_usage":true}}"#;
const HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
const EVENT: &[u8] = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n";

#[test]
fn streams_on_several_workers_are_one_instance_in_numbers_and_end() {
    let all_here = Arc::new(Barrier::new(CLIENTS + 1));
    let engine_side = Arc::clone(&all_here);
    let origin = Origin::start(move |_, _, stream| {
        stream.write_all(HEAD).unwrap();
        stream.write_all(&chunk(EVENT)).unwrap();
        engine_side.wait();
        // The stop has begun.
        engine_side.wait();
        stream.write_all(b"0\r\n\r\n").unwrap();
        Then::KeepAlive
    });
    let mut tap = Tap::with(origin.address, &["--workers=3"]);
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| Client::connect(tap.data)).collect();
    for client in &mut clients {
        client.send(post("/v1/chat/completions", ASKED, ""));
    }
    all_here.wait();
    let open = "spectap_requests_in_flight{route=\"chat_completions\"}";
    assert_eq!(tap.metric(open), CLIENTS as f64);
    let stopped = tap.stop();
    crate::support::until("a closed port", || {
        std::net::TcpStream::connect(tap.data).err()
    });
    all_here.wait();
    for client in &mut clients {
        assert!(client.read_to_end().ends_with(b"0\r\n\r\n"));
    }
    assert_eq!(
        stopped.recv_timeout(Duration::from_secs(10)).unwrap(),
        Stopped::Drained
    );
}
