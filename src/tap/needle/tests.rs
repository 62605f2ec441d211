//! What the byte search promises: it never calls an event content that holds more, or no content at all.

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
