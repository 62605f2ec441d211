//! What is learned of an exchange while its bytes go by.

use std::io::Write;

use serde_json::{Value, json};

use crate::support::client::post;
use crate::support::fixtures::{capture, events, path};
use crate::support::origin::{Origin, Then, chunk, json as json_answer, stream};
use crate::support::tap::Tap;

const CLOSE: &str = "Connection: close\r\n";

/// Sends a captured request, answers with the captured response, and gives the observation.
fn observed(name: &str, path: &str) -> Value {
    observed_after(name, path, &[])
}

/// The same after other captured answers to plain chat requests.
fn observed_after(name: &str, path: &str, before: &[&str]) -> Value {
    let capture_of = capture(name);
    let mut answers: Vec<Vec<u8>> = before.iter().map(|name| capture(name).raw).collect();
    answers.push(capture_of.raw);
    let origin = Origin::answering(answers);
    let tap = Tap::before(origin.address);
    for (number, _) in before.iter().enumerate() {
        tap.exchange(post("/v1/chat/completions", "{}", CLOSE));
        tap.observations(number + 1);
    }
    tap.exchange(post(path, &capture_of.request.to_string(), CLOSE));
    tap.observations(before.len() + 1)[0].clone()
}

const CHAT: &str = "/v1/chat/completions";

#[test]
fn a_stream_and_a_reply_of_the_same_request_give_the_same_record() {
    let record = json!({
        "engine": "vllm", "provenance": "per_step", "mean_acceptance_length": 2.75, "draft_acceptance_rate": 0.4375,
        "acceptance_histogram": {"1": 2, "2": 1, "3": 1}, "num_accepted_draft_tokens": 7, "num_draft_tokens": 16,
        "num_spec_steps": 4, "num_spec_tokens": 4, "completion_tokens": 48,
        "per_step_accepted": [1, 1, 3, 2], "per_step_drafted": [4, 4, 4, 4],
    });
    for case in ["chat-nonstream", "chat-stream-include-usage"] {
        let seen = observed(&format!("ngram-detailed/{case}"), CHAT);
        assert_eq!(seen["spec_decode_acceptance"], json!([record]), "{case}");
        assert_eq!(seen["acceptance"], "recorded");
        assert_eq!(
            seen["usage"],
            json!({"prompt_tokens": 22, "completion_tokens": 48, "cached_tokens": null, "reasoning_tokens": null})
        );
        assert_eq!(
            (&seen["model"], &seen["outcome"], &seen["status"]),
            (&json!("tiny-model"), &json!("complete"), &json!(200))
        );
        assert_eq!(seen["finish_reasons"], json!(["length"]));
        assert_eq!(
            seen["facets"],
            json!({"temperature": "0", "format": "none"})
        );
        assert!(
            seen["request_id"]
                .as_str()
                .unwrap()
                .starts_with("chatcmpl-")
        );
    }
}

#[test]
fn absences_are_named() {
    let warm = "ngram-summary/chat-nonstream-keepalive";
    let cases = [
        ("ngram-summary/chat-nonstream-n2", CHAT, "n_gt_1"),
        (
            "ngram-summary/completions-nonstream-multi-prompt",
            "/v1/completions",
            "multi_prompt",
        ),
        (
            "ngram-summary/chat-nonstream-stop-string",
            CHAT,
            "stop_string",
        ),
        (
            "ngram-summary/chat-stream-stop-string-include-usage",
            CHAT,
            "stop_string",
        ),
        (
            "ngram-summary/chat-nonstream-beam-search",
            CHAT,
            "beam_search",
        ),
        (
            "ngram-summary-connections/chat-nonstream-aborted-by-server",
            CHAT,
            "aborted",
        ),
        (
            "ngram-summary-connections/chat-stream-aborted-by-server",
            CHAT,
            "aborted",
        ),
        (
            "ngram-summary-connections/chat-stream-engine-killed",
            CHAT,
            "error_event",
        ),
        (
            "ngram-summary/messages-nonstream",
            "/v1/messages",
            "route_without_payload",
        ),
        (
            "ngram-summary/responses-stream",
            "/v1/responses",
            "route_without_payload",
        ),
        // The engine answers without usage although it was asked.
        (
            "ngram-summary/chat-stream-no-options",
            CHAT,
            "no_usage_event",
        ),
    ];
    for (name, path, reason) in cases {
        let seen = observed_after(name, path, &[warm]);
        assert_eq!(
            (&seen["acceptance"], &seen["reason"]),
            (&json!("absent"), &json!(reason)),
            "{name}"
        );
    }
    let seen = observed("ngram-level-none/chat-nonstream", CHAT);
    assert_eq!(seen["reason"], "level_off");
}

