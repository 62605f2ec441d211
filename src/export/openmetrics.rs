//! OpenMetrics 1.0 text over what a Prometheus registry gathers (the `prometheus` crate writes only the classic text).
//!
//! Differences to the classic text: a counter's family has no `_total` while its samples do, `"` is escaped in HELP,
//! bucket bounds are canonical floats (`1.0`, `1e+06`), times are seconds, and the text ends with `# EOF`.
//! Source: the OpenMetrics specification 1.0, sections "Metric Types" and "Text format".

use std::borrow::Cow;
use std::fmt::Write;
use std::time::UNIX_EPOCH;

use prometheus::proto::{LabelPair, Metric, MetricFamily, MetricType};

use super::exemplars::ExemplarTable;
use crate::stats::Exemplar;

/// Media type of [`render`]'s text.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Writes metric families as OpenMetrics text, with these exemplars at their buckets.
pub fn render(families: &[MetricFamily], exemplars: &ExemplarTable) -> String {
    let mut text = Text {
        written: String::new(),
        exemplars,
    };
    for family in families {
        // A family without a sample says nothing, and a nameless one can't be said.
        if !family.get_metric().is_empty() && !family.name().is_empty() {
            text.family(family);
        }
    }
    text.line(format_args!("# EOF"));
    text.written
}

struct Text<'a> {
    written: String,
    exemplars: &'a ExemplarTable,
}

impl Text<'_> {
    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a String never fails.
        let _ = writeln!(self.written, "{line}");
    }

    fn family(&mut self, family: &MetricFamily) {
        let kind = family.get_field_type();
        let name = match kind {
            MetricType::COUNTER => {
                let name = family.name();
                name.strip_suffix("_total").unwrap_or(name)
            }
            _ => family.name(),
        };
        let type_name = match kind {
            MetricType::COUNTER => "counter",
            MetricType::GAUGE => "gauge",
            MetricType::HISTOGRAM => "histogram",
            MetricType::SUMMARY => "summary",
            MetricType::UNTYPED => "unknown",
        };
        if !family.help().is_empty() {
            self.line(format_args!("# HELP {name} {}", escape(family.help())));
        }
        self.line(format_args!("# TYPE {name} {type_name}"));
        for metric in family.get_metric() {
            match kind {
                MetricType::COUNTER => {
                    let value = value_text(metric.get_counter().get_value());
                    self.sample(name, "_total", metric, None, &value);
                }
                MetricType::GAUGE => {
                    let value = value_text(metric.get_gauge().get_value());
                    self.sample(name, "", metric, None, &value);
                }
                MetricType::HISTOGRAM => self.histogram(name, metric),
                MetricType::SUMMARY => self.summary(name, metric),
                // The crate keeps no value of an untyped metric that could be read.
                MetricType::UNTYPED => {}
            }
        }
    }

    fn histogram(&mut self, name: &str, metric: &Metric) {
        let histogram = metric.get_histogram();
        let count = histogram.get_sample_count().to_string();
        for bucket in histogram.get_bucket() {
            if bucket.upper_bound() == f64::INFINITY {
                continue;
            }
            let bound = canonical(bucket.upper_bound());
            let inside = bucket.cumulative_count().to_string();
            let inside = inside + &self.exemplar(name, metric, bucket.upper_bound());
            self.sample(name, "_bucket", metric, Some(("le", &bound)), &inside);
        }
        let all = count.clone() + &self.exemplar(name, metric, f64::INFINITY);
        self.sample(name, "_bucket", metric, Some(("le", "+Inf")), &all);
        self.sample(name, "_count", metric, None, &count);
        let sum = value_text(histogram.get_sample_sum());
        self.sample(name, "_sum", metric, None, &sum);
    }

    /// What stands behind a bucket's value, if anything.
    fn exemplar(&self, name: &str, metric: &Metric, bound: f64) -> String {
        let exemplar = self.exemplars.of(name, metric.get_label(), bound);
        exemplar.map_or_else(String::new, exemplar_text)
    }

    fn summary(&mut self, name: &str, metric: &Metric) {
        let summary = metric.get_summary();
        for quantile in summary.get_quantile() {
            let rank = canonical(quantile.quantile());
            let value = value_text(quantile.value());
            self.sample(name, "", metric, Some(("quantile", &rank)), &value);
        }
        let count = summary.sample_count().to_string();
        self.sample(name, "_count", metric, None, &count);
        self.sample(
            name,
            "_sum",
            metric,
            None,
            &value_text(summary.sample_sum()),
        );
    }

    fn sample(
        &mut self,
        name: &str,
        suffix: &str,
        metric: &Metric,
        extra: Option<(&str, &str)>,
        value: &str,
    ) {
        let labels = labels(metric.get_label(), extra);
        let time = match metric.timestamp_ms() {
            0 => String::new(),
            milliseconds => format!(" {}", canonical(milliseconds as f64 / 1000.0)),
        };
        self.line(format_args!("{name}{suffix}{labels} {value}{time}"));
    }
}

