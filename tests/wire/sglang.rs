//! SGLang is asked for its numbers in the client's name, and the client gets what it would have had without.

use crate::support::client::{Client, dechunk, post};
use crate::support::fixtures::{events, path};
use crate::support::origin::{Origin, chunk, json, stream};
use crate::support::tap::Tap;

const CLOSE: &str = "Connection: close\r\n";
const CHAT: &str = "/v1/chat/completions";
const PLAIN: &str = r#"{"model":"m","messages":[],"stream":true}"#;
const ASKED: &str = r#"{"model":"m","messages":[],"stream":true,"stream_options":{"include_usage":true},"return_spec_tokens_details":true}"#;

fn sample(name: &str) -> Vec<u8> {
    std::fs::read(path(&format!("samples/sglang/{name}"))).unwrap()
}

fn body(answer: &[u8]) -> Vec<u8> {
    dechunk(&answer[memchr::memmem::find(answer, b"\r\n\r\n").unwrap() + 4..])
}

/// The events of the sample that are not `choices: []`.
fn own_events(stream: &[u8]) -> Vec<u8> {
    let own = |event: &Vec<u8>| memchr::memmem::find(event, b"\"choices\":[],").is_none();
    events(stream).into_iter().filter(own).flatten().collect()
}

#[test]
fn both_options_are_added_and_both_events_taken_out() {
    let answer = sample("chat_stream_include_usage.sse");
    for pieces in [
        events(&answer),
        answer.chunks(1).map(<[u8]>::to_vec).collect(),
        vec![answer.clone()],
    ] {
        let origin = Origin::answering(vec![stream(pieces.iter().map(Vec::as_slice))]);
        let tap = Tap::with(origin.address, &["--engine=sglang"]);
        let got = tap.exchange(post(CHAT, PLAIN, CLOSE));
        assert_eq!(origin.request(0).body(), ASKED);
        assert_eq!(
            String::from_utf8(body(&got)),
            String::from_utf8(own_events(&answer))
        );
        assert_eq!(tap.metric("spectap_stripped_events_total"), 2.0);
    }
}

#[test]
fn a_client_that_asked_for_one_gets_that_one() {
    let answer = sample("chat_stream_include_usage.sse");
    let usage = r#"{"stream":true,"stream_options":{"include_usage":true}}"#;
    let details = r#"{"stream":true,"return_spec_tokens_details":true}"#;
    let origin = Origin::answering(vec![stream(events(&answer).iter().map(Vec::as_slice))]);
    let tap = Tap::with(origin.address, &["--engine=sglang"]);
    let with_usage = String::from_utf8(body(&tap.exchange(post(CHAT, usage, CLOSE)))).unwrap();
    assert!(
        with_usage.contains("\"usage\":{") && !with_usage.contains("sglext"),
        "{with_usage}"
    );
    let with_details = String::from_utf8(body(&tap.exchange(post(CHAT, details, CLOSE)))).unwrap();
    assert!(
        !with_details.contains("\"usage\":{") && with_details.contains("sglext"),
        "{with_details}"
    );
    assert_eq!(body(&tap.exchange(post(CHAT, ASKED, CLOSE))), answer);
    assert_eq!(origin.request(2).body(), ASKED);
}

#[test]
fn an_explicit_refusal_is_replaced_in_place_and_its_effect_taken_out() {
    let answer = sample("chat_stream_no_usage.sse");
    let origin = Origin::answering(vec![stream(events(&answer).iter().map(Vec::as_slice))]);
    let tap = Tap::with(origin.address, &["--engine=sglang"]);
    let refused = r#"{"return_spec_tokens_details": false ,"stream":true}"#;
    let got = tap.exchange(post(CHAT, refused, CLOSE));
    assert_eq!(
        origin.request(0).body(),
        r#"{"return_spec_tokens_details": true ,"stream":true,"stream_options":{"include_usage":true}}"#
    );
    assert_eq!(body(&got), own_events(&answer));
}

#[test]
fn only_a_known_sglang_is_asked_unless_told_otherwise() {
    let cases = [
        (&[][..], false),
        (&["--engine=vllm"][..], false),
        (&["--inject-sglang=on"][..], true),
        (&["--engine=sglang", "--inject-sglang=off"][..], false),
        (&["--engine=sglang", "--inject=off"][..], false),
    ];
    for (flags, asked) in cases {
        let origin = Origin::answering(vec![json("200 OK", "{}")]);
        let tap = Tap::with(origin.address, flags);
        tap.exchange(post(CHAT, PLAIN, CLOSE));
        assert_eq!(
            origin
                .request(0)
                .body()
                .contains("return_spec_tokens_details"),
            asked,
            "{flags:?}"
        );
        tap.exchange(post("/generate", PLAIN, CLOSE));
        assert_eq!(
            origin.request(1).body(),
            PLAIN,
            "the native route reports by itself"
        );
    }
}

