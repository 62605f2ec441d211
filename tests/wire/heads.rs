//! Heads pass as they are: order, case, repeats, odd bytes; only fields of one hop stay behind.

use crate::support::client::{Client, post};
use crate::support::origin::{Origin, json};
use crate::support::tap::Tap;

const OK: &str = "{\"ok\":true}";

fn head_at_engine(request: &str) -> String {
    let origin = Origin::answering(vec![json("200 OK", OK)]);
    let tap = Tap::before(origin.address);
    tap.exchange(request);
    origin.request(0).head
}

/// The response's head as the client gets it.
fn head_at_client(answer: &str) -> String {
    let origin = Origin::answering(vec![answer.as_bytes().to_vec()]);
    let tap = Tap::before(origin.address);
    let mut client = Client::connect(tap.data);
    client.send("GET /x HTTP/1.1\r\nHost: a\r\n\r\n");
    client.response().head
}

#[test]
fn a_request_head_arrives_as_it_was_sent() {
    let head = "GET /a%2Fb//c/../d?x=1&x=%20&? HTTP/1.1\r\nHost: Engine.Example:99\r\nX-Zulu: 1\r\naccept: */*\r\n\
                X-ALPHA: 2\r\nauthorization: Bearer k\r\nx-Empty:\r\n";
    let seen = head_at_engine(&format!("{head}Connection: close\r\n\r\n"));
    assert_eq!(seen, format!("{head}\r\n"));
}

