//! What llama.cpp tells of itself: its model, its settings, and its metrics.

use serde_json::json;

use super::SLOTS;
use crate::simulate::counters::ModelCounters;
use crate::simulate::settings::{Model, Settings};
use crate::simulate::state::State;

/// `/v1/models`, in both forms that clients know.
pub(super) fn models(settings: &Settings) -> String {
    let now = State::seconds();
    let named = |model: &Model| {
        json!({"name": model.name, "model": model.name, "modified_at": "", "size": "", "digest": "", "type": "model",
            "description": "", "tags": [""], "capabilities": ["completion"], "parameters": "",
            "details": {"parent_model": "", "format": "gguf", "family": "", "families": [""],
                "parameter_size": "", "quantization_level": ""}})
    };
    let card = |model: &Model| {
        json!({"id": model.name, "aliases": [model.name], "tags": [], "object": "model",
            "architecture": {"input_modalities": ["text"], "output_modalities": ["text"]}, "created": now,
            "owned_by": "llamacpp", "meta": {"vocab_type": 1, "n_vocab": 333, "n_ctx": settings.max_model_len,
                "n_ctx_train": settings.max_model_len, "n_embd": 64, "n_params": 124_864, "size": 499_456,
                "ftype": "(guessed) all F32"}})
    };
    let models: Vec<_> = settings.models.iter().map(named).collect();
    let cards: Vec<_> = settings.models.iter().map(card).collect();
    json!({"models": models, "object": "list", "data": cards}).to_string()
}

/// `/props`. The server's own default says that nothing is drafted, whatever is.
pub(super) fn props(settings: &Settings) -> String {
    let model = settings.models.first();
    json!({"default_generation_settings": {"params": {"max_tokens": -1, "n_predict": -1, "stream": false,
            "speculative.types": "none", "timings_per_token": false}, "n_ctx": settings.max_model_len},
        "total_slots": SLOTS, "model_alias": model.map(|model| &model.name), "model_ftype": "(guessed) all F32",
        "model_path": model.map(|model| &model.root),
        "modalities": {"vision": false, "video": false, "audio": false},
        "endpoint_slots": true, "endpoint_props": false, "endpoint_metrics": true,
        "bos_token": "<s>", "eos_token": "</s>", "build_info": settings.fingerprint, "is_sleeping": false})
    .to_string()
}

/// `/metrics`, what of it the simulation counts. There are no labels but the position: a server has one model.
pub(super) fn metrics(state: &State) -> String {
    let mut all = ModelCounters::default();
    for model in &state.settings.models {
        all.add(&state.counters.of(&model.name));
    }
    let mut page = String::new();
    let mut family = |name: &str, kind: &str, help: &str, value: u64| {
        page.push_str(&format!(
            "# HELP llamacpp:{name} {help}\n# TYPE llamacpp:{name} {kind}\nllamacpp:{name} {}\n",
            general(value)
        ));
    };
    family(
        "prompt_tokens_total",
        "counter",
        "Number of prompt tokens processed, excluding cached tokens",
        all.prompt_tokens,
    );
    family(
        "prompt_tokens_cached_total",
        "counter",
        "Number of prompt tokens reused from the cache",
        0,
    );
    family(
        "tokens_predicted_total",
        "counter",
        "Number of generation tokens processed",
        all.generation_tokens,
    );
    family(
        "spec_decode_num_draft_tokens_total",
        "counter",
        "Speculative: Total draft tokens generated",
        all.drafted,
    );
    family(
        "spec_decode_num_accepted_tokens_total",
        "counter",
        "Speculative: Total draft tokens accepted by the target model",
        all.accepted,
    );
    family(
        "spec_decode_num_drafts_total",
        "counter",
        "Speculative: Total speculative decoding verification steps",
        all.steps,
    );
    family(
        "requests_processing",
        "gauge",
        "Number of requests processing",
        all.running,
    );
    family(
        "requests_deferred",
        "gauge",
        "Number of requests deferred",
        0,
    );
    if all.steps > 0 {
        let name = "spec_decode_num_accepted_tokens_per_pos_total";
        page.push_str(&format!(
            "# HELP llamacpp:{name} Accepted tokens per draft position\n# TYPE llamacpp:{name} counter\n"
        ));
        let most = all.drafted_at.len();
        for position in 0..most {
            let count = all.accepted_at.get(position).copied().unwrap_or_default();
            page.push_str(&format!(
                "llamacpp:{name}{{position=\"{position}\"}} {count}\n"
            ));
        }
    }
    page
}

/// A number as a C++ stream writes it: six significant digits, so that a large counter is rounded.
fn general(value: u64) -> String {
    if value < 1_000_000 {
        return value.to_string();
    }
    let text = format!("{:.5e}", value as f64);
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    format!("{digits}e+{exponent:0>2}")
}

#[cfg(test)]
mod tests {
    use super::general;

    #[test]
    fn numbers_have_six_digits() {
        let cases = [
            (0, "0"),
            (999_999, "999999"),
            (1_000_000, "1e+06"),
            (1_234_567, "1.23457e+06"),
            (12_000_000_000, "1.2e+10"),
        ];
        for (number, text) in cases {
            assert_eq!(general(number), text);
        }
    }
}
