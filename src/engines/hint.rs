//! Which engine a response comes from by members that only it sends, with or without acceptance numbers. A hint: a
//! payload outranks it.

use super::object::{Object, elements};
use crate::record::EngineName;

/// What one object of a response tells of its engine.
pub fn hint(object: &dyn Object) -> Option<EngineName> {
    let choices = object.get("choices");
    let in_choice = |member: &str| {
        let mut choices = elements(choices);
        choices.any(|choice| choice.get(member).is_some())
    };
    if in_choice("matched_stop") || object.get("sglext").is_some() {
        Some(EngineName::Sglang)
    } else if in_choice("avg_decoded_tokens_per_iter") {
        Some(EngineName::TensorrtLlm)
    } else {
        by_timings(object.get("timings")?.as_object()?)
    }
}

/// llama.cpp and mlx-vlm name their times alike; the latter tells more, and less on all but the last event.
fn by_timings(timings: &dyn Object) -> Option<EngineName> {
    let has = |member: &str| timings.get(member).is_some();
    if has("draft_kind") || has("peak_memory") {
        Some(EngineName::MlxVlm)
    } else {
        (has("prompt_n") && has("predicted_n")).then_some(EngineName::LlamaCpp)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

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
