//! Token counts as each route names them.

use crate::engines::{self, Json, Object};
use crate::observation::Usage;

/// A usage object: it is cumulative, the last value of each member holds.
pub(super) fn take_usage(sent: &dyn Object, usage: &mut Usage) {
    let count = |names: &[&str]| {
        names
            .iter()
            .find_map(|name| sent.get(name).and_then(engines::count))
    };
    let detail = |groups: [&str; 2], name: &str| {
        groups
            .iter()
            .find_map(|group| sent.get(group)?.get(name).and_then(engines::count))
    };
    for (field, value) in [
        (
            &mut usage.prompt_tokens,
            count(&["prompt_tokens"]).or_else(|| input_tokens(sent)),
        ),
        (
            &mut usage.completion_tokens,
            count(&["completion_tokens", "output_tokens"]),
        ),
        (
            &mut usage.cached_tokens,
            detail(
                ["prompt_tokens_details", "input_tokens_details"],
                "cached_tokens",
            )
            .or_else(|| count(&["cache_read_input_tokens"])),
        ),
        (
            &mut usage.reasoning_tokens,
            detail(
                ["completion_tokens_details", "output_tokens_details"],
                "reasoning_tokens",
            )
            .or_else(|| count(&["reasoning_tokens"])),
        ),
    ] {
        if value.is_some() {
            *field = value;
        }
    }
}

/// The Responses route has all of the prompt there; the Anthropic route only what neither came from the cache nor went into
/// it, and these two beside it.
fn input_tokens(sent: &dyn Object) -> Option<u64> {
    let count = |name: &str| sent.get(name).and_then(engines::count);
    ["cache_read_input_tokens", "cache_creation_input_tokens"]
        .into_iter()
        .filter_map(count)
        .try_fold(count("input_tokens")?, u64::checked_add)
}

/// What an object tells of its sequence's tokens outside of a usage object: SGLang's `meta_info`, and llama.cpp's
/// `tokens_predicted` and `timings`.
pub(super) fn native_usage(object: &dyn Object) -> Option<Usage> {
    let inner = |name: &str| object.get(name).and_then(Json::as_object);
    let count = |object: &dyn Object, name: &str| object.get(name).and_then(engines::count);
    if let Some(meta_info) = inner("meta_info") {
        return Some(Usage {
            prompt_tokens: count(meta_info, "prompt_tokens"),
            completion_tokens: count(meta_info, "completion_tokens"),
            cached_tokens: count(meta_info, "cached_tokens"),
            reasoning_tokens: count(meta_info, "reasoning_tokens"),
        });
    }
    let timings = inner("timings");
    let of_timings = |name: &str| count(timings?, name);
    let cached_tokens = of_timings("cache_n");
    let completion_tokens =
        count(object, "tokens_predicted").or_else(|| of_timings("predicted_n"))?;
    Some(Usage {
        // `prompt_n` counts what was not in the cache.
        prompt_tokens: count(object, "tokens_evaluated")
            .or_else(|| of_timings("prompt_n")?.checked_add(cached_tokens?)),
        completion_tokens: Some(completion_tokens),
        cached_tokens,
        reasoning_tokens: None,
    })
}
