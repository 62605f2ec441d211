//! Building blocks of a scrape: a series' name and HELP, its labels, and its samples.

use prometheus::proto::{
    Bucket, Counter, Gauge, Histogram, LabelPair, Metric, MetricFamily, MetricType,
};

/// Name and HELP of a series.
#[derive(Debug)]
pub(super) struct Series {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
}

/// The labels that every series here has.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Labels {
    pub(super) backend: &'static str,
    pub(super) model_name: String,
    pub(super) tag: Option<String>,
    /// Name and value of the facet that the counters carry.
    pub(super) facet: Option<(&'static str, &'static str)>,
}

/// A gauge without labels.
pub(super) fn gauge(series: &Series, value: f64) -> MetricFamily {
    let mut samples = Samples::new(series, MetricType::GAUGE);
    let mut gauge = Gauge::default();
    gauge.set_value(value);
    let mut metric = Metric::default();
    metric.set_gauge(gauge);
    samples.metrics.push(metric);
    samples.family()
}

/// The samples of one series.
pub(super) struct Samples {
    family: MetricFamily,
    metrics: Vec<Metric>,
}

impl Samples {
    pub(super) fn counter(series: &Series) -> Self {
        Self::new(series, MetricType::COUNTER)
    }

    pub(super) fn gauge(series: &Series) -> Self {
        Self::new(series, MetricType::GAUGE)
    }

    pub(super) fn histogram(series: &Series) -> Self {
        Self::new(series, MetricType::HISTOGRAM)
    }

    fn new(series: &Series, kind: MetricType) -> Self {
        let mut family = MetricFamily::default();
        family.set_name(series.name.to_owned());
        family.set_help(series.help.to_owned());
        family.set_field_type(kind);
        Self {
            family,
            metrics: Vec::new(),
        }
    }

    /// Adds a counter's value.
    pub(super) fn count(&mut self, labels: &Labels, more: &[(&str, &str)], value: u64) {
        let mut counter = Counter::default();
        counter.set_value(value as f64);
        let mut metric = Metric::from_label(pairs(labels, more));
        metric.set_counter(counter);
        self.metrics.push(metric);
    }

    /// Adds a gauge's value, with labels of its own.
    pub(super) fn show(&mut self, labels: &[(&str, &str)], value: f64) {
        let mut gauge = Gauge::default();
        gauge.set_value(value);
        let mut metric = Metric::from_label(sorted(labels.to_vec()));
        metric.set_gauge(gauge);
        self.metrics.push(metric);
    }

    /// Adds a counter's value, with labels of its own.
    pub(super) fn add(&mut self, labels: &[(&str, &str)], value: u64) {
        let mut counter = Counter::default();
        counter.set_value(value as f64);
        let mut metric = Metric::from_label(sorted(labels.to_vec()));
        metric.set_counter(counter);
        self.metrics.push(metric);
    }

    /// Adds a histogram: upper bounds with the number of values up to each, number and sum of all values.
    pub(super) fn distribute(
        &mut self,
        labels: &Labels,
        cumulative: impl Iterator<Item = (f64, u64)>,
        count: u64,
        sum: f64,
    ) {
        let mut histogram = Histogram::default();
        histogram.set_bucket(
            cumulative
                .map(|(bound, below)| {
                    let mut bucket = Bucket::default();
                    bucket.set_upper_bound(bound);
                    bucket.set_cumulative_count(below);
                    bucket
                })
                .collect(),
        );
        histogram.set_sample_count(count);
        histogram.set_sample_sum(sum);
        let mut metric = Metric::from_label(pairs(labels, &[]));
        metric.set_histogram(histogram);
        self.metrics.push(metric);
    }

    pub(super) fn family(mut self) -> MetricFamily {
        self.family.set_metric(self.metrics);
        self.family
    }
}

// Sorted by name, which is what readers of the text are used to.
fn pairs(labels: &Labels, more: &[(&str, &str)]) -> Vec<LabelPair> {
    let common = [
        Some(("backend", labels.backend)),
        Some(("model_name", labels.model_name.as_str())),
        labels.tag.as_deref().map(|tag| ("tag", tag)),
        labels.facet,
    ];
    sorted(
        common
            .into_iter()
            .flatten()
            .chain(more.iter().copied())
            .collect(),
    )
}

fn sorted(mut all: Vec<(&str, &str)>) -> Vec<LabelPair> {
    all.sort_unstable();
    all.into_iter()
        .map(|(name, value)| {
            let mut pair = LabelPair::default();
            pair.set_name(name.to_owned());
            pair.set_value(value.to_owned());
            pair
        })
        .collect()
}
