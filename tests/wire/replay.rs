//! When the engine refuses what was added, the client's own bytes are sent again, and that answer is the client's.

use crate::support::client::post;
use crate::support::origin::{Origin, json};
use crate::support::tap::Tap;

const CLOSE: &str = "Connection: close\r\n";
const PLAIN: &str = r#"{"stream":true}"#;
const SPLICED: &str = r#"{"stream":true,"stream_options":{"include_usage":true}}"#;

#[test]
fn another_status_shows_that_the_option_was_at_fault() {
    for refusal in ["400 Bad Request", "422 Unprocessable Entity"] {
        let origin = Origin::start(move |_, request, stream| {
            use std::io::Write;
            let altered = request.body().contains("stream_options");
            let (status, body) = if altered {
                (refusal, "{\"no\":1}")
            } else {
                ("200 OK", "{\"yes\":1}")
            };
            stream.write_all(&json(status, body)).unwrap();
            crate::support::origin::Then::KeepAlive
        });
        let tap = Tap::before(origin.address);
        let request = post("/v1/chat/completions", PLAIN, CLOSE);
        assert!(tap.exchange(&request).ends_with(b"{\"yes\":1}"));
        let bodies: Vec<String> = origin
            .requests()
            .iter()
            .map(|request| request.body())
            .collect();
        assert_eq!(bodies, [SPLICED, PLAIN]);
        assert!(
            origin
                .request(1)
                .head
                .contains(&format!("Content-Length: {}\r\n", PLAIN.len()))
        );
        // No more on this route, still on another.
        assert!(tap.exchange(&request).ends_with(b"{\"yes\":1}"));
        assert_eq!(origin.request(2).body(), PLAIN);
        tap.exchange(post("/v1/completions", PLAIN, CLOSE));
        assert_eq!(origin.request(3).body(), SPLICED);
        assert_eq!(
            tap.metric("spectap_replays_total{result=\"other_status\"}"),
            2.0
        );
        assert_eq!(
            tap.metric("spectap_injections_skipped_total{reason=\"refused\"}"),
            1.0
        );
        assert_eq!(
            tap.metric("spectap_injections_total{option=\"include_usage\",result=\"refused\"}"),
            2.0
        );
    }
}

#[test]
fn an_equal_status_is_the_clients_own_error_and_is_remembered_nowhere() {
    let origin = Origin::answering(vec![
        json("400 Bad Request", "{\"about\":\"ours\"}"),
        json("400 Bad Request", "{\"about\":\"yours\"}"),
    ]);
    let tap = Tap::before(origin.address);
    let request = post("/v1/chat/completions", PLAIN, CLOSE);
    for number in 0..2 {
        let answer = String::from_utf8(tap.exchange(&request)).unwrap();
        assert!(
            answer.starts_with("HTTP/1.1 400 ") && answer.ends_with("{\"about\":\"yours\"}"),
            "{answer}"
        );
        assert_eq!(origin.request(2 * number).body(), SPLICED);
        assert_eq!(origin.request(2 * number + 1).body(), PLAIN);
    }
    assert_eq!(
        tap.metric("spectap_replays_total{result=\"same_status\"}"),
        2.0
    );
    let seen = tap.observations(2);
    assert_eq!(
        (&seen[0]["outcome"], &seen[0]["acceptance"]),
        (&"error_status".into(), &serde_json::Value::Null)
    );
}

#[test]
fn requests_that_were_not_altered_are_never_sent_twice() {
    let origin = Origin::answering(vec![json("400 Bad Request", "{}")]);
    let tap = Tap::before(origin.address);
    tap.exchange(post("/v1/chat/completions", SPLICED, CLOSE));
    tap.exchange(post("/v1/chat/completions", "{\"stream\":false}", CLOSE));
    tap.observations(2);
    assert_eq!(origin.requests().len(), 2);
}

#[test]
fn other_errors_are_never_answered_with_a_second_try() {
    for status in [
        "404 Not Found",
        "401 Unauthorized",
        "500 Internal Server Error",
        "429 Too Many Requests",
    ] {
        let origin = Origin::answering(vec![json(status, "{}")]);
        let tap = Tap::before(origin.address);
        tap.exchange(post("/v1/chat/completions", PLAIN, CLOSE));
        tap.observations(1);
        assert_eq!(origin.requests().len(), 1, "{status}");
    }
}