#[test]
fn injection_off_is_a_reason_of_its_own() {
    let answer = capture("ngram-summary/chat-stream-no-options").raw;
    let origin = Origin::answering(vec![answer]);
    let tap = Tap::with(origin.address, &["--inject=off"]);
    tap.exchange(post(CHAT, r#"{"stream":true}"#, CLOSE));
    assert_eq!(tap.observations(1)[0]["reason"], "inject_off");
}

/// The prefill half of a request that is split between two servers generates one token, so that nothing is ever drafted.
#[test]
fn a_prefill_leg_is_no_zero_step_request() {
    let captured = capture("ngram-summary/chat-nonstream-max1");
    let mut leg = captured.request.clone();
    leg["kv_transfer_params"] = json!({"do_remote_decode": true});
    let origin = Origin::answering(vec![captured.raw.clone(), captured.raw]);
    let tap = Tap::before(origin.address);
    tap.exchange(post(CHAT, &leg.to_string(), CLOSE));
    let seen = tap.observations(1)[0].clone();
    assert_eq!(
        (&seen["acceptance"], &seen["reason"]),
        (&json!("absent"), &json!("prefill_leg"))
    );
    assert_eq!(seen["spec_decode_acceptance"], json!([]));
    // The same answer to a request that is whole.
    tap.exchange(post(CHAT, &captured.request.to_string(), CLOSE));
    assert_eq!(tap.observations(2)[0]["acceptance"], "zero_step");
    let summary = tap.json("/api/v1/summary");
    assert_eq!(summary["n"]["zero_step"], 1);
    assert_eq!(summary["n"]["absent"], 1);
}

#[test]
fn a_zero_step_reply_is_kept_apart() {
    let seen = observed("ngram-summary/chat-nonstream-max1", CHAT);
    assert_eq!(
        (&seen["acceptance"], &seen["reason"]),
        (&json!("zero_step"), &Value::Null)
    );
    assert_eq!(seen["spec_decode_acceptance"][0]["num_spec_steps"], 0);
}

#[test]
fn an_error_event_on_a_success_is_no_success() {
    let seen = observed("ngram-summary-connections/chat-stream-engine-killed", CHAT);
    assert_eq!(
        (&seen["outcome"], &seen["status"]),
        (&json!("error_event"), &json!(200))
    );
}

#[test]
fn each_choice_of_tensorrt_llm_is_a_record() {
    let body = std::fs::read_to_string(path("samples/trtllm/chat_n2.json")).unwrap();
    let origin = Origin::answering(vec![json_answer("200 OK", &body)]);
    let tap = Tap::before(origin.address);
    tap.exchange(post(CHAT, r#"{"n":2}"#, CLOSE));
    let seen = &tap.observations(1)[0];
    let records = seen["spec_decode_acceptance"].as_array().unwrap();
    assert_eq!(records.len(), 2);
    assert_eq!(
        (&records[1]["engine"], &records[1]["choice_index"]),
        (&json!("tensorrt_llm"), &json!(1))
    );
    // The view that equals AIPerf's leaves n > 1 out, the other one has both.
    let summary = tap.json("/api/v1/summary");
    assert_eq!(
        summary["pooled_spec_decode_acceptance_histogram"],
        json!({})
    );
    assert_eq!(
        summary["sequences"]["pooled_spec_decode_acceptance_histogram"],
        json!({"0": 3, "1": 3, "2": 1})
    );
    assert_eq!(
        tap.metric(
            "spectap_spec_decode_num_drafts_total{backend=\"tensorrt_llm\",model_name=\"m-8b\"}"
        ),
        7.0
    );
}

#[test]
fn the_tokens_of_several_sequences_are_no_single_records() {
    // The second sequence was never drafted for, so that one record stands beside the usage of both.
    let both = std::fs::read_to_string(path("samples/trtllm/chat_n2.json")).unwrap();
    let mut body: Value = serde_json::from_str(&both).unwrap();
    body["choices"][1]["speculative_decoding"] = Value::Null;
    let origin = Origin::answering(vec![json_answer("200 OK", &body.to_string())]);
    let tap = Tap::before(origin.address);
    tap.exchange(post(CHAT, r#"{"n":2}"#, CLOSE));
    let seen = &tap.observations(1)[0];
    assert_eq!(seen["usage"]["completion_tokens"], 14);
    let records = seen["spec_decode_acceptance"].as_array().unwrap();
    assert_eq!(records.len(), 1);
    assert!(records[0]["completion_tokens"].is_null());
}

#[test]
fn the_first_token_is_content_and_not_the_head_or_the_role() {
    let all = events(&capture("ngram-summary/chat-stream-include-usage").body);
    let origin = Origin::start(move |_, _, stream| {
        let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        stream.write_all(head).unwrap();
        stream.write_all(&chunk(b": keep-alive\n\n")).unwrap();
        stream.write_all(&chunk(&all[0])).unwrap();
        // A lower bound, no race: content can't be seen before it is sent.
        std::thread::sleep(std::time::Duration::from_millis(30));
        for event in &all[1..] {
            stream.write_all(&chunk(event)).unwrap();
        }
        stream.write_all(b"0\r\n\r\n").unwrap();
        Then::KeepAlive
    });
    let tap = Tap::before(origin.address);
    tap.exchange(post(CHAT, r#"{"stream":true}"#, CLOSE));
    let timing = &tap.observations(1)[0]["timing"];
    let value = |name: &str| timing[name].as_f64().unwrap();
    assert!(value("time_to_first_token_ms") >= 30.0, "{timing}");
    assert!(
        value("time_to_first_byte_ms") <= value("time_to_first_token_ms") - 25.0,
        "{timing}"
    );
    let expected = (value("request_latency_ms") - value("time_to_first_token_ms")) / 47.0;
    assert!(
        (value("inter_token_latency_ms") - expected).abs() < 1e-9,
        "{timing}"
    );
}

#[test]
fn ids_and_tags_of_the_request_are_kept_and_no_content_ever_is() {
    let answer = capture("ngram-summary/chat-nonstream").raw;
    let origin = Origin::answering(vec![answer]);
    let tap = Tap::before(origin.address);
    let secrets = "Authorization: Bearer sk-hidden\r\nCookie: c=hidden-cookie\r\nX-Request-ID: req-7\r\n\
                   traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n";
    let body = r#"{"messages":[{"role":"user","content":"hidden-prompt"}],"user":"hidden-user"}"#;
    tap.exchange(post(
        "/v1/chat/completions?key=hidden-query",
        body,
        &format!("{CLOSE}{secrets}"),
    ));
    let seen = tap.observations(1)[0].clone();
    assert_eq!(seen["x_request_id"], "req-7");
    assert_eq!(seen["trace_id"], "0af7651916cd43dd8448eb211c80319c");
    let everything = format!("{seen}{}", tap.json("/api/v1/snapshot"));
    for hidden in ["hidden", "sk-", "rennt"] {
        assert!(!everything.contains(hidden), "{hidden} in {everything}");
    }
}

#[test]
fn requests_in_flight_are_those_at_the_same_time() {
    // The second request arrives while the first one waits for its answer, the third one alone.
    let second_is_here = std::sync::Arc::new(std::sync::Barrier::new(2));
    let origin = Origin::start(move |number, _, stream| {
        if number < 2 {
            second_is_here.wait();
        }
        stream.write_all(&json_answer("200 OK", "{}")).unwrap();
        Then::KeepAlive
    });
    let tap = Tap::before(origin.address);
    let request = post("/v1/chat/completions", "{}", CLOSE);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| tap.exchange(&request));
        }
    });
    tap.observations(2);
    tap.exchange(&request);
    let seen = tap.observations(3);
    let mut in_flight: Vec<u64> = seen
        .iter()
        .map(|seen| seen["in_flight"].as_u64().unwrap())
        .collect();
    assert_eq!(in_flight.remove(0), 1, "the third one");
    in_flight.sort_unstable();
    assert_eq!(in_flight, [1, 2]);
}

#[test]
fn other_routes_pass_unobserved_and_are_only_counted() {
    let origin = Origin::answering(vec![json_answer("200 OK", "{}")]);
    let tap = Tap::before(origin.address);
    tap.exchange(format!("GET /health HTTP/1.1\r\nHost: a\r\n{CLOSE}\r\n"));
    tap.until_metric("spectap_requests_total{code=\"200\",route=\"other\"}", 1.0);
    assert_eq!(tap.json("/api/v1/requests")["requests"], json!([]));
}

#[test]
fn the_report_shows_what_passed() {
    let origin = Origin::answering(vec![
        capture("ngram-summary/chat-nonstream").raw,
        stream(
            events(&capture("ngram-summary/chat-stream-include-usage-long").body)
                .iter()
                .map(Vec::as_slice),
        ),
        capture("ngram-summary/chat-nonstream-max1").raw,
    ]);
    let tap = Tap::before(origin.address);
    for body in ["{}", r#"{"stream":true}"#, "{}"] {
        tap.exchange(post(CHAT, body, CLOSE));
    }
    tap.observations(3);
    let summary = tap.json("/api/v1/summary?by=model");
    assert_eq!(summary["n"]["recorded"], 2);
    assert_eq!(summary["n"]["zero_step"], 1);
    assert_eq!(summary["record_share"], 1.0);
    assert_eq!(summary["groups"][0]["key"]["model"], "tiny-model");
    let steps: u64 = summary["pooled_spec_decode_acceptance_histogram"]
        .as_object()
        .unwrap()
        .values()
        .map(|n| n.as_u64().unwrap())
        .sum();
    assert_eq!(
        summary["metrics"]["total_spec_decode_steps"]["avg"],
        steps as f64
    );
    assert_eq!(
        tap.metric(
            "spectap_spec_decode_num_drafts_total{backend=\"vllm\",model_name=\"tiny-model\"}"
        ),
        steps as f64
    );
}

/// A fault in the observer is asked for by a word in the stream; only test builds know it.
#[cfg(feature = "fault-injection")]
#[test]
fn a_panic_of_the_observer_never_reaches_the_stream() {
    let content = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"spectap-fault\"},\"finish_reason\":null}]}\n\n";
    let usage =
        b"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}\n\n";
    let done = b"data: [DONE]\n\n";
    let origin = Origin::answering(vec![
        stream([&content[..], usage, done]),
        json_answer("200 OK", "{}"),
    ]);
    let tap = Tap::before(origin.address);
    let got = tap.exchange(post(CHAT, r#"{"stream":true}"#, CLOSE));
    let body = crate::support::client::dechunk(
        &got[memchr::memmem::find(&got, b"\r\n\r\n").unwrap() + 4..],
    );
    assert_eq!(body, [&content[..], done].concat(), "stripped all the same");
    let seen = &tap.observations(1)[0];
    assert_eq!(
        (&seen["acceptance"], &seen["reason"]),
        (&json!("unobserved"), &json!("observer_failed"))
    );
    assert_eq!(
        tap.metric("spectap_unobserved_total{reason=\"observer_failed\"}"),
        1.0
    );
    assert!(
        tap.exchange(post(CHAT, "{}", CLOSE))
            .starts_with(b"HTTP/1.1 200 OK")
    );
}

/// The observer waits for a lock that the test holds: the bytes must be there all the same.
#[cfg(feature = "fault-injection")]
#[test]
fn bytes_are_forwarded_before_they_are_looked_at() {
    let event = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"spectap-stall\"},\"finish_reason\":null}]}\n\n";
    let origin = Origin::answering(vec![stream([&event[..], b"data: [DONE]\n\n"])]);
    let tap = Tap::before(origin.address);
    let held = spectap::tap::fault::STALL.lock().unwrap();
    let mut client = crate::support::client::Client::connect(tap.data);
    let asked = r#"{"stream":true,"stream_options":{"include_usage":true}}"#;
    client.send(post(CHAT, asked, CLOSE));
    // A look before the flush would wait for the lock, and these bytes with it.
    client.read_until(event);
    drop(held);
    assert_eq!(tap.observations(1)[0]["content_chunks"], 1);
}

#[test]
fn a_tag_groups_requests_and_spectaps_own_header_stays_here() {
    let answer = capture("ngram-summary/chat-nonstream").raw;
    let tagged = |header: &str| {
        post(
            CHAT,
            r#"{"metadata":{"team":"blue"}}"#,
            &format!("{CLOSE}{header}"),
        )
    };

    let origin = Origin::answering(vec![answer.clone()]);
    let tap = Tap::before(origin.address);
    tap.exchange(tagged("X-Spectap-Tag: coding\r\nX-Tenant: a\r\n"));
    assert_eq!(tap.observations(1)[0]["tag"], "coding");
    let head = origin.request(0).head.to_lowercase();
    assert!(
        !head.contains("x-spectap-tag") && head.contains("x-tenant: a\r\n"),
        "{head}"
    );
    let summary = tap.json("/api/v1/summary?by=tag");
    assert_eq!(summary["groups"][0]["key"]["tag"], "coding");
    let series = r#"spectap_spec_decode_num_drafts_total{backend="vllm",model_name="tiny-model",tag="coding"}"#;
    assert_eq!(tap.metric(series), 4.0);

    let origin = Origin::answering(vec![answer]);
    let tap = Tap::with(
        origin.address,
        &["--tag-header=x-tenant", "--tag-body=metadata.team"],
    );
    tap.exchange(tagged("X-Tenant: a\r\nX-Spectap-Tag: stays\r\n"));
    tap.exchange(tagged(""));
    let seen = tap.observations(2);
    assert_eq!(
        (&seen[1]["tag"], &seen[0]["tag"]),
        (&json!("a"), &json!("blue"))
    );
    let head = origin.request(0).head;
    assert!(
        head.contains("X-Tenant: a\r\n") && head.contains("X-Spectap-Tag: stays\r\n"),
        "{head}"
    );
}

#[test]
fn the_engines_own_times_stand_beside_ours() {
    let seen = observed(
        "ngram-summary-per-request-metrics/chat-stream-include-usage",
        CHAT,
    );
    assert!(
        seen["engine_metrics"]["queue_time_ms"].as_f64().is_some(),
        "{seen}"
    );
    let body = std::fs::read_to_string(path("samples/llamacpp/chat.json")).unwrap();
    let origin = Origin::answering(vec![json_answer("200 OK", &body)]);
    let tap = Tap::before(origin.address);
    tap.exchange(post(CHAT, "{}", CLOSE));
    let times = tap.observations(1)[0]["engine_metrics"].clone();
    assert!(times["predicted_per_second"].as_f64().is_some(), "{times}");
    assert_eq!(times["draft_n"], Value::Null);
}

#[test]
fn the_last_usage_counts_where_every_event_has_one() {
    let seen = observed("ngram-summary/chat-stream-continuous-usage", CHAT);
    let body = capture("ngram-summary/chat-stream-continuous-usage").body;
    let counts: Vec<u64> = events(&body)
        .iter()
        .filter_map(|event| serde_json::from_slice::<Value>(event.strip_prefix(b"data: ")?).ok())
        .filter_map(|event| event["usage"]["completion_tokens"].as_u64())
        .collect();
    assert!(counts.len() > 3, "{counts:?}");
    assert_eq!(seen["usage"]["completion_tokens"], json!(counts.last()));
    assert_eq!(seen["acceptance"], "recorded");
}

#[test]
fn a_coded_reply_passes_untouched_and_is_observed() {
    let plain = capture("ngram-summary/chat-nonstream").body;
    let mut coder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    coder.write_all(&plain).unwrap();
    let coded = coder.finish().unwrap();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n",
        coded.len()
    );
    let whole = [head.as_bytes(), b"\r\n", &coded].concat();
    let origin = Origin::answering(vec![whole]);
    let tap = Tap::before(origin.address);
    let accept = "Accept-Encoding: gzip;q=0.5, x-odd, identity;q=0\r\n";
    let got = tap.exchange(post(CHAT, "{}", &format!("{accept}{CLOSE}")));
    assert!(origin.request(0).head.contains(accept));
    assert!(got.ends_with(&[b"\r\n\r\n", &coded[..]].concat()));
    let seen = &tap.observations(1)[0];
    assert_eq!(seen["acceptance"], "recorded", "{seen}");
    // One that nobody knows passes too, and is counted.
    let odd = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-encoding: x-odd\r\ncontent-length: 2\r\n\r\n{}";
    let origin = Origin::answering(vec![odd.to_vec()]);
    let tap = Tap::before(origin.address);
    assert!(
        tap.exchange(post(CHAT, "{}", CLOSE))
            .ends_with(b"\r\n\r\n{}")
    );
    tap.until_metric("spectap_unobserved_total{reason=\"encoding\"}", 1.0);
}
