//! TLS with the engine: bytes pass as in clear text, and what can't be trusted is refused by name.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc;

use serde_json::Value;

use crate::support::certificates::{Authority, Pair, When};
use crate::support::client::{Client, post};
use crate::support::origin::{Origin, Then, chunk, json};
use crate::support::tap::Tap;
use crate::support::tls::{Front, Hello};

fn url(address: SocketAddr) -> String {
    format!("https://localhost:{}", address.port())
}

fn ca(authority: &Authority) -> String {
    format!("--upstream-ca={}", authority.file.display())
}

/// A tap in front of an engine that shows this certificate.
fn in_front_of(pair: &Pair, engine: SocketAddr, flags: &[&str]) -> (Front, Tap) {
    let front = Front::before(engine, pair, &["http/1.1"], None);
    let tap = Tap::of(&url(front.address), flags);
    (front, tap)
}

/// The error that a request through this tap gets; nothing of it may reach the engine.
fn refusal(tap: &Tap, engine: &Origin) -> (u16, String, String) {
    let mut client = Client::connect(tap.data);
    client.send(post("/v1/x", "{}", ""));
    let response = client.response();
    assert!(engine.requests().is_empty());
    let lower = response.head.to_ascii_lowercase();
    let kind = lower
        .split("x-spectap-error: ")
        .nth(1)
        .expect("our own error");
    let kind = kind.lines().next().unwrap().to_owned();
    let body: Value = serde_json::from_slice(&response.body()).unwrap();
    let message = body["error"]["message"].as_str().unwrap().to_owned();
    assert_eq!(body["error"]["type"], "spectap_error");
    let counted = format!("spectap_upstream_errors_total{{kind=\"{kind}\"}}");
    assert_eq!(tap.metric(&counted), 1.0, "{kind}");
    (response.status(), kind, message)
}

#[test]
fn requests_pass_in_tls_as_they_would_in_clear_text() {
    let authority = Authority::new();
    let engine = Origin::answering(vec![json("200 OK", "{\"a\":1}")]);
    let pair = authority.server("engine", &["localhost"], When::Now);
    let (front, tap) = in_front_of(&pair, engine.address, &[&ca(&authority)]);
    let mut client = Client::connect(tap.data);
    for number in 0..2 {
        client.send(post("/v1/x?y=%20", "{}", "X-Case: A\r\n"));
        let response = client.response();
        let answer = [response.head.as_bytes(), &response.raw_body].concat();
        assert_eq!(answer, json("200 OK", "{\"a\":1}"));
        let seen = engine.request(number);
        assert_eq!(
            seen.head,
            post("/v1/x?y=%20", "{}", "X-Case: A\r\n").trim_end_matches("{}")
        );
        assert_eq!(seen.connection, 0, "the connection is kept");
    }
    let hello = Hello {
        server_name: Some("localhost".to_owned()),
        protocol: Some("http/1.1".to_owned()),
        shows_certificate: false,
    };
    assert_eq!(front.hellos(), [hello]);
    assert_eq!(tap.readiness(), (200, "ready\n".to_owned()));
}

#[test]
fn a_certificate_that_can_not_be_trusted_is_refused_by_its_own_name() {
    let authority = Authority::new();
    let stranger = Authority::new();
    let engine = Origin::answering(vec![json("200 OK", "{}")]);
    let cases = [
        (
            stranger.server("stranger", &["localhost"], When::Now),
            "tls-untrusted",
            "--upstream-ca",
        ),
        (
            authority.server("old", &["localhost"], When::Once),
            "tls-expired",
            "expired",
        ),
        (
            authority.server("other", &["other.example"], When::Now),
            "tls-name",
            "other.example",
        ),
        (
            stranger.self_signed("itself", &["localhost"], When::Now),
            "tls-untrusted",
            "--upstream-ca",
        ),
    ];
    for (pair, kind, hint) in cases {
        let (front, tap) = in_front_of(&pair, engine.address, &[&ca(&authority)]);
        let (status, got, message) = refusal(&tap, &engine);
        assert_eq!((status, got.as_str()), (502, kind), "{message}");
        assert!(message.contains(hint), "{message}");
        assert!(
            message.contains(&front.address.port().to_string()),
            "{message}"
        );
        let (status, why) = tap.readiness();
        assert_eq!((status, why.lines().count()), (503, 1), "{why}");
        assert!(why.contains(hint), "{why}");
        assert_eq!(front.hellos(), []);
    }
}