fn exemplar_text(exemplar: &Exemplar) -> String {
    let id = escape(&exemplar.observation_id);
    let trace = exemplar.trace_id.as_deref().map(escape);
    let trace = trace.map_or_else(String::new, |trace| format!(",trace_id=\"{trace}\""));
    let value = canonical(exemplar.value);
    let since_1970 = exemplar.at.duration_since(UNIX_EPOCH).unwrap_or_default();
    format!(
        " # {{observation_id=\"{id}\"{trace}}} {value} {}.{:03}",
        since_1970.as_secs(),
        since_1970.subsec_millis()
    )
}

fn labels(pairs: &[LabelPair], extra: Option<(&str, &str)>) -> String {
    let all: Vec<String> = pairs
        .iter()
        .map(|pair| (pair.name(), pair.value()))
        .chain(extra)
        .map(|(name, value)| format!("{name}=\"{}\"", escape(value)))
        .collect();
    if all.is_empty() {
        String::new()
    } else {
        format!("{{{}}}", all.join(","))
    }
}

/// Escapes HELP texts and label values, which have one rule in OpenMetrics.
fn escape(text: &str) -> Cow<'_, str> {
    if !text.contains(['\\', '"', '\n']) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '\\' => escaped.push_str("\\\\"),
            '"' => escaped.push_str("\\\""),
            '\n' => escaped.push_str("\\n"),
            other => escaped.push(other),
        }
    }
    Cow::Owned(escaped)
}

/// A sample's value: a whole number as such, so that a count is read as it is written.
fn value_text(value: f64) -> String {
    const LARGEST_EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() <= LARGEST_EXACT {
        format!("{value:.0}")
    } else {
        canonical(value)
    }
}

/// The canonical float of the specification, which is Go's `%g` with a point in it: exponents from 1e+06 up and below
/// 1e-04, at least two digits in the exponent.
fn canonical(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    if value == 0.0 || (1e-4..1e6).contains(&value.abs()) {
        return format!("{value:?}");
    }
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.strip_prefix('-') {
        Some(digits) => format!("{mantissa}e-{digits:0>2}"),
        None => format!("{mantissa}e+{exponent:0>2}"),
    }
}

