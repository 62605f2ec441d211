//! Which engine a response comes from by members that only it sends, with or without acceptance numbers. A hint: a
//! payload outranks it.

use serde_json::{Map, Value};

use crate::record::EngineName;

/// What one object of a response tells of its engine.
pub fn hint(object: &Map<String, Value>) -> Option<EngineName> {
    let choices = object.get("choices").and_then(Value::as_array);
    let in_choice = |member: &str| {
        let has = |choice: &Value| choice.get(member).is_some();
        choices.into_iter().flatten().any(has)
    };
    if in_choice("matched_stop") || object.contains_key("sglext") {
        Some(EngineName::Sglang)
    } else if in_choice("avg_decoded_tokens_per_iter") {
        Some(EngineName::TensorrtLlm)
    } else {
        by_timings(object.get("timings")?.as_object()?)
    }
}

/// llama.cpp and mlx-vlm name their times alike; the latter tells more, and less on all but the last event.
fn by_timings(timings: &Map<String, Value>) -> Option<EngineName> {
    let has = |member: &str| timings.contains_key(member);
    if has("draft_kind") || has("peak_memory") {
        Some(EngineName::MlxVlm)
    } else {
        (has("prompt_n") && has("predicted_n")).then_some(EngineName::LlamaCpp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<EngineName> {
        hint(
            serde_json::from_str::<Value>(text)
                .unwrap()
                .as_object()
                .unwrap(),
        )
    }

    #[test]
    fn members_of_one_engine_tell_it() {
        let cases = [
            (
                r#"{"choices":[{"matched_stop":null}]}"#,
                Some(EngineName::Sglang),
            ),
            (
                r#"{"choices":[{"avg_decoded_tokens_per_iter":1.9}]}"#,
                Some(EngineName::TensorrtLlm),
            ),
            (
                r#"{"choices":[],"timings":{"prompt_n":1,"predicted_n":2}}"#,
                Some(EngineName::LlamaCpp),
            ),
            (
                r#"{"timings":{"prompt_n":1,"predicted_n":2,"draft_kind":null}}"#,
                Some(EngineName::MlxVlm),
            ),
            (
                r#"{"choices":[{}],"timings":{"predicted_per_second":92.0}}"#,
                None,
            ),
            (r#"{"choices":[{"index":0,"finish_reason":"stop"}]}"#, None),
        ];
        for (text, expected) in cases {
            assert_eq!(of(text), expected, "{text}");
        }
    }
}
