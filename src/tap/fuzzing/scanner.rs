//! The reducer of JSON texts, against a parser that has the whole text at once.

use serde_json::Value;

use super::{Input, reference};
use crate::tap::json::{LARGEST_COPY, Reducer, Unreadable};

/// What a reducer may hold beside its copy: a member's name and its stack.
const BESIDE_THE_COPY: usize = 2048;

/// A run of this many bytes is more than any copy may grow to.
const ENDLESS: usize = 2 * LARGEST_COPY;

/// Reduces a text. Promises: how it is cut changes nothing; it holds no more than its bound, even if the text goes on
/// for ever; of a text that is JSON it gives the kept members as a parser reads them.
///
/// `how` and `cuts` 255: the second half of the text is repeated without end.
pub fn scanner(data: &[u8]) {
    let Some(input) = Input::read(data) else {
        return;
    };
    if input.how & input.cuts == u8::MAX {
        endless(input.text);
        return;
    }
    let whole = reduce(&[input.text]);
    for pieces in input.chunkings() {
        assert_eq!(reduce(&pieces), whole, "cut otherwise");
    }
    if let Ok(parsed) = serde_json::from_slice::<Value>(input.text)
        && reference::is_kept_whole(input.text, &parsed)
    {
        match &whole {
            Ok(reduced) => check(reduced, &parsed),
            Err(why) => panic!("JSON, but {why}"),
        }
    }
}

fn reduce(pieces: &[&[u8]]) -> Result<Value, Unreadable> {
    let mut reducer = Reducer::new();
    for piece in pieces {
        reducer.feed(piece);
        assert!(reducer.held() <= LARGEST_COPY + BESIDE_THE_COPY);
    }
    reducer.finish()
}

fn endless(text: &[u8]) {
    let (beginning, repeated) = text.split_at(text.len() / 2);
    if repeated.is_empty() {
        return;
    }
    let piece = repeated.repeat(1 + (64 << 10) / repeated.len());
    let mut reducer = Reducer::new();
    reducer.feed(beginning);
    for _ in 0..ENDLESS / piece.len() {
        reducer.feed(&piece);
        assert!(reducer.held() <= LARGEST_COPY + BESIDE_THE_COPY);
    }
}

fn check(reduced: &Value, parsed: &Value) {
    match parsed {
        Value::Object(_) => check_object(reduced, parsed),
        Value::Array(items) => {
            let positions = reduced.as_array().map_or(0, Vec::len);
            assert_eq!(positions, items.len(), "positions of a list");
            for (position, item) in items.iter().enumerate() {
                if item.is_object() {
                    check_object(&reduced[position], item);
                } else {
                    assert!(reduced[position].is_null());
                }
            }
        }
        _ => assert!(reduced.is_null(), "neither object nor list"),
    }
}

fn check_object(reduced: &Value, parsed: &Value) {
    for kept in ["usage", "metrics", "timings"] {
        assert_eq!(reduced.get(kept), parsed.get(kept), "{kept}");
    }
    let is_scalar = |value: &&Value| !value.is_object() && !value.is_array();
    for kept in ["id", "request_id", "index", "model", "object", "type"] {
        assert_eq!(
            reduced.get(kept),
            parsed.get(kept).filter(is_scalar),
            "{kept}"
        );
    }
    for (outer, inner) in [
        ("sglext", "spec_tokens_details"),
        ("meta_info", "spec_verify_ct"),
        ("stats", "total_draft_tokens_count"),
        ("response", "usage"),
        ("message", "usage"),
    ] {
        let kept = |value: &Value| value.get(outer)?.as_object()?.get(inner).cloned();
        assert_eq!(kept(reduced), kept(parsed), "{outer}.{inner}");
    }
    let choices = |value: &Value| value.get("choices").and_then(Value::as_array).cloned();
    let (found, expected) = (choices(reduced), choices(parsed));
    assert_eq!(
        found.as_ref().map(Vec::len),
        expected.as_ref().map(Vec::len)
    );
    for (found, expected) in found.iter().flatten().zip(expected.iter().flatten()) {
        check_choice(found, expected);
    }
}

fn check_choice(reduced: &Value, parsed: &Value) {
    let is_scalar = |value: &&Value| !value.is_object() && !value.is_array();
    for kept in ["index", "finish_reason", "stop_reason"] {
        assert_eq!(
            reduced.get(kept),
            parsed.get(kept).filter(is_scalar),
            "{kept}"
        );
    }
    for kept in ["speculative_decoding", "speculative_decoding_stats"] {
        assert_eq!(reduced.get(kept), parsed.get(kept), "{kept}");
    }
    if let Some(Value::String(text)) = parsed.get("text") {
        assert_eq!(reduced["text"].is_string(), !text.is_empty(), "text");
    }
    for message in ["message", "delta"] {
        if let Some(Value::String(text)) = parsed.get(message).and_then(|it| it.get("content")) {
            let found = &reduced[message]["content"];
            assert_eq!(found.is_string(), !text.is_empty(), "content");
        }
    }
}
