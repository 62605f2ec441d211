//! TLS on the data port.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, mpsc};

use http::{Request, Version};
use rustls::ClientConfig;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::support::certificates::{Authority, Pair, When};
use crate::support::client::post;
use crate::support::http2::Http2;
use crate::support::origin::{Origin, Then, chunk, json};
use crate::support::tap::Tap;
use crate::support::tls::{Front, TlsClient, trusting};
use crate::support::{DEADLINE, until};

const HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
const EVENT: &[u8] =
    b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"},\"finish_reason\":null}]}\n\n";

const BOTH: [&str; 2] = ["h2", "http/1.1"];

/// A tap that serves TLS, and how its clients trust it.
fn serving(authority: &Authority, engine: SocketAddr) -> (Tap, Pair, Arc<ClientConfig>) {
    let pair = authority.server("port", &["tap.example"], When::Now);
    let certificate = format!("--tls-cert={}", pair.certificate.display());
    let key = format!("--tls-key={}", pair.key.display());
    let tap = Tap::with(engine, &[&certificate, &key]);
    (tap, pair, trusting(&authority.file, &BOTH[1..]))
}

fn connect(tap: &Tap, config: &Arc<ClientConfig>) -> TlsClient {
    TlsClient::connect(tap.data, config, "tap.example")
}

fn chat() -> Request<()> {
    Request::post("https://tap.example/v1/chat/completions")
        .version(Version::HTTP_2)
        .body(())
        .unwrap()
}

#[test]
fn http_1_passes_in_tls_byte_for_byte_and_the_connection_is_kept() {
    let authority = Authority::new();
    let engine = Origin::answering(vec![json("200 OK", "{\"a\":1}")]);
    let (tap, _, config) = serving(&authority, engine.address);
    let mut client = connect(&tap, &config);
    assert_eq!(client.protocol(), Some(&b"http/1.1"[..]));
    let request = post("/v1/x?y=%20", "{}", "X-Case: A\r\n");
    for number in 0..2 {
        client.send(&request);
        let answer = client.read_until(b"{\"a\":1}");
        assert_eq!(answer, json("200 OK", "{\"a\":1}"));
        let seen = engine.request(number);
        assert_eq!([seen.head.clone(), seen.body()].concat(), request);
    }
    client.send(post("/", "", "Connection: close\r\n"));
    let (answer, with_farewell) = client.read_to_end();
    assert!(answer.ends_with(b"{\"a\":1}") && with_farewell);
    // A client that knows nothing of protocols speaks HTTP/1.1.
    let mut plain = connect(&tap, &trusting(&authority.file, &[]));
    assert_eq!(plain.protocol(), None);
    plain.send(&request);
    plain.read_until(b"{\"a\":1}");
}

#[test]
fn http_2_is_agreed_on_and_streams_pass() {
    let (go, wait) = mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let authority = Authority::new();
    let engine = Origin::start(move |_, _, stream| {
        stream.write_all(HEAD).unwrap();
        stream.write_all(&chunk(EVENT)).unwrap();
        wait.lock().unwrap().recv().unwrap();
        stream.write_all(&chunk(EVENT)).unwrap();
        stream.write_all(b"0\r\n\r\n").unwrap();
        Then::KeepAlive
    });
    let (tap, _, _) = serving(&authority, engine.address);
    let config = trusting(&authority.file, &BOTH);
    assert_eq!(connect(&tap, &config).protocol(), Some(&b"h2"[..]));
    let mut client = Http2::connect_in_tls(tap.data, config, "tap.example");
    let response = client.send(chat(), "{\"stream\":true}");
    let mut body = client.head(response).into_body();
    assert_eq!(client.event(&mut body), EVENT);
    go.send(()).unwrap();
    assert_eq!(client.rest(&mut body), (EVENT.to_vec(), None));
    assert_eq!(tap.observations(1)[0]["outcome"], "complete");
}

