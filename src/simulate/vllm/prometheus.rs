//! vLLM's `/metrics`: the counters that tell of speculation and a few of those around them, written as
//! `prometheus_client` writes them, a `_created` gauge beside every counter.

use super::quoted;
use crate::simulate::counters::ModelCounters;
use crate::simulate::state::State;

/// A series: what stands between engine and model, what stands after the model, and the value.
struct Series {
    before: String,
    after: String,
    value: u64,
}

impl Series {
    fn plain(value: u64) -> Vec<Self> {
        vec![Self {
            before: String::new(),
            after: String::new(),
            value,
        }]
    }
}

/// The page as it stands now.
pub(super) fn page(state: &State) -> String {
    let models: Vec<_> = state
        .settings
        .models
        .iter()
        .map(|model| (model, state.counters.of(&model.name)))
        .collect();
    let mut page = String::new();
    let mut counter =
        |name: &str,
         help: &str,
         speculating: bool,
         series: &dyn Fn(&ModelCounters, usize) -> Vec<Series>| {
            let of_models: Vec<_> = models
                .iter()
                .filter(|(model, _)| !speculating || model.acceptance.k() > 0)
                .map(|(model, counters)| {
                    (quoted(&model.name), series(counters, model.acceptance.k()))
                })
                .collect();
            if of_models.is_empty() {
                return;
            }
            for (suffix, kind, created) in [("total", "counter", false), ("created", "gauge", true)]
            {
                page.push_str(&format!(
                    "# HELP vllm:{name}_{suffix} {help}\n# TYPE vllm:{name}_{suffix} {kind}\n"
                ));
                for (model, all) in &of_models {
                    for Series {
                        before,
                        after,
                        value,
                    } in all
                    {
                        let value = number(if created {
                            state.started
                        } else {
                            *value as f64
                        });
                        page.push_str(&format!(
                        "vllm:{name}_{suffix}{{engine=\"0\",{before}model_name={model}{after}}} {value}\n"
                    ));
                    }
                }
            }
        };
    counter(
        "spec_decode_num_drafts",
        "Number of spec decoding drafts.",
        true,
        &|c, _| Series::plain(c.steps),
    );
    counter(
        "spec_decode_num_draft_tokens",
        "Number of draft tokens.",
        true,
        &|c, _| Series::plain(c.drafted),
    );
    counter(
        "spec_decode_num_accepted_tokens",
        "Number of accepted tokens.",
        true,
        &|c, _| Series::plain(c.accepted),
    );
    counter(
        "spec_decode_num_accepted_tokens_per_pos",
        "Accepted tokens per draft position.",
        true,
        &|c, k| {
            let at = |position: usize| c.accepted_at.get(position).copied().unwrap_or_default();
            let label = |position: usize| format!(",position=\"{position}\"");
            (0..k)
                .map(|p| Series {
                    before: String::new(),
                    after: label(p),
                    value: at(p),
                })
                .collect()
        },
    );
    counter(
        "prompt_tokens",
        "Number of prefill tokens processed.",
        false,
        &|c, _| Series::plain(c.prompt_tokens),
    );
    counter(
        "generation_tokens",
        "Number of generation tokens processed.",
        false,
        &|c, _| Series::plain(c.generation_tokens),
    );
    counter(
        "request_success",
        "Count of successfully processed requests.",
        false,
        &|c, _| {
            let ended = [
                ("stop", c.ended.stop),
                ("length", c.ended.length),
                ("abort", c.ended.abort),
            ];
            let none = [("error", 0), ("repetition", 0)];
            let label = |reason: &str| format!("finished_reason=\"{reason}\",");
            let series = |(reason, value): (&str, u64)| Series {
                before: label(reason),
                after: String::new(),
                value,
            };
            ended.into_iter().chain(none).map(series).collect()
        },
    );
    let mut gauge = |name: &str, help: &str, value: &dyn Fn(&ModelCounters) -> u64| {
        page.push_str(&format!(
            "# HELP vllm:{name} {help}\n# TYPE vllm:{name} gauge\n"
        ));
        for (model, counters) in &models {
            let (model, value) = (quoted(&model.name), number(value(counters) as f64));
            page.push_str(&format!(
                "vllm:{name}{{engine=\"0\",model_name={model}}} {value}\n"
            ));
        }
    };
    gauge(
        "num_requests_running",
        "Number of requests in model execution batches.",
        &|c| c.running,
    );
    gauge(
        "num_requests_waiting",
        "Number of requests waiting to be processed.",
        &|_| 0,
    );
    gauge(
        "kv_cache_usage_perc",
        "KV-cache usage. 1 means 100 percent usage.",
        &|_| 0,
    );
    page
}

/// A number as `prometheus_client` prints it: from a million on with an exponent.
fn number(value: f64) -> String {
    let plain = format!("{value:?}");
    match plain.find('.') {
        Some(dot) if value > 0.0 && dot > 6 => {
            let (whole, fraction) = plain.split_at(dot);
            let digits = format!("{}.{}{}", &whole[..1], &whole[1..], &fraction[1..]);
            format!("{}e+{:02}", digits.trim_end_matches(['0', '.']), dot - 1)
        }
        _ => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers_are_printed_as_in_a_real_scrape() {
        assert_eq!(number(251.0), "251.0");
        assert_eq!(number(0.0), "0.0");
        assert_eq!(number(999_999.0), "999999.0");
        assert_eq!(number(1_500_000.0), "1.5e+06");
        assert_eq!(number(1_796_087_402.146_786_2), "1.7960874021467862e+09");
        assert_eq!(number(4_668_669_952.0), "4.668669952e+09");
    }
}
