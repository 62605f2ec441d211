//! Histograms with fixed bounds, for Prometheus: cheap to read at every scrape, and they never go back.

use super::exemplar::Exemplars;
use super::prepared::Prepared;
use crate::observation::Timing;

const LENGTH_BOUNDS: &[f64] = &[
    1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 8.0, 12.0, 16.0,
];
const SHARE_BOUNDS: &[f64] = &[0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0];
const STEP_BOUNDS: &[f64] = &[
    1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0,
];
// The bounds of the times are those of vLLM's own series, so that known panels fit; finer below where drafts make
// tokens come faster.
const REQUEST_LATENCY_BOUNDS: &[f64] = &[
    0.05, 0.1, 0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0,
    120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0,
];
const FIRST_TOKEN_BOUNDS: &[f64] = &[
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
    20.0, 40.0, 80.0, 160.0, 640.0, 2560.0,
];
const TOKEN_GAP_BOUNDS: &[f64] = &[
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5,
    5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
];

/// Counts of values by fixed upper bounds.
#[derive(Clone, Debug)]
pub struct RecordHistogram {
    bounds: &'static [f64],
    counts: Vec<u64>,
    sum: f64,
}

impl RecordHistogram {
    fn new(bounds: &'static [f64]) -> Self {
        Self {
            bounds,
            counts: vec![0; bounds.len() + 1],
            sum: 0.0,
        }
    }

    /// Gives the bucket that the value fell into.
    fn push_known(&mut self, value: Option<f64>) -> Option<usize> {
        let value = value.filter(|value| value.is_finite())?;
        let bucket = self.bounds.partition_point(|&bound| bound < value);
        self.counts[bucket] += 1;
        self.sum += value;
        Some(bucket)
    }

    fn merge(&mut self, other: &RecordHistogram) {
        for (own, others) in self.counts.iter_mut().zip(&other.counts) {
            *own += others;
        }
        self.sum += other.sum;
    }

    /// The upper bounds, the infinite one last.
    pub fn bounds(&self) -> impl Iterator<Item = f64> {
        self.bounds.iter().copied().chain([f64::INFINITY])
    }

    /// The finite upper bounds with the number of values up to each.
    pub fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> {
        self.bounds
            .iter()
            .zip(&self.counts)
            .scan(0, |below, (&bound, &count)| {
                *below += count;
                Some((bound, *below))
            })
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Sum of the values.
    pub fn sum(&self) -> f64 {
        self.sum
    }
}

/// The histograms of one group: one observation per record of the `all` view, times in seconds per complete exchange.
#[derive(Clone, Debug)]
pub struct Histograms {
    /// Tokens per verify step, the bonus token included.
    pub acceptance_length: RecordHistogram,
    /// Exchanges that stand for its buckets.
    pub length_exemplars: Exemplars,
    /// Accepted / drafted, 0..1.
    pub draft_acceptance_rate: RecordHistogram,
    /// (accepted + steps) / (drafted + steps).
    pub accepted_per_verified: RecordHistogram,
    /// Verify steps.
    pub steps: RecordHistogram,
    /// Request to last content chunk, s.
    pub request_latency: RecordHistogram,
    /// Request to first content chunk, s.
    pub time_to_first_token: RecordHistogram,
    /// Time per output token after the first, s.
    pub inter_token_latency: RecordHistogram,
    /// Mean gap between content chunks, s.
    pub inter_chunk_latency: RecordHistogram,
}

impl Default for Histograms {
    fn default() -> Self {
        Self {
            acceptance_length: RecordHistogram::new(LENGTH_BOUNDS),
            length_exemplars: Exemplars::new(LENGTH_BOUNDS.len() + 1),
            draft_acceptance_rate: RecordHistogram::new(SHARE_BOUNDS),
            accepted_per_verified: RecordHistogram::new(SHARE_BOUNDS),
            steps: RecordHistogram::new(STEP_BOUNDS),
            request_latency: RecordHistogram::new(REQUEST_LATENCY_BOUNDS),
            time_to_first_token: RecordHistogram::new(FIRST_TOKEN_BOUNDS),
            inter_token_latency: RecordHistogram::new(TOKEN_GAP_BOUNDS),
            inter_chunk_latency: RecordHistogram::new(TOKEN_GAP_BOUNDS),
        }
    }
}

impl Histograms {
    /// Adds the records of an exchange, and its times where it is complete and has content.
    pub(super) fn add(&mut self, exchange: &Prepared<'_>) {
        for record in &exchange.records {
            let values = &record.values;
            let bucket = self.acceptance_length.push_known(values.length);
            if let (Some(bucket), Some(length)) = (bucket, values.length) {
                self.length_exemplars
                    .note(bucket, length, exchange.observation);
            }
            self.draft_acceptance_rate.push_known(values.rate);
            self.accepted_per_verified
                .push_known(values.accepted_per_verified());
            self.steps
                .push_known(values.steps.map(|steps| steps as f64));
        }
        if exchange.traffic.is_some() {
            self.add_timing(&exchange.observation.timing);
        }
    }

    fn add_timing(&mut self, timing: &Timing) {
        let seconds = |milliseconds: Option<f64>| milliseconds.map(|value| value / 1_000.0);
        self.request_latency
            .push_known(seconds(timing.request_latency_ms));
        self.time_to_first_token
            .push_known(seconds(timing.time_to_first_token_ms));
        self.inter_token_latency
            .push_known(seconds(timing.inter_token_latency_ms));
        self.inter_chunk_latency
            .push_known(seconds(timing.inter_chunk_latency_ms));
    }

    /// Adds what the histograms of another group hold.
    pub fn merge(&mut self, other: &Histograms) {
        self.acceptance_length.merge(&other.acceptance_length);
        self.length_exemplars.merge(&other.length_exemplars);
        self.draft_acceptance_rate
            .merge(&other.draft_acceptance_rate);
        self.accepted_per_verified
            .merge(&other.accepted_per_verified);
        self.steps.merge(&other.steps);
        self.request_latency.merge(&other.request_latency);
        self.time_to_first_token.merge(&other.time_to_first_token);
        self.inter_token_latency.merge(&other.inter_token_latency);
        self.inter_chunk_latency.merge(&other.inter_chunk_latency);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_at_a_bound_is_within_it() {
        let mut histogram = RecordHistogram::new(&[1.0, 2.0]);
        for value in [Some(1.0), Some(1.5), Some(2.0), Some(3.0), None] {
            histogram.push_known(value);
        }
        let cumulative: Vec<_> = histogram.cumulative().collect();
        assert_eq!(cumulative, [(1.0, 1), (2.0, 3)]);
        assert_eq!((histogram.count(), histogram.sum()), (4, 7.5));
    }
}