#[test]
fn an_engine_without_tls_is_refused_and_never_sent_clear_text() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut first = [0; 5];
            stream.read_exact(&mut first).unwrap();
            stream
                .write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
                .unwrap();
            let mut rest = Vec::new();
            let _ = stream.read_to_end(&mut rest);
            tell.send((first, rest)).unwrap();
        }
    });
    let tap = Tap::of(&url(address), &[]);
    let unused = Origin::answering(vec![json("200 OK", "{}")]);
    let (status, kind, message) = refusal(&tap, &unused);
    assert_eq!((status, kind.as_str()), (502, "tls-failed"));
    assert!(message.contains("does not speak TLS"), "{message}");
    let (first, rest) = told.recv_timeout(crate::support::DEADLINE).unwrap();
    // A record of a TLS handshake (RFC 8446 section 5.1), and nothing of HTTP behind it.
    assert_eq!(first[..2], [22, 3]);
    assert_eq!(memchr::memmem::find(&rest, b"HTTP/1.1"), None);
}

#[test]
fn the_certificate_may_name_what_the_address_does_not() {
    let authority = Authority::new();
    let engine = Origin::answering(vec![json("200 OK", "{}")]);
    let pair = authority.server("engine", &["engine.example"], When::Now);
    let flags = [&ca(&authority)[..], "--upstream-server-name=engine.example"];
    let (front, tap) = in_front_of(&pair, engine.address, &flags);
    let answer = tap.exchange(post("/", "", "Connection: close\r\n"));
    assert!(answer.starts_with(b"HTTP/1.1 200"));
    let asked = front.hellos()[0].server_name.clone();
    assert_eq!(asked.as_deref(), Some("engine.example"));
    let host = "Host: engine.example\r\n";
    assert!(engine.request(0).head.contains(host), "the client's own");
}

#[test]
fn a_client_certificate_is_shown_where_the_engine_asks_for_one() {
    let authority = Authority::new();
    let engine = Origin::answering(vec![json("200 OK", "{}")]);
    let pair = authority.server("engine", &["localhost"], When::Now);
    let ours = authority.client("ours");
    let front = Front::before(engine.address, &pair, &[], Some(&authority.file));
    let certificate = format!("--upstream-client-cert={}", ours.certificate.display());
    let key = format!("--upstream-client-key={}", ours.key.display());
    let tap = Tap::of(&url(front.address), &[&ca(&authority), &certificate, &key]);
    let answer = tap.exchange(post("/", "", "Connection: close\r\n"));
    assert!(answer.starts_with(b"HTTP/1.1 200"));
    let hello = front.hellos()[0].clone();
    assert_eq!((hello.shows_certificate, hello.protocol), (true, None));

    let unused = Origin::answering(vec![json("200 OK", "{}")]);
    let without = Tap::of(&url(front.address), &[&ca(&authority)]);
    let (status, kind, message) = refusal(&without, &unused);
    assert_eq!(
        (status, kind.as_str()),
        (502, "tls-client-cert"),
        "{message}"
    );
    assert!(message.contains("--upstream-client-cert"), "{message}");
}

#[test]
fn an_engine_that_vouches_for_itself_is_trusted_by_its_own_certificate() {
    let authority = Authority::new();
    let engine = Origin::answering(vec![json("200 OK", "{}")]);
    let itself = |file, name, when| authority.self_signed(file, &[name], when);
    let trusting = |pair: &Pair| format!("--upstream-ca={}", pair.certificate.display());

    let pair = itself("itself", "localhost", When::Now);
    let (_front, tap) = in_front_of(&pair, engine.address, &[&trusting(&pair)]);
    let answer = tap.exchange(post("/", "", "Connection: close\r\n"));
    assert!(answer.starts_with(b"HTTP/1.1 200"));

    let unused = Origin::answering(vec![json("200 OK", "{}")]);
    for (pair, kind) in [
        (itself("old", "localhost", When::Once), "tls-expired"),
        (itself("other", "other.example", When::Now), "tls-name"),
    ] {
        let (_front, tap) = in_front_of(&pair, unused.address, &[&trusting(&pair)]);
        assert_eq!(refusal(&tap, &unused).1, kind);
    }
}

