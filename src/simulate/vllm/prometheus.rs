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
        vec![Self::after(String::new(), value)]
    }

    fn before(before: String, value: u64) -> Self {
        Self {
            before,
            after: String::new(),
            value,
        }
    }

    fn after(after: String, value: u64) -> Self {
        Self {
            before: String::new(),
            after,
            value,
        }
    }
}

/// The page as it stands now, in the order of a real one.
pub(super) fn page(state: &State) -> String {
    let mut page = Page::new(state);
    page.speculation("num_drafts", "Number of spec decoding drafts.", |c, _| {
        Series::plain(c.steps)
    });
    page.speculation("num_draft_tokens", "Number of draft tokens.", |c, _| {
        Series::plain(c.drafted)
    });
    page.speculation(
        "num_accepted_tokens",
        "Number of accepted tokens.",
        |c, _| Series::plain(c.accepted),
    );
    page.speculation(
        "num_accepted_tokens_per_pos",
        "Accepted tokens per draft position.",
        |c, k| {
            let at = |position: usize| c.accepted_at.get(position).copied().unwrap_or_default();
            (0..k)
                .map(|p| Series::after(format!(",position=\"{p}\""), at(p)))
                .collect()
        },
    );
    page.gauge(
        "num_requests_running",
        "Number of requests in model execution batches.",
        |c| c.running,
    );
    page.gauge(
        "num_requests_waiting",
        "Number of requests waiting to be processed.",
        |_| 0,
    );
    page.gauge(
        "kv_cache_usage_perc",
        "KV-cache usage. 1 means 100 percent usage.",
        |_| 0,
    );
    page.counter(
        "prompt_tokens",
        "Number of prefill tokens processed.",
        |c| Series::plain(c.prompt_tokens),
    );
    page.counter(
        "generation_tokens",
        "Number of generation tokens processed.",
        |c| Series::plain(c.generation_tokens),
    );
    page.counter(
        "request_success",
        "Count of successfully processed requests.",
        |c| {
            let ended = [
                ("stop", c.ended.stop),
                ("length", c.ended.length),
                ("abort", c.ended.abort),
            ];
            let never = [("error", 0), ("repetition", 0)];
            let series =
                |(reason, value)| Series::before(format!("finished_reason=\"{reason}\","), value);
            ended.into_iter().chain(never).map(series).collect()
        },
    );
    page.text
}

/// A page that grows.
struct Page<'a> {
    /// Each model's name as a label value, its k and its counters.
    models: Vec<(String, usize, ModelCounters)>,
    state: &'a State,
    text: String,
}

impl<'a> Page<'a> {
    fn new(state: &'a State) -> Self {
        let models = state.settings.models.iter();
        let models = models.map(|m| {
            (
                quoted(&m.name),
                m.acceptance.k(),
                state.counters.of(&m.name),
            )
        });
        Self {
            models: models.collect(),
            state,
            text: String::new(),
        }
    }

    /// A counter of speculation; models that do not speculate have none.
    fn speculation(
        &mut self,
        name: &str,
        help: &str,
        series: impl Fn(&ModelCounters, usize) -> Vec<Series>,
    ) {
        let all: Vec<_> = self
            .models
            .iter()
            .filter(|(_, k, _)| *k > 0)
            .map(|(model, k, counters)| (model.clone(), series(counters, *k)))
            .collect();
        self.both(&format!("spec_decode_{name}"), help, &all);
    }

    fn counter(&mut self, name: &str, help: &str, series: impl Fn(&ModelCounters) -> Vec<Series>) {
        let all: Vec<_> = self
            .models
            .iter()
            .map(|(model, _, counters)| (model.clone(), series(counters)))
            .collect();
        self.both(name, help, &all);
    }

    /// A counter and the gauge that says since when it counts.
    fn both(&mut self, name: &str, help: &str, all: &[(String, Vec<Series>)]) {
        if all.is_empty() {
            return;
        }
        for (suffix, kind) in [("total", "counter"), ("created", "gauge")] {
            self.head(&format!("{name}_{suffix}"), help, kind);
            for (model, series) in all {
                for Series {
                    before,
                    after,
                    value,
                } in series
                {
                    let value = if kind == "gauge" {
                        self.state.started
                    } else {
                        *value as f64
                    };
                    let labels = format!("engine=\"0\",{before}model_name={model}{after}");
                    self.line(&format!("{name}_{suffix}"), &labels, value);
                }
            }
        }
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl Fn(&ModelCounters) -> u64) {
        self.head(name, help, "gauge");
        let values: Vec<_> = self
            .models
            .iter()
            .map(|(model, _, counters)| (model.clone(), value(counters)))
            .collect();
        for (model, value) in values {
            self.line(
                name,
                &format!("engine=\"0\",model_name={model}"),
                value as f64,
            );
        }
    }

    fn head(&mut self, name: &str, help: &str, kind: &str) {
        self.text.push_str(&format!(
            "# HELP vllm:{name} {help}\n# TYPE vllm:{name} {kind}\n"
        ));
    }

    fn line(&mut self, name: &str, labels: &str, value: f64) {
        self.text
            .push_str(&format!("vllm:{name}{{{labels}}} {}\n", number(value)));
    }
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