#[test]
fn an_empty_query_and_an_odd_method_pass() {
    let seen = head_at_engine("PURGE /p? HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert!(seen.starts_with("PURGE /p? HTTP/1.1\r\n"), "{seen}");
    let seen = head_at_engine("OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert!(seen.starts_with("OPTIONS * HTTP/1.1\r\n"), "{seen}");
}

#[test]
fn repeated_fields_keep_their_values_in_order() {
    let seen = head_at_engine(
        "GET / HTTP/1.1\r\nHost: a\r\nX-A: 1\r\nX-A: 2\r\nX-a: 3\r\nConnection: close\r\n\r\n",
    );
    assert!(seen.contains("X-A: 1\r\nX-A: 2\r\nX-a: 3\r\n"), "{seen}");
}

#[test]
fn hop_by_hop_fields_stay_behind_and_nothing_is_added() {
    let seen = head_at_engine(
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: close, x-hop, host, content-type\r\nKeep-Alive: timeout=9\r\nX-Hop: 1\r\n\
         TE: trailers, deflate\r\nUpgrade: h2c\r\nProxy-Connection: keep-alive\r\nContent-Type: t\r\nX-End: 2\r\n\r\n",
    );
    assert_eq!(
        seen,
        "GET / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nContent-Type: t\r\nX-End: 2\r\n\r\n"
    );
}

#[test]
fn bytes_that_are_no_text_pass() {
    let origin = Origin::start(|_, _, stream| {
        use std::io::Write;
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nX-Odd: \xe9\xff\r\nContent-Length: 0\r\n\r\n")
            .unwrap();
        crate::support::origin::Then::KeepAlive
    });
    let tap = Tap::before(origin.address);
    let mut client = Client::connect(tap.data);
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\nX-Odd: \xe9\xff\r\n\r\n");
    assert_eq!(
        client.read_until(b"\r\n\r\n"),
        b"HTTP/1.1 200 OK\r\nX-Odd: \xe9\xff\r\nContent-Length: 0\r\n\r\n"
    );
}

#[test]
fn a_response_head_arrives_as_it_was_sent() {
    let head = "HTTP/1.1 207 Something Else\r\nDATE: yesterday\r\nx-b: 1\r\nContent-Length: 2\r\nX-A: 2\r\n\
                set-cookie: a=1\r\nset-cookie: b=2\r\n\r\n";
    assert_eq!(head_at_client(&format!("{head}ok")), head);
}

#[test]
fn hop_by_hop_fields_of_a_response_stay_behind_and_no_date_or_server_is_added() {
    let seen = head_at_client(
        "HTTP/1.1 200 OK\r\nConnection: keep-alive, x-hop\r\nKeep-Alive: timeout=5\r\nX-Hop: 1\r\nContent-Length: 0\r\n\r\n",
    );
    assert_eq!(seen, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
}

#[test]
fn an_absolute_target_is_forwarded_in_origin_form_and_its_authority_wins() {
    let seen = head_at_engine(
        "GET http://other:1/p?q HTTP/1.1\r\nHost: a\r\nX-A: 1\r\nConnection: close\r\n\r\n",
    );
    assert_eq!(seen, "GET /p?q HTTP/1.1\r\nHost: other:1\r\nX-A: 1\r\n\r\n");
}

#[test]
fn an_absolute_target_without_a_path_gets_the_root() {
    for (target, forwarded) in [("", "/"), ("?q", "/?q"), ("#/f?g", "/")] {
        let request =
            format!("GET http://other:1{target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        let seen = head_at_engine(&request);
        let expected = format!("GET {forwarded} HTTP/1.1\r\nHost: other:1\r\n\r\n");
        assert_eq!(seen, expected, "{target}");
    }
}

#[test]
fn a_password_in_an_absolute_target_never_becomes_a_host() {
    let seen = head_at_engine(
        "GET http://user:secret@other:1/p HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    );
    assert_eq!(seen, "GET /p HTTP/1.1\r\nHost: other:1\r\n\r\n");
}

#[test]
fn two_thousand_fields_pass() {
    let fields: String = (0..2000)
        .map(|number| format!("X-{number}: v\r\n"))
        .collect();
    let seen = head_at_engine(&format!(
        "GET / HTTP/1.1\r\nHost: a\r\n{fields}Connection: close\r\n\r\n"
    ));
    assert_eq!(seen, format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n"));
}

#[test]
fn an_empty_body_leaves_its_length_where_it_stands() {
    for path in ["/x", "/v1/chat/completions"] {
        let ask = format!(
            "POST {path} HTTP/1.1\r\nContent-Length: 0\r\nHost: a\r\nContent-Type: application/json\r\n"
        );
        let seen = head_at_engine(&format!("{ask}Connection: close\r\n\r\n"));
        assert_eq!(seen, format!("{ask}\r\n"));
    }
}

#[test]
fn answers_with_many_fields_pass_up_to_the_limit() {
    for (count, passes) in [(250, true), (257, false)] {
        let fields: String = (0..count)
            .map(|number| format!("X-{number}: v\r\n"))
            .collect();
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n{fields}\r\n");
        let origin = Origin::answering(vec![answer.clone().into_bytes()]);
        let tap = Tap::before(origin.address);
        let got = tap.exchange("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        let got = String::from_utf8(got).unwrap();
        if passes {
            let (head, last) = answer.split_at(answer.len() - 2);
            assert!(got == format!("{head}connection: close\r\n{last}"), "{got}");
        } else {
            assert!(got.starts_with("HTTP/1.1 502 "), "{got}");
            assert!(got.contains("x-spectap-error: not-http\r\n"), "{got}");
        }
    }
}

#[test]
fn http_1_0_without_host_is_answered() {
    let origin = Origin::answering(vec![json("200 OK", OK)]);
    let tap = Tap::before(origin.address);
    let answer = String::from_utf8(tap.exchange("GET /x HTTP/1.0\r\n\r\n")).unwrap();
    assert!(answer.ends_with(OK), "{answer}");
    assert!(origin.request(0).head.starts_with("GET /x HTTP/1.0\r\n"));
}

#[test]
fn a_missing_or_doubled_host_is_refused_without_asking_the_engine() {
    let origin = Origin::answering(vec![json("200 OK", OK)]);
    let tap = Tap::before(origin.address);
    for hosts in ["", "Host: a\r\nHost: b\r\n"] {
        let answer = tap.exchange(format!(
            "GET / HTTP/1.1\r\n{hosts}Connection: close\r\n\r\n"
        ));
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
        assert!(answer.contains("x-spectap-error: bad-host\r\n"), "{answer}");
    }
    let answer =
        String::from_utf8(tap.exchange("CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n")).unwrap();
    assert!(answer.starts_with("HTTP/1.1 405 "), "{answer}");
    assert!(origin.requests().is_empty());
}

#[test]
fn the_engines_own_paths_are_never_shadowed() {
    let origin = Origin::answering(vec![json("200 OK", "{\"engine\":1}")]);
    let tap = Tap::before(origin.address);
    for path in [
        "/metrics",
        "/health",
        "/livez",
        "/readyz",
        "/api/v1/summary",
        "/",
    ] {
        let answer = tap.exchange(format!(
            "GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        ));
        assert!(answer.ends_with(b"{\"engine\":1}"), "{path}");
    }
}

#[test]
fn one_connection_serves_many_requests_and_pipelined_ones_in_order() {
    let origin = Origin::answering(
        (0..3)
            .map(|n| json("200 OK", &format!("{{\"n\":{n}}}")))
            .collect(),
    );
    let tap = Tap::before(origin.address);
    let mut client = Client::connect(tap.data);
    client.send(format!("{0}{0}{0}", post("/v1/embeddings", "{}", "")));
    for number in 0..3 {
        assert_eq!(
            client.response().body(),
            format!("{{\"n\":{number}}}").as_bytes()
        );
    }
    let connections: Vec<usize> = origin
        .requests()
        .iter()
        .map(|request| request.connection)
        .collect();
    assert_eq!(connections, [0, 0, 0], "the engine's connection is kept");
}

#[test]
fn connection_can_not_take_away_what_changes_the_meaning() {
    let seen = head_at_engine(
        "POST /x HTTP/1.1\r\nConnection: host, content-length, authorization, content-encoding, x-hop, close\r\n\
         X-Hop: 1\r\nB: 1\r\nHost: a\r\nAuthorization: k\r\nContent-Encoding: identity\r\nContent-Length: 7\r\nA: 2\r\n\
         \r\n{\"a\":1}",
    );
    // The first line goes, and the order of the others stays.
    assert_eq!(
        seen,
        "POST /x HTTP/1.1\r\nB: 1\r\nHost: a\r\nAuthorization: k\r\nContent-Encoding: identity\r\nContent-Length: 7\r\nA: 2\r\n\r\n"
    );
}

#[test]
fn a_connection_header_that_is_no_text_hurts_nobody() {
    let origin = Origin::answering(vec![
        b"HTTP/1.1 200 OK\r\nConnection: \xff\xfe, x-hop\r\nX-Hop: 1\r\nContent-Length: 2\r\n\r\nok".to_vec(),
    ]);
    let tap = Tap::before(origin.address);
    let mut client = Client::connect(tap.data);
    client.send(
        b"GET / HTTP/1.1\r\nHost: a\r\nConnection: x-hop, \xff\xfe\r\nX-Hop: 1\r\nX-A: 2\r\n\r\n",
    );
    let answer = client.response();
    assert_eq!(answer.head, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n");
    assert_eq!(
        origin.request(0).head,
        "GET / HTTP/1.1\r\nHost: a\r\nX-A: 2\r\n\r\n"
    );
}

#[test]
fn a_head_above_the_limits_is_answered_431_without_asking_the_engine() {
    let origin = Origin::answering(vec![json("200 OK", OK)]);
    let tap = Tap::before(origin.address);
    let many: String = (0..2100)
        .map(|number| format!("X-{number}: v\r\n"))
        .collect();
    let long = format!("X-Long: {}\r\n", "v".repeat(2500 << 10));
    for fields in [many, long] {
        let mut client = Client::connect(tap.data);
        let head = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        // What is beyond the limit may meet a closed socket.
        let _ = std::io::Write::write_all(&mut client.stream, head.as_bytes());
        let length = head.len();
        let answer = String::from_utf8(client.read_to_end()).unwrap();
        assert!(answer.starts_with("HTTP/1.1 431 "), "{length}: {answer}");
    }
    assert!(origin.requests().is_empty());
    let fits = format!("X-Long: {}\r\n", "v".repeat(1000 << 10));
    let answer = tap.exchange(format!(
        "GET / HTTP/1.1\r\nHost: a\r\n{fits}Connection: close\r\n\r\n"
    ));
    assert!(answer.starts_with(b"HTTP/1.1 200 "));
}
