//! What the byte search promises: it never calls an event content that holds more, or no content at all.

use proptest::prelude::*;

use super::*;

fn chat(delta: &str) -> String {
    format!(
        r#"{{"id":"c","choices":[{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":null,"token_ids":null}}],"usage":null}}"#
    )
}

#[test]
fn a_piece_of_text_is_content() {
    for content in [
        chat(r#"{"content":"um"}"#),
        chat(r#"{"content":" "}"#),
        chat(r#"{"role":null,"content":"um","reasoning_content":null,"tool_calls":null}"#),
        chat(r#"{"reasoning":"um"}"#),
        chat(r#"{"reasoning_content" : "um"}"#),
        r#"{"id":"c","choices":[{"index":0,"text":"um","finish_reason":null}]}"#.to_owned(),
        r#"{"request_id":"g","usage":null,"choices":[{"finish_reason":null,"token_ids":[472]}]}"#
            .to_owned(),
        r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"um"}}"#.to_owned(),
    ] {
        assert!(!must_parse(content.as_bytes()), "{content}");
    }
}

#[test]
fn text_that_imitates_a_payload_is_content() {
    let text =
        r#"{"content":"\"usage\": {\"finish_reason\": \"stop\"} speculative_decoding error"}"#;
    assert!(!must_parse(chat(text).as_bytes()));
}

#[test]
fn what_facts_need_is_parsed() {
    for parsed in [
        r#"{"choices":[{"delta":{"content":"um"}}],"usage":{"completion_tokens":3}}"#,
        "{\"choices\":[{\"delta\":{\"content\":\"um\"}}],\"usage\"\n :\t\r\n {}}",
        r#"{"choices":[{"delta":{"content":"um"},"finish_reason":"stop"}]}"#,
        r#"{"choices":[{"delta":{"content":"um"},"finish_reason" : "stop"}]}"#,
        r#"{"error":{"message":"m"},"choices":[{"delta":{"content":"um"}}]}"#,
        r#"{"object":"error","choices":[{"delta":{"content":"um"}}]}"#,
        r#"{"choices":[{"delta":{"content":"um"},"speculative_decoding":{"x":1}}]}"#,
        r#"{"choices":[{"delta":{"content":"um"}}],"metrics":{"queue_time_ms":1}}"#,
        r#"{"choices":[{"delta":{"content":"um"}}],"sglext":{}}"#,
        r#"{"choices":[{"delta":{"content":"um"}}],"timings":{"draft_n":3}}"#,
        r#"{"choices":[{"delta":{"content":"um"}}],"meta_info":{"spec_verify_ct":3}}"#,
        r#"{"choices":[{"delta":{"content":"um"},"speculative_decoding_stats":{"x":1}}]}"#,
        r#"{"choices":[{"delta":{"content":"um"}}],"generation_metadata":{"mtp_drafts":3}}"#,
        r#"{"choices":[{"delta":{"content":"um"}}],"stats":{"total_draft_tokens_count":3}}"#,
        r#"{"choices":[{"delta":{"content":"um"}}],"\u0075sage":{"completion_tokens":3}}"#,
    ] {
        assert!(must_parse(parsed.as_bytes()), "{parsed}");
    }
}

#[test]
fn what_may_hold_no_content_is_parsed() {
    for parsed in [
        chat("{}"),
        chat("{ }"),
        chat(r#"{"role":"assistant"}"#),
        chat(r#"{"role":"assistant","content":""}"#),
        chat(r#"{"content":""}"#),
        chat(r#"{"content" : ""}"#),
        chat(r#"{"content":null}"#),
        chat(r#"{"content":null,"tool_calls":[{"index":0}]}"#),
        chat(r#"{"reasoning_content":null}"#),
        chat(r#"{"tool_calls":[{"function":{"arguments":""}}]}"#),
        r#"{"choices":[{"index":0,"text":"","finish_reason":null}]}"#.to_owned(),
        r#"{"choices":[{"token_ids":[ ]}]}"#.to_owned(),
        r#"{"choices":[{"token_ids":[null]}]}"#.to_owned(),
        r#"{"choices":[{"delta":{"refusal":null},"token_ids":[4]}]}"#.to_owned(),
        r#"{"choices":[ ],"text":"x"}"#.to_owned(),
        r#"{"id":"c","note":"text"}"#.to_owned(),
        r#"{"type":"ping","text":"x"}"#.to_owned(),
        r#"{"type":"response.output_text.done","text":"um","choices":[1]}"#.to_owned(),
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#.to_owned(),
        "hello".to_owned(),
        String::new(),
    ] {
        assert!(must_parse(parsed.as_bytes()), "{parsed}");
    }
}

/// Texts as they stand in an event: of letters, of names that the search knows, of escapes.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-z ]{1,4}",
        1 => Just("ü世".to_owned()),
        1 => proptest::sample::select(vec![
            "usage", "error", "sglext", "response.", "response", "text", "content_block_delta", "metrics", "draft_n",
            "\\n", "\\t", "\\\\", "\\\"", "\\u00e4", "\\u4e16", "\\/", ":", "{", "}", "[", "]", ",", "null", "\"",
        ])
        .prop_map(str::to_owned),
    ];
    proptest::collection::vec(piece, 0..4).prop_map(|pieces| pieces.concat())
}

/// Events that differ in little: in a text, a list of numbers, an index, or what stands behind.
fn event() -> impl Strategy<Value = String> {
    let numbers = prop_oneof!["[0-9]{1,3}(, ?[0-9]{1,3}){0,2}", "[0-9, \\]\"]{0,4}"];
    let rest = proptest::sample::select(vec![
        r#""finish_reason":null"#,
        r#""finish_reason":"stop""#,
        r#""sglext":{}"#,
        r#""text":"b""#,
    ]);
    (0..9u8, text(), numbers, 0..2u8, rest).prop_map(|(shape, text, numbers, index, rest)| {
        let choice = |inner: String| {
            format!(r#"{{"id":"c","choices":[{{"index":{index},{inner},{rest}}}],"usage":null}}"#)
        };
        match shape {
            0..3 => choice(format!(r#""delta":{{"content":"{text}"}}"#)),
            3 => choice(format!(
                r#""delta" : {{"reasoning" : "{text}","content":null}}"#
            )),
            4 => choice(format!(r#""text":"{text}""#)),
            5 => choice(format!(r#""token_ids":[{numbers}]"#)),
            6 => choice(format!(r#""text":"{text}","token_ids":[{numbers}]"#)),
            7 => format!(r#"{{"type":"content_block_delta","delta":{{"text":"{text}"}}}}"#),
            _ => text,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn what_a_stream_remembers_changes_no_answer(
        events in proptest::collection::vec(event(), 1..24)
    ) {
        let mut needle = Needle::default();
        for event in &events {
            prop_assert_eq!(needle.must_parse(event.as_bytes()), must_parse(event.as_bytes()), "{} in {:?}", event, &events);
        }
    }
}

#[test]
fn events_that_differ_in_their_text_are_known_again() {
    let events = |index: u32, texts: &[&str]| -> Vec<String> {
        let event = |text: &&str| {
            format!(r#"{{"choices":[{{"index":{index},"delta":{{"content":"{text}"}}}}]}}"#)
        };
        texts.iter().map(event).collect()
    };
    let mut needle = Needle::default();
    let texts = [
        "um",
        " rennt",
        "\\n\\n",
        "世界",
        "a: b, {c}",
        "\\ttext",
        "\\\"usage\\\"",
        "\\u4e16",
    ];
    for (first, second) in events(0, &texts).iter().zip(&events(1, &texts)) {
        assert!(!needle.must_parse(first.as_bytes()));
        assert!(!needle.must_parse(second.as_bytes()));
    }
    assert_eq!(needle.templates.len(), 2, "one of each sequence");
    for text in [
        "usage",
        "response.",
        "\\\"usage",
        "\\u00e4",
        "\\\\u00e4",
        "sglext",
    ] {
        let [event] = &events(0, &[text])[..] else {
            unreachable!()
        };
        let fits = |template: &Template| template.fits(event.as_bytes());
        assert!(!needle.templates.iter().any(fits), "{text}");
    }
}
