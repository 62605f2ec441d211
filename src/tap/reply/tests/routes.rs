//! Names, token counts, finish reasons and content of each route, in its own naming.

use serde_json::{Value, json};

use super::*;

#[test]
fn other_routes_give_model_usage_and_content() {
    let reply = stream(&[
        json!({"type": "message_start", "message": {"id": "i", "model": "m", "usage": {"input_tokens": 22, "output_tokens": 0}}}),
        json!({"type": "content_block_start", "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "delta": {"type": "text_delta", "text": "a"}}),
        json!({"type": "content_block_delta", "delta": {"type": "input_json_delta", "partial_json": "{"}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 48}}),
        json!({"type": "message_stop"}),
    ]);
    assert_eq!(reply.content_chunks, 2);
    assert_eq!(reply.model.as_deref(), Some("m"));
    assert_eq!(reply.usage.prompt_tokens, Some(22));
    assert_eq!(reply.usage.completion_tokens, Some(48));
    let reply = stream(&[
        json!({"type": "response.output_text.delta", "delta": "a"}),
        json!({"type": "response.output_text.delta", "delta": "b"}),
        json!({"type": "response.output_text.done", "text": "ab"}),
        json!({"type": "response.content_part.done", "part": {"text": "ab"}}),
        json!({"type": "response.completed", "response": {"id": "r", "usage": {"input_tokens": 1, "output_tokens": 2,
            "output_tokens_details": {"reasoning_tokens": 1}}, "metrics": {"speculative_decoding": {"x": 1}}}}),
    ]);
    assert_eq!(reply.content_chunks, 2);
    assert_eq!(reply.response_id.as_deref(), Some("r"));
    assert_eq!(reply.usage.completion_tokens, Some(2));
    assert_eq!(reply.usage.reasoning_tokens, Some(1));
    assert_eq!(reply.payloads.len(), 1);
    for whole in [
        json!({"type": "message", "content": [{"type": "text", "text": "a"}]}),
        json!({"object": "response", "output": [{"type": "message", "content": [{"type": "output_text", "text": "a"}]}]}),
        json!({"content": "a", "stop": true}),
    ] {
        assert_eq!(body(&whole).content_chunks, 1, "{whole}");
    }
}

#[test]
fn finish_reasons_are_read_in_each_routes_naming() {
    let reasons = |events: &[Value]| stream(events).finish_reasons;
    assert_eq!(
        reasons(&[
            json!({"type": "message_start", "message": {"stop_reason": null}}),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}),
            json!({"type": "message_stop"}),
        ]),
        ["end_turn"]
    );
    let response = |kind: &str, status: &str, incomplete: Value| json!({"type": kind, "response": {"status": status, "incomplete_details": incomplete}});
    let created = response("response.created", "in_progress", json!(null));
    assert_eq!(reasons(std::slice::from_ref(&created)), [""; 0]);
    assert_eq!(
        reasons(&[
            created.clone(),
            response("response.completed", "completed", json!(null))
        ]),
        ["completed"]
    );
    let reason = json!({"reason": "max_output_tokens"});
    assert_eq!(
        reasons(&[
            created,
            response("response.incomplete", "incomplete", reason)
        ]),
        ["max_output_tokens"]
    );
    let native = |index: u32, finish: Value| json!({"text": "a", "index": index, "meta_info": {"finish_reason": finish}});
    assert_eq!(
        reasons(&[
            native(1, json!(null)),
            native(1, json!({"type": "length", "length": 4})),
            native(0, json!("stop")),
        ]),
        ["stop", "length"]
    );
    assert_eq!(
        reasons(&[
            json!({"content": "a", "stop": false}),
            json!({"content": "", "stop": true, "stop_type": "limit"}),
        ]),
        ["limit"]
    );
    for (whole, reason) in [
        (
            json!({"type": "message", "stop_reason": "tool_use"}),
            "tool_use",
        ),
        (json!({"object": "response", "status": "failed"}), "failed"),
        (json!({"content": "a", "stop_type": "eos"}), "eos"),
    ] {
        assert_eq!(body(&whole).finish_reasons, [reason], "{whole}");
    }
    assert_eq!(
        body(&json!({"status": "ok", "choices": []})).finish_reasons,
        [""; 0]
    );
}

#[test]
fn usage_is_read_in_each_routes_naming() {
    let usage = |prompt, completion, cached, reasoning| Usage {
        prompt_tokens: prompt,
        completion_tokens: completion,
        cached_tokens: cached,
        reasoning_tokens: reasoning,
    };
    for (whole, expected) in [
        (
            json!({"type": "message", "usage": {"input_tokens": 6, "output_tokens": 4,
                "cache_creation_input_tokens": 0, "cache_read_input_tokens": 16}}),
            usage(Some(22), Some(4), Some(16), None),
        ),
        (
            json!({"usage": {"prompt_tokens": 9, "completion_tokens": 7, "reasoning_tokens": 2}}),
            usage(Some(9), Some(7), None, Some(2)),
        ),
        (
            json!({"text": "a", "meta_info": {"prompt_tokens": 9, "completion_tokens": 7, "cached_tokens": 3}}),
            usage(Some(9), Some(7), Some(3), None),
        ),
        (
            json!({"content": "a", "tokens_predicted": 7, "tokens_evaluated": 9, "timings": {"cache_n": 2, "prompt_n": 7}}),
            usage(Some(9), Some(7), Some(2), None),
        ),
        (
            json!({"choices": [], "timings": {"cache_n": 2, "prompt_n": 7, "predicted_n": 5}}),
            usage(Some(9), Some(5), Some(2), None),
        ),
    ] {
        assert_eq!(body(&whole).usage, expected, "{whole}");
    }
    let mut observer = ReplyObserver::new_json();
    let item = |prompt: u32, completion: u32| json!({"text": "a", "meta_info": {"prompt_tokens": prompt, "completion_tokens": completion}});
    observer.see(
        json!([item(3, 5), item(4, 6)]).to_string().as_bytes(),
        Instant::now(),
    );
    assert_eq!(
        observer.finish().usage,
        usage(Some(7), Some(11), None, None)
    );
    // A usage object speaks for the response, whatever its parts tell.
    let reply = stream(&[
        json!({"choices": [{"index": 0, "delta": {}}], "timings": {"predicted_n": 5}}),
        json!({"choices": [], "usage": {"completion_tokens": 6}, "timings": {"predicted_n": 7}}),
    ]);
    assert_eq!(reply.usage, usage(None, Some(6), None, None));
    let reply = stream(&[
        json!({"choices": [{"index": 0, "delta": {}}], "timings": {"predicted_n": 1}}),
        json!({"choices": [{"index": 0, "delta": {}}], "timings": {"predicted_n": 5}}),
    ]);
    assert!(!reply.usage_seen);
    assert_eq!(reply.usage, usage(None, Some(5), None, None));
}