#[test]
fn replies_that_are_not_streamed_are_touched_only_when_told() {
    let answer = String::from_utf8(sample("chat_n1.json")).unwrap();
    let without = format!("{}}}", answer.split(",\"sglext\"").next().unwrap());
    let request = post(CHAT, "{\"model\":\"m\"}", CLOSE);

    let origin = Origin::answering(vec![json("200 OK", &answer)]);
    let tap = Tap::with(origin.address, &["--engine=sglang"]);
    assert!(tap.exchange(&request).ends_with(answer.as_bytes()));
    assert_eq!(origin.request(0).body(), "{\"model\":\"m\"}");

    let mut chunked =
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
            .to_vec();
    answer
        .as_bytes()
        .chunks(100)
        .for_each(|piece| chunked.extend(chunk(piece)));
    chunked.extend_from_slice(b"0\r\n\r\n");
    for engine in [json("200 OK", &answer), chunked] {
        let origin = Origin::answering(vec![engine]);
        let tap = Tap::with(
            origin.address,
            &["--engine=sglang", "--inject-sglang-unary"],
        );
        let mut client = Client::connect(tap.data);
        for number in 0..2 {
            client.send(post(CHAT, "{\"model\":\"m\"}", ""));
            let response = client.response();
            assert_eq!(String::from_utf8(response.body()).unwrap(), without);
            assert_eq!(
                origin.request(number).body(),
                "{\"model\":\"m\",\"return_spec_tokens_details\":true}"
            );
        }
        for seen in tap.observations(2) {
            assert_eq!(seen["outcome"], "complete");
        }
    }
}

#[test]
fn a_reply_too_large_to_be_held_passes_and_is_counted() {
    let answer = format!(
        "{{\"x\":\"{}\",\"sglext\":{{\"spec_tokens_details\":{{}}}}}}",
        "y".repeat(9 << 20)
    );
    let origin = Origin::answering(vec![json("200 OK", &answer)]);
    let tap = Tap::with(
        origin.address,
        &["--engine=sglang", "--inject-sglang-unary"],
    );
    let got = tap.exchange(post(CHAT, "{}", CLOSE));
    assert!(got.ends_with(answer.as_bytes()), "bytes were lost");
    assert_eq!(
        tap.metric("spectap_strips_skipped_total{reason=\"too_large\"}"),
        1.0
    );
}

#[test]
fn a_held_reply_that_breaks_off_is_cut() {
    let origin = Origin::start(|_, _, stream| {
        use std::io::Write;
        let part = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 50\r\n\r\n{\"half\"";
        stream.write_all(part).unwrap();
        crate::support::origin::Then::Close
    });
    let tap = Tap::with(
        origin.address,
        &["--engine=sglang", "--inject-sglang-unary"],
    );
    let got = tap.exchange(post(CHAT, "{}", ""));
    assert!(
        got.ends_with(b"{\"half\""),
        "{}",
        String::from_utf8_lossy(&got)
    );
    assert_eq!(tap.observations(1)[0]["outcome"], "truncated");
}

#[test]
fn the_list_of_models_tells_the_engine() {
    let models = r#"{"object":"list","data":[{"id":"m","object":"model","owned_by":"sglang"}]}"#;
    let origin = Origin::answering(vec![json("200 OK", models), json("200 OK", "{}")]);
    let tap = Tap::before(origin.address);
    tap.exchange(format!("GET /v1/models HTTP/1.1\r\nHost: a\r\n{CLOSE}\r\n"));
    tap.until_metric("spectap_requests_total{code=\"200\",route=\"other\"}", 1.0);
    tap.exchange(post(CHAT, PLAIN, CLOSE));
    assert_eq!(origin.request(1).body(), ASKED);
}

#[test]
fn llama_cpp_gets_no_injection_once_it_has_named_itself() {
    let named = b"HTTP/1.1 200 OK\r\nServer: llama.cpp\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
    let origin = Origin::answering(vec![named.to_vec()]);
    let tap = Tap::before(origin.address);
    tap.exchange(post(CHAT, PLAIN, CLOSE));
    tap.exchange(post(CHAT, PLAIN, CLOSE));
    assert_ne!(origin.request(0).body(), PLAIN, "nothing is known yet");
    assert_eq!(origin.request(1).body(), PLAIN);
    assert_eq!(
        tap.metric("spectap_injections_skipped_total{reason=\"engine\"}"),
        1.0
    );
}