#[test]
fn a_connection_that_breaks_off_is_a_cut_although_the_answer_has_no_length() {
    let authority = Authority::new();
    let pair = authority.server("engine", &["localhost"], When::Now);
    let engine = Origin::start(|_, _, stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nhalf an").unwrap();
        Then::Close
    });
    let (_front, tap) = in_front_of(&pair, engine.address, &[&ca(&authority)]);
    let path = "/v1/chat/completions";
    let answer = tap.exchange(post(path, "{\"stream\":false}", "Connection: close\r\n"));
    assert!(answer.ends_with(b"half an"), "every byte that came");
    assert_eq!(tap.observations(1)[0]["outcome"], "truncated");
}

#[test]
fn streams_are_observed_and_filtered_as_in_clear_text() {
    let authority = Authority::new();
    let pair = authority.server("engine", &["localhost"], When::Now);
    let usage = "data: {\"id\":\"i\",\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}\n\n";
    let finish = "data: {\"id\":\"i\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    let done = "data: [DONE]\n\n";
    let engine = Origin::start(move |_, _, stream| {
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
            .unwrap();
        for event in [finish, usage, done] {
            stream.write_all(&chunk(event.as_bytes())).unwrap();
        }
        stream.write_all(b"0\r\n\r\n").unwrap();
        Then::KeepAlive
    });
    let (_front, tap) = in_front_of(&pair, engine.address, &[&ca(&authority)]);
    let mut client = Client::connect(tap.data);
    client.send(post("/v1/chat/completions", "{\"stream\":true}", ""));
    let body = client.response().body();
    assert_eq!(body, [finish, done].concat().into_bytes());
    let observation = tap.observations(1)[0].clone();
    assert_eq!(observation["outcome"], "complete");
    assert_eq!(observation["usage"]["completion_tokens"], 1);
}

#[test]
fn a_file_that_can_not_be_used_is_refused_with_its_flag_and_what_would_be_right() {
    let authority = Authority::new();
    let ours = authority.client("ours");
    let other = authority.client("other");
    let empty = authority.path("empty.pem");
    std::fs::write(&empty, "nothing\n").unwrap();
    let damaged = authority.path("damaged.pem");
    std::fs::write(
        &damaged,
        "-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n",
    )
    .unwrap();
    let flag = |name: &str, path: &std::path::Path| format!("--{name}={}", path.display());
    let cert = flag("upstream-client-cert", &ours.certificate);
    let cases = [
        (
            vec![flag("upstream-ca", &authority.path("missing"))],
            "--upstream-ca",
            "can not be read",
        ),
        (
            vec![flag("upstream-ca", &empty)],
            "--upstream-ca",
            "BEGIN CERTIFICATE",
        ),
        (
            vec![flag("upstream-ca", &damaged)],
            "--upstream-ca",
            "damaged",
        ),
        (
            vec![cert.clone()],
            "--upstream-client-cert",
            "--upstream-client-key",
        ),
        (
            vec![cert.clone(), flag("upstream-client-key", &empty)],
            "--upstream-client-key",
            "BEGIN PRIVATE KEY",
        ),
        (
            vec![cert, flag("upstream-client-key", &other.key)],
            "--upstream-client-key",
            "ours.pem",
        ),
        (
            vec![flag("tls-cert", &ours.certificate)],
            "--tls-cert",
            "--tls-key",
        ),
        (
            vec![
                flag("tls-cert", &ours.certificate),
                flag("tls-key", &other.key),
            ],
            "--tls-key",
            "ours.pem",
        ),
    ];
    for (flags, named, hint) in cases {
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let error = Tap::config("https://h", &flags).unwrap_err();
        assert_eq!(error.flag, named, "{error}");
        assert!(error.problem.contains(hint), "{error}");
    }
    let error = Tap::config("http://h", &[&ca(&authority)]).unwrap_err();
    assert_eq!(error.flag, "--upstream-ca");
    assert!(error.problem.contains("https://"), "{error}");
}
