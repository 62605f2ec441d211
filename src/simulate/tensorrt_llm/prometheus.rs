//! TensorRT-LLM's `/prometheus/metrics`: the series that tell of speculation.

use serde_json::Value;

use crate::simulate::counters::ModelCounters;
use crate::simulate::state::State;

/// The page as it stands now.
pub(super) fn page(state: &State) -> String {
    let models: Vec<_> = state
        .settings
        .models
        .iter()
        .map(|model| {
            (
                Value::from(model.name.as_str()).to_string(),
                state.counters.of(&model.name),
            )
        })
        .collect();
    let mut page = String::new();
    let mut family =
        |name: &str, kind: &str, series: &dyn Fn(&ModelCounters) -> Vec<(String, f64)>| {
            page.push_str(&format!("# TYPE {name} {kind}\n"));
            for (model, counters) in &models {
                for (label, value) in series(counters) {
                    page.push_str(&format!(
                        "{name}{{engine_type=\"trtllm\",model_name={model}{label}}} {value:?}\n"
                    ));
                }
            }
        };
    let plain = |value: f64| vec![(String::new(), value)];
    family(
        "trtllm_spec_decode_num_draft_tokens_total",
        "counter",
        &|c| plain(c.drafted as f64),
    );
    family(
        "trtllm_spec_decode_num_accepted_tokens_total",
        "counter",
        &|c| plain(c.accepted as f64),
    );
    family(
        "trtllm_spec_decode_acceptance_length",
        "gauge",
        &|c| match c.steps {
            0 => Vec::new(),
            steps => plain(1.0 + c.accepted as f64 / steps as f64),
        },
    );
    family("trtllm_spec_decode_drafted_tokens_total", "counter", &|c| {
        positions(&c.drafted_at)
    });
    family(
        "trtllm_spec_decode_accepted_tokens_total",
        "counter",
        &|c| positions(&c.accepted_at),
    );
    page
}

/// A position has a series only once it counts something.
fn positions(counts: &[u64]) -> Vec<(String, f64)> {
    let positive = counts.iter().enumerate().filter(|(_, count)| **count > 0);
    positive
        .map(|(position, count)| (format!(",token_position=\"{position}\""), *count as f64))
        .collect()
}
