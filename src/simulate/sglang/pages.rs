//! What SGLang tells of itself: its models, its settings, and the metrics that tell of speculation.

use serde_json::{Value, json};

use crate::simulate::counters::{Finished, ModelCounters};
use crate::simulate::settings::{Model, Settings};
use crate::simulate::state::State;

/// `/v1/models`.
pub(super) fn models(settings: &Settings) -> String {
    let now = State::seconds();
    let card = |model: &Model| {
        json!({"id": model.name, "object": "model", "created": now, "owned_by": "sglang", "root": model.root,
            "parent": null, "max_model_len": settings.max_model_len})
    };
    let data: Vec<_> = settings.models.iter().map(card).collect();
    json!({"object": "list", "data": data}).to_string()
}

/// `/model_info`.
pub(super) fn model_info(settings: &Settings) -> String {
    let model = settings.models.first();
    json!({"model_path": model.map(|model| &model.root), "served_model_name": model.map(|model| &model.name),
        "tokenizer_path": model.map(|model| &model.root), "is_generation": true,
        "preferred_sampling_params": null, "weight_version": "default", "load_format": "auto",
        "reasoning_parser": null, "tool_call_parser": null, "disaggregation_mode": "null",
        "has_image_understanding": false, "has_audio_understanding": false})
    .to_string()
}

/// `/server_info`, what of it tells of speculation.
pub(super) fn server_info(state: &State) -> String {
    let model = state.settings.models.first();
    let k = model.map_or(0, |model| model.acceptance.k());
    let (algorithm, steps, drafts) = match k {
        0 => (Value::Null, Value::Null, Value::Null),
        _ => (json!("EAGLE"), json!(k), json!(k + 1)),
    };
    let counters = model
        .map(|model| state.counters.of(&model.name))
        .unwrap_or_default();
    let mut internal = json!({"last_gen_throughput": 0.0});
    if counters.steps > 0 {
        let mean = 1.0 + counters.accepted as f64 / counters.steps as f64;
        internal["avg_spec_accept_length"] = json!(mean);
    }
    json!({"model_path": model.map(|model| &model.root), "served_model_name": model.map(|model| &model.name),
        "speculative_algorithm": algorithm, "speculative_num_steps": steps, "speculative_eagle_topk": 1,
        "speculative_num_draft_tokens": drafts, "enable_metrics": true, "status": "ready",
        "internal_states": [internal], "version": "0.5.23", "frontend": "python"})
    .to_string()
}

/// `/metrics`. The gauges tell of the last stretch of steps only; the counters move when a request has ended by itself.
pub(super) fn metrics(state: &State) -> String {
    let models = state.settings.models.iter();
    let models: Vec<_> = models
        .map(|model| (model, state.counters.of(&model.name)))
        .collect();
    let mut page = String::new();
    gauges(&mut page, &models);
    counters(&mut page, &models);
    page
}

/// A counter by streaming: its name, its help, and what of a model's sums it shows.
type ByStreaming = (&'static str, &'static str, fn(&Finished) -> u64);

type Counted<'a> = (&'a Model, ModelCounters);

fn gauges(page: &mut String, models: &[Counted<'_>]) {
    let mut gauge = |name: &str, help: &str, value: &dyn Fn(&Counted<'_>) -> f64| {
        head(page, name, "gauge", help);
        for counted in models {
            let labels = format!(
                r#"engine_type="unified",model_name={},pp_rank="0",tp_rank="0""#,
                super::quoted(&counted.0.name)
            );
            page.push_str(&format!("sglang:{name}{{{labels}}} {:?}\n", value(counted)));
        }
    };
    gauge(
        "num_running_reqs",
        "The number of running requests.",
        &|(_, counters)| counters.running as f64,
    );
    gauge(
        "spec_accept_length",
        "Mean acceptance length of speculative decoding (accepted drafts + bonus token per forward).",
        &|(_, counters)| {
            let last = counters.last_window;
            ratio(last.accepted + last.steps, last.steps)
        },
    );
    gauge(
        "spec_accept_rate",
        "Speculative acceptance rate (`accepted drafts / proposed drafts` in batch).",
        &|(model, counters)| {
            let last = counters.last_window;
            ratio(last.accepted, last.steps * model.acceptance.k() as u64)
        },
    );
    gauge(
        "spec_cap_length",
        concat!(
            "Mean DSpark confidence-scheduled verify window per verify step, incl the bonus slot ",
            "(0 when no cap is scheduled)."
        ),
        &|_| 0.0,
    );
    gauge(
        "spec_block_accept_length",
        concat!(
            "Mean uncapped full-block accept length per verify step (accept + cap-trimmed drafts; ",
            "exact only in DSpark cap-accept mode)."
        ),
        &|_| 0.0,
    );
    gauge(
        "spec_num_steps",
        "Currently active speculative_num_steps.",
        &|(model, _)| model.acceptance.k() as f64,
    );
    gauge(
        "spec_num_draft_tokens",
        "Currently active speculative_num_draft_tokens (decouples from steps under topk>1).",
        &|(model, _)| match model.acceptance.k() {
            0 => 0.0,
            k => k as f64 + 1.0,
        },
    );
}

fn counters(page: &mut String, models: &[Counted<'_>]) {
    let by_stream: [ByStreaming; 3] = [
        (
            "prompt_tokens_total",
            "Number of prefill tokens processed.",
            |finished| finished.prompt_tokens,
        ),
        (
            "generation_tokens_total",
            "Number of generation tokens processed.",
            |finished| finished.generation_tokens,
        ),
        (
            "num_requests_total",
            "Number of requests processed.",
            |finished| finished.requests,
        ),
    ];
    for (name, help, value) in by_stream {
        head(page, name, "counter", help);
        for (model, counters) in models {
            for (streaming, finished) in ["false", "true"].iter().zip(&counters.finished) {
                if finished.requests > 0 {
                    let model = super::quoted(&model.name);
                    let labels = format!(r#"is_streaming="{streaming}",model_name={model}"#);
                    let value = value(finished) as f64;
                    page.push_str(&format!("sglang:{name}{{{labels}}} {value:?}\n"));
                }
            }
        }
    }
    let name = "spec_verify_calls_total";
    head(
        page,
        name,
        "counter",
        "Number of speculative decoding verification calls.",
    );
    for (model, counters) in models {
        let steps: u64 = counters
            .finished
            .iter()
            .map(|finished| finished.steps)
            .sum();
        if steps > 0 {
            let model = super::quoted(&model.name);
            page.push_str(&format!(
                "sglang:{name}{{model_name={model}}} {:?}\n",
                steps as f64
            ));
        }
    }
}

fn head(page: &mut String, name: &str, kind: &str, help: &str) {
    page.push_str(&format!(
        "# HELP sglang:{name} {help}\n# TYPE sglang:{name} {kind}\n"
    ));
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}