#[test]
fn an_engine_that_breaks_off_is_a_cut_in_tls_after_every_byte() {
    let events = EVENT.repeat(3000);
    let sent = events.clone();
    let authority = Authority::new();
    let engine = Origin::start(move |_, _, stream| {
        stream.write_all(HEAD).unwrap();
        for piece in sent.chunks(10_000) {
            stream.write_all(&chunk(piece)).unwrap();
        }
        Then::Close
    });
    let (tap, _, config) = serving(&authority, engine.address);
    let mut client = connect(&tap, &config);
    client.send(post("/v1/chat/completions", "{\"stream\":true}", ""));
    // The engine is gone before anything is read here.
    engine.wait_closed(0);
    let (answer, with_farewell) = client.read_to_end();
    let at = memchr::memmem::find(&answer, b"\r\n\r\n").unwrap() + 4;
    assert!(crate::support::client::dechunk(&answer[at..]) == events);
    assert!(!answer.ends_with(b"0\r\n\r\n"), "ended as if complete");
    assert!(!with_farewell, "ended as if nothing were missing");
    assert_eq!(tap.observations(1)[0]["outcome"], "truncated");
}

#[test]
fn a_switched_protocol_passes_in_tls_on_both_sides() {
    let authority = Authority::new();
    let engine = Origin::start(|_, _, stream| {
        stream
            .write_all(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\nhello")
            .unwrap();
        let mut buffer = [0; 1024];
        loop {
            match stream.read(&mut buffer) {
                Ok(0) | Err(_) => return Then::Close,
                Ok(count) => stream.write_all(&buffer[..count]).unwrap(),
            }
        }
    });
    let pair = authority.server("both", &["localhost"], When::Now);
    let front = Front::before(engine.address, &pair, &["http/1.1"], None);
    let url = format!("https://localhost:{}", front.address.port());
    let [ca, certificate, key] = [
        ("upstream-ca", &authority.file),
        ("tls-cert", &pair.certificate),
        ("tls-key", &pair.key),
    ]
    .map(|(flag, file)| format!("--{flag}={}", file.display()));
    let tap = Tap::of(&url, &[&ca, &certificate, &key]);
    let config = trusting(&authority.file, &BOTH[1..]);
    let mut client = TlsClient::connect(tap.data, &config, "localhost");
    client.send("GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n");
    let head = client.read_until(b"hello");
    assert!(head.starts_with(b"HTTP/1.1 101"));
    for word in ["one", "two", "three"] {
        client.send(word);
        assert_eq!(client.read_until(word.as_bytes()), word.as_bytes());
    }
    drop(client);
    engine.wait_closed(0);
}

#[test]
fn a_client_without_tls_gets_no_answer_in_clear_text_and_harms_nobody() {
    let authority = Authority::new();
    let engine = Origin::answering(vec![json("200 OK", "{}")]);
    let (tap, _, config) = serving(&authority, engine.address);
    let mut clear = TcpStream::connect(tap.data).unwrap();
    clear.set_read_timeout(Some(DEADLINE)).unwrap();
    clear.write_all(post("/", "", "").as_bytes()).unwrap();
    let mut answer = Vec::new();
    let _ = clear.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
    assert!(engine.requests().is_empty());
    // Nor does one that only opens a connection.
    let _silent = TcpStream::connect(tap.data).unwrap();
    let mut client = connect(&tap, &config);
    client.send(post("/", "", ""));
    client.read_until(b"{}");
}

#[test]
fn a_new_certificate_is_shown_without_a_restart_and_open_connections_stay() {
    let authority = Authority::new();
    let engine = Origin::answering(vec![json("200 OK", "{}")]);
    let (tap, pair, config) = serving(&authority, engine.address);
    let mut old = connect(&tap, &config);
    let shown = |file: &Pair| CertificateDer::from_pem_file(&file.certificate).unwrap();
    let first = shown(&pair);
    assert_eq!(old.certificate(), first);

    let new = authority.server("new", &["tap.example"], When::Now);
    fs::copy(&new.certificate, &pair.certificate).unwrap();
    fs::copy(&new.key, &pair.key).unwrap();
    until("the new certificate", || {
        (connect(&tap, &config).certificate() == shown(&new)).then_some(())
    });
    // Who has a connection keeps it.
    old.send(post("/", "", ""));
    old.read_until(b"{}");
}
