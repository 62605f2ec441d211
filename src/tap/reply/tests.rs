//! What the observer promises: the facts of a response, its content times, and that the byte search loses none of them.

mod routes;
mod wild;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::facts;
use super::*;
use crate::tap::filter::{Filter, Pushed, Restore};
use crate::tap::injection::Added;
use crate::tap::json::Reducer;
use crate::tap::needle::must_parse;

fn at(start: Instant, milliseconds: u64) -> Instant {
    start + Duration::from_millis(milliseconds)
}

fn stream(events: &[Value]) -> Reply {
    let mut observer = ReplyObserver::new_stream();
    for event in events {
        observer.see(format!("data: {event}\n\n").as_bytes(), Instant::now());
    }
    observer.finish()
}

fn body(object: &Value) -> Reply {
    let mut observer = ReplyObserver::new_json();
    observer.see(object.to_string().as_bytes(), Instant::now());
    observer.finish()
}

fn delta(delta: Value) -> Value {
    json!({"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

proptest! {
    #[test]
    fn what_a_filter_found_to_be_content_need_not_be_seen(
        events in proptest::collection::vec(0..6_usize, 1..30),
        cuts in proptest::collection::vec(0..400_usize, 0..30),
    ) {
        let text = |text: &str| format!("data: {}\n\n", delta(json!({"content": text})));
        let kinds = [
            text("a"),
            text("another \"\n"),
            text("\u{0}"),
            ": a comment\n\n".to_owned(),
            "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n".to_owned(),
            "data: {\"choices\":[],\"usage\":{\"completion_tokens\":3}}\n\n".to_owned(),
        ];
        let stream: String = events.iter().map(|kind| kinds[*kind].as_str()).collect();
        let added = Added { usage: true, strip_usage: true, ..Added::default() };
        let mut filter = Filter::new(added, Restore::FromSuccessor, Box::new(|_| {}));
        let (mut seen, mut told) = (ReplyObserver::new_stream(), ReplyObserver::new_stream());
        let start = Instant::now();
        let mut rest = stream.as_bytes();
        // Whole events after the cuts are used up.
        for (number, cut) in cuts.into_iter().chain(std::iter::repeat(kinds[0].len())).enumerate() {
            if rest.is_empty() {
                break;
            }
            let (chunk, behind) = rest.split_at(cut.clamp(1, rest.len()));
            rest = behind;
            let now = at(start, number as u64);
            seen.see(chunk, now);
            let is_told = match filter.push(bytes::Bytes::copy_from_slice(chunk)) {
                Pushed::Content(_, content) => told.see_content(content, now),
                Pushed::Queued => false,
            };
            if !is_told {
                told.see(chunk, now);
            }
            while filter.next().is_some() {}
        }
        prop_assert_eq!(format!("{:?}", seen.finish()), format!("{:?}", told.finish()));
    }
}

#[test]
fn content_times_are_those_of_the_reads() {
    let start = Instant::now();
    let mut observer = ReplyObserver::new_stream();
    let mut see = |milliseconds: u64, text: &str| {
        observer.see(text.as_bytes(), at(start, milliseconds));
    };
    see(5, ": keep-alive\n\n");
    see(
        10,
        "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n",
    );
    see(
        20,
        "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: {\"choi",
    );
    see(30, "ces\":[{\"delta\":{\"content\":\"b\"}}]}\n\n");
    see(
        50,
        "data: {\"choices\":[{\"delta\":{\"content\":\"c\"}}]}\n\n",
    );
    see(
        60,
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
    );
    see(
        70,
        "data: {\"choices\":[],\"usage\":{\"completion_tokens\":3}}\n\ndata: [DONE]\n\n",
    );
    let reply = observer.finish();
    assert_eq!(reply.content_chunks, 3);
    assert_eq!(reply.first_content, Some(at(start, 20)));
    assert_eq!(reply.last_content, Some(at(start, 50)));
    assert_eq!(reply.mean_content_gap(), Some(Duration::from_millis(15)));
    assert_eq!(reply.events, 7);
    assert!(reply.done_seen && reply.usage_event_seen && !reply.first_event_has_usage);
    assert_eq!(reply.finish_reasons, ["stop"]);
}

#[test]
fn a_json_body_has_its_content_when_it_is_whole() {
    let start = Instant::now();
    let mut observer = ReplyObserver::new_json();
    observer.see(br#"{"choices":[{"message":{"content":"a"#, at(start, 10));
    observer.see(br#"b"}}]}"#, at(start, 20));
    let reply = observer.finish();
    assert_eq!(reply.content_chunks, 1);
    assert_eq!(reply.last_content, Some(at(start, 20)));
    assert_eq!(reply.mean_content_gap(), None);
}

#[test]
fn text_reasoning_and_tool_calls_are_content() {
    for (piece, chunks) in [
        (json!({"content": "x"}), 1),
        (json!({"reasoning": "x"}), 1),
        (json!({"content": null, "reasoning_content": "x"}), 1),
        (
            json!({"tool_calls": [{"index": 0, "function": {"arguments": "{"}}]}),
            1,
        ),
        (json!({"function_call": {"name": "f"}}), 1),
        (json!({"role": "assistant"}), 0),
        (json!({"role": "assistant", "content": ""}), 0),
        (
            json!({"tool_calls": [{"id": "call", "type": "function", "function": {"arguments": ""}}]}),
            0,
        ),
        (json!({}), 0),
    ] {
        // First and in the middle: parsed, and looked at by the byte search.
        let reply = stream(&[delta(piece.clone())]);
        assert_eq!(reply.content_chunks, chunks, "{piece}");
        let reply = stream(&[delta(json!({"content": "a"})), delta(piece.clone())]);
        assert_eq!(reply.content_chunks, 1 + chunks, "{piece}");
    }
}

#[test]
fn token_ids_are_content_on_the_generate_route_only() {
    let generate =
        |ids: Value| json!({"request_id": "g", "choices": [{"index": 0, "token_ids": ids}]});
    let reply = stream(&[
        generate(json!([1])),
        generate(json!([2, 3])),
        generate(json!([])),
    ]);
    assert_eq!(reply.content_chunks, 2);
    assert_eq!(reply.response_id.as_deref(), Some("g"));
    let chat = json!({"choices": [{"delta": {"content": ""}, "token_ids": [1]}]});
    assert_eq!(stream(&[chat]).content_chunks, 0);
}

#[test]
fn usage_counts_are_read_and_the_last_wins() {
    let usage = |tokens: Value| {
        json!({"choices": [], "usage": {"prompt_tokens": 9.0, "completion_tokens": tokens,
        "prompt_tokens_details": {"cached_tokens": 4}, "completion_tokens_details": {"reasoning_tokens": 2}}})
    };
    let reply = stream(&[usage(json!(3)), usage(json!(7))]);
    assert!(reply.usage_seen && reply.usage_event_seen && reply.first_event_has_usage);
    assert_eq!(
        reply.usage,
        Usage {
            prompt_tokens: Some(9),
            completion_tokens: Some(7),
            cached_tokens: Some(4),
            reasoning_tokens: Some(2),
        }
    );
    let reply = body(&json!({"usage": {"prompt_tokens": "9", "completion_tokens": -1}}));
    assert!(reply.usage_seen);
    assert_eq!(reply.usage, Usage::default());
}

#[test]
fn usage_beside_choices_is_no_usage_event() {
    let mut event = delta(json!({"content": "x"}));
    event["usage"] = json!({"completion_tokens": 1});
    let reply = stream(&[delta(json!({"content": "x"})), event]);
    assert!(reply.usage_seen && !reply.usage_event_seen && !reply.first_event_has_usage);
    let reply = stream(&[json!("x"), json!({"usage": {"completion_tokens": 1}})]);
    assert!(reply.usage_event_seen && reply.first_event_has_usage);
    assert_eq!(reply.unreadable_events, 1);
}

#[test]
fn finish_reasons_stand_in_the_order_of_the_choices() {
    let finish = |index: u32, reason: &str, stop: Value| json!({"choices": [{"index": index, "text": "", "finish_reason": reason, "stop_reason": stop}]});
    let reply = stream(&[
        finish(1, "length", json!(null)),
        finish(0, "stop", json!(7)),
    ]);
    assert_eq!(reply.finish_reasons, ["stop", "length"]);
    assert!(!reply.stop_reason_is_string);
    let reply = stream(&[finish(0, "stop", json!("END"))]);
    assert!(reply.stop_reason_is_string);
}

#[test]
fn error_events_are_seen_in_every_shape() {
    let started = delta(json!({"content": "x"}));
    for error in [
        json!({"error": {"message": "m"}}),
        json!({"error": "m"}),
        json!({"object": "error", "message": "m"}),
        json!({"type": "error", "error": {"type": "overloaded_error"}}),
        json!({"type": "response.failed", "response": {"error": {"code": "c"}}}),
    ] {
        let reply = stream(&[started.clone(), error.clone()]);
        assert!(reply.error_event, "{error}");
        assert_eq!(reply.content_chunks, 1, "{error}");
    }
    let mut fine = started.clone();
    fine["error"] = json!(null);
    assert!(!stream(&[started, fine]).error_event);
}

#[test]
fn the_last_fingerprint_that_is_not_null_is_kept() {
    let reply = stream(&[
        json!({"system_fingerprint": "a", "model": "m"}),
        json!({"system_fingerprint": "b"}),
        json!({"system_fingerprint": null, "model": null}),
    ]);
    assert_eq!(reply.system_fingerprint.as_deref(), Some("b"));
    assert_eq!(reply.model.as_deref(), Some("m"));
}

#[test]
fn names_are_cut() {
    let reply = body(&json!({"model": "ä".repeat(500)}));
    assert_eq!(reply.model.map(|name| name.len()), Some(128));
}

#[test]
fn the_engines_timing_members_are_kept() {
    let reply = body(
        &json!({"metrics": {"queue_time_ms": 0.25, "mean_itl_ms": null, "x": "1",
        "speculative_decoding": {"y": 1}}}),
    );
    assert_eq!(
        reply.engine_metrics,
        [("queue_time_ms".to_owned(), 0.25)].into()
    );
}

/// Events as engines may write them, with white space and odd values anywhere.
fn event() -> impl Strategy<Value = String> {
    let text = prop_oneof![
        Just("null".to_owned()),
        Just("\"\"".to_owned()),
        Just("\"um\"".to_owned()),
        Just("\" \"".to_owned()),
        Just(r#""\"usage\": {""#.to_owned()),
        Just("[]".to_owned()),
        Just(r#"[{"type":"text","text":"a"}]"#.to_owned()),
        Just("7".to_owned()),
    ];
    let other = proptest::sample::select(vec![
        "null",
        "{}",
        "[]",
        "{\"x\":1}",
        "[1]",
        "\"stop\"",
        "\"\"",
        "true",
        "0",
    ]);
    let message = proptest::collection::vec(
        (
            proptest::sample::select(vec![
                "role",
                "content",
                "reasoning",
                "reasoning_content",
                "tool_calls",
            ]),
            text.clone(),
        ),
        0..4,
    );
    let choice = (
        proptest::option::of(message),
        proptest::collection::vec((proptest::sample::select(vec!["text"]), text), 1..2),
        proptest::collection::vec(
            (
                proptest::sample::select(vec![
                    "finish_reason",
                    "token_ids",
                    "logprobs",
                    "speculative_decoding",
                    "speculative_decoding_stats",
                ]),
                other.clone(),
            ),
            0..4,
        ),
    );
    let root = proptest::collection::vec(
        (
            proptest::sample::select(vec![
                "usage",
                "metrics",
                "error",
                "object",
                "type",
                "\\u0075sage",
                "sglext",
                "timings",
                "meta_info",
                "stats",
                "generation_metadata",
                "stop_reason",
                "status",
                "stop_type",
            ]),
            other,
        ),
        0..3,
    );
    let space = proptest::sample::select(vec!["", " ", "\n\t"]);
    (
        proptest::option::of(proptest::collection::vec(choice, 0..3)),
        root,
        space,
    )
        .prop_map(|(choices, root, space)| {
            let object = |members: Vec<(String, String)>| {
                let mut names = std::collections::BTreeSet::new();
                let members: Vec<_> = members
                    .into_iter()
                    .filter(|(name, _)| names.insert(name.clone()))
                    .map(|(name, value)| format!("{space}\"{name}\"{space}:{space}{value}{space}"))
                    .collect();
                format!("{{{space}{}}}", members.join(","))
            };
            let owned = |(name, value): (&str, String)| (name.to_owned(), value);
            let choices = choices.map(|choices| {
                let choices: Vec<_> = choices
                    .into_iter()
                    .map(|(message, texts, others)| {
                        let message =
                            message.map(|members| object(members.into_iter().map(owned).collect()));
                        let mut members: Vec<_> = message
                            .map(|m| ("delta".to_owned(), m))
                            .into_iter()
                            .collect();
                        if members.is_empty() {
                            members.extend(texts.into_iter().map(owned));
                        }
                        members.extend(
                            others
                                .into_iter()
                                .map(|(name, value)| (name.to_owned(), value.to_owned())),
                        );
                        object(members)
                    })
                    .collect();
                (
                    "choices".to_owned(),
                    format!("[{space}{}]", choices.join(",")),
                )
            });
            let root = root
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value.to_owned()));
            object(choices.into_iter().chain(root).collect())
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5000, ..ProptestConfig::default() })]

    #[test]
    fn what_the_byte_search_calls_content_is_content_and_nothing_else(event in event()) {
        if must_parse(event.as_bytes()) {
            return Ok(());
        }
        let mut reducer = Reducer::new();
        reducer.feed(event.as_bytes());
        let Ok(Value::Object(object)) = reducer.finish() else {
            return Err(TestCaseError::fail(event));
        };
        let mut reply = Reply::default();
        let mut sequences = Sequences::default();
        prop_assert!(facts::take(&object, None, &mut reply, &mut sequences), "{}", event);
        prop_assert!(!reply.usage_seen && reply.payloads.is_empty() && !facts::is_error(&object), "{}", event);
        prop_assert!(sequences.into_finish_reasons().is_empty() && reply.engine_metrics.is_empty(), "{}", event);
    }
}