#[cfg(test)]
mod tests {
    use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, IntGauge, Opts, Registry};

    use super::*;

    #[test]
    fn a_counter_family_loses_total_and_its_samples_keep_it() {
        let registry = Registry::new();
        let counter =
            IntCounterVec::new(Opts::new("a_total", "Says \"a\\b\"\nc."), &["x"]).unwrap();
        counter.with_label_values(&["q\"\\\n"]).inc_by(3);
        registry.register(Box::new(counter)).unwrap();
        assert_eq!(
            render(&registry.gather(), &ExemplarTable::default()),
            "# HELP a Says \\\"a\\\\b\\\"\\nc.\n# TYPE a counter\na_total{x=\"q\\\"\\\\\\n\"} 3\n# EOF\n"
        );
    }

    #[test]
    fn a_histogram_has_canonical_bounds_and_one_infinite_bucket() {
        let registry = Registry::new();
        let options = HistogramOpts::new("h", "H.").buckets(vec![0.00005, 0.5, 1.0, 2e6]);
        let histogram = HistogramVec::new(options, &["m"]).unwrap();
        histogram.with_label_values(&["x"]).observe(0.75);
        histogram.with_label_values(&["x"]).observe(3e6);
        registry.register(Box::new(histogram)).unwrap();
        assert_eq!(
            render(&registry.gather(), &ExemplarTable::default()),
            "# HELP h H.\n# TYPE h histogram\n\
             h_bucket{m=\"x\",le=\"5e-05\"} 0\nh_bucket{m=\"x\",le=\"0.5\"} 0\n\
             h_bucket{m=\"x\",le=\"1.0\"} 1\nh_bucket{m=\"x\",le=\"2e+06\"} 1\n\
             h_bucket{m=\"x\",le=\"+Inf\"} 2\nh_count{m=\"x\"} 2\nh_sum{m=\"x\"} 3.00000075e+06\n# EOF\n"
        );
    }

    #[test]
    fn a_bucket_has_its_exemplar_behind_its_count() {
        let registry = Registry::new();
        let options = HistogramOpts::new("h", "H.").buckets(vec![1.0]);
        let histogram = HistogramVec::new(options, &["m"]).unwrap();
        for (model, value) in [("x", 0.5), ("x", 2.0), ("y", 0.5)] {
            histogram.with_label_values(&[model]).observe(value);
        }
        registry.register(Box::new(histogram)).unwrap();
        let families = registry.gather();
        let exemplar = |id: &str, trace_id: Option<&str>, value| Exemplar {
            observation_id: id.into(),
            trace_id: trace_id.map(str::to_owned),
            value,
            at: UNIX_EPOCH + std::time::Duration::from_millis(1_500_000_000_007),
        };
        let mut exemplars = ExemplarTable::default();
        let labels = families[0].get_metric()[0].get_label().to_vec();
        let buckets = vec![
            (1.0, exemplar("01A", None, 0.5)),
            (f64::INFINITY, exemplar("01B", Some("0af7"), 2.0)),
        ];
        exemplars.add("h", labels, buckets);
        let text = render(&families, &exemplars);
        let lines: Vec<&str> = text.lines().filter(|it| it.contains("_bucket")).collect();
        assert_eq!(
            lines,
            [
                "h_bucket{m=\"x\",le=\"1.0\"} 1 # {observation_id=\"01A\"} 0.5 1500000000.007",
                "h_bucket{m=\"x\",le=\"+Inf\"} 2 # {observation_id=\"01B\",trace_id=\"0af7\"} 2.0 1500000000.007",
                "h_bucket{m=\"y\",le=\"1.0\"} 1",
                "h_bucket{m=\"y\",le=\"+Inf\"} 1",
            ]
        );
    }

    #[test]
    fn a_gauge_keeps_its_name_and_nothing_gathered_is_only_the_end() {
        let registry = Registry::new();
        let gauge = IntGauge::new("g", "G.").unwrap();
        gauge.set(-2);
        registry.register(Box::new(gauge)).unwrap();
        assert_eq!(
            render(&registry.gather(), &ExemplarTable::default()),
            "# HELP g G.\n# TYPE g gauge\ng -2\n# EOF\n"
        );
        assert_eq!(render(&[], &ExemplarTable::default()), "# EOF\n");
    }

    #[test]
    fn floats_are_written_as_the_specification_has_them() {
        for (value, text) in [
            (f64::INFINITY, "+Inf"),
            (f64::NEG_INFINITY, "-Inf"),
            (f64::NAN, "NaN"),
            (0.0, "0.0"),
            (1.0, "1.0"),
            (0.005, "0.005"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (100_000.0, "100000.0"),
            (1_000_000.0, "1e+06"),
            (1_234_567.5, "1.2345675e+06"),
            (1e100, "1e+100"),
        ] {
            assert_eq!(canonical(value), text);
        }
    }
}
