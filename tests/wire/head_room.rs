//! A request may have 2,048 header fields, wherever it stands on its connection and however it comes.

use crate::support::client::{Client, post};
use crate::support::origin::{Origin, json};
use crate::support::tap::Tap;

const OK: &str = "{\"ok\":true}";

fn ask(path: &str, fields: usize) -> String {
    let more: String = (1..fields)
        .map(|number| format!("X-{number}: v\r\n"))
        .collect();
    format!("GET {path} HTTP/1.1\r\nHost: a\r\n{more}\r\n")
}

struct Stage {
    origin: Origin,
    tap: Tap,
    client: Client,
}

fn stage() -> Stage {
    let origin = Origin::answering(vec![json("200 OK", OK)]);
    let tap = Tap::before(origin.address);
    let client = Client::connect(tap.data);
    Stage {
        origin,
        tap,
        client,
    }
}

#[test]
fn on_a_kept_connection() {
    let mut stage = stage();
    for (number, fields) in [3, 2048, 3, 101, 2048].into_iter().enumerate() {
        let ask = ask("/", fields);
        stage.client.send(&ask);
        assert_eq!(stage.client.response().status(), 200);
        assert_eq!(stage.origin.request(number).head, ask);
    }
    assert_eq!(stage.origin.requests()[4].connection, 0);
}

#[test]
fn behind_other_requests_in_one_write() {
    let mut stage = stage();
    let body = "{\"a\":\n1}\n".repeat(200);
    let requests = [
        ask("/0", 3),
        post("/1", &body, ""),
        ask("/2", 2000),
        ask("/3", 3),
        ask("/4", 98),
        ask("/5", 99),
        ask("/6", 2048),
    ];
    stage.client.send(requests.concat());
    for (number, request) in requests.iter().enumerate() {
        assert_eq!(stage.client.response().status(), 200, "{number}");
        let got = stage.origin.request(number);
        let body = String::from_utf8(got.raw_body).unwrap();
        assert_eq!(got.head + &body, *request);
    }
}

#[test]
fn byte_by_byte() {
    let mut stage = stage();
    let requests = [ask("/0", 3), ask("/1", 2000)].concat();
    for byte in requests.as_bytes() {
        stage.client.send([*byte]);
    }
    for number in 0..2 {
        assert_eq!(stage.client.response().status(), 200, "{number}");
    }
    assert_eq!(stage.origin.request(1).head, ask("/1", 2000));
}

#[test]
fn while_the_body_before_it_is_still_on_its_way() {
    let mut stage = stage();
    let lines = "line\n".repeat(1000);
    let chunk = format!("{:x}\r\n{lines}\r\n", lines.len());
    stage
        .client
        .send("POST /up HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    for _ in 0..20 {
        stage.client.send(&chunk);
    }
    let next = ask("/next", 2048);
    stage.client.send(format!("0\r\n\r\n{next}"));
    for _ in 0..2 {
        assert_eq!(stage.client.response().status(), 200);
    }
    assert!(stage.origin.request(0).body() == lines.repeat(20));
    assert_eq!(stage.origin.request(1).head, next);
}

#[test]
fn and_no_more_than_that() {
    for before in [0, 1] {
        let mut stage = stage();
        for _ in 0..before {
            stage.client.send(ask("/", 3));
            assert_eq!(stage.client.response().status(), 200);
        }
        stage.client.send(ask("/", 2049));
        let refusal = stage.client.read_to_end();
        assert_eq!(
            String::from_utf8_lossy(&refusal),
            "HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
        );
        assert_eq!(stage.origin.requests().len(), before);
        drop(stage.tap);
    }
}
