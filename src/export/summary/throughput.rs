//! Throughput over the time from the first start to the last end of the exchanges counted.
//!
//! AIPerf divides by the length of its own profiling phase. A tap knows no phase: on traffic with pauses these figures say
//! how much came, not how much could have come.

use std::time::Duration;

use super::metrics::{Metric, Metrics, put};
use crate::stats::Group;

/// Adds the throughput of a group to its other figures; without time or exchanges there is none.
pub(super) fn add(metrics: &mut Metrics, group: &Group) {
    let sum = |tag: &str| {
        let metric = metrics.get(tag)?;
        metric.sum.zip(metric.count)
    };
    let (output, input) = (sum("output_sequence_length"), sum("input_sequence_length"));
    let Some((_, requests)) = sum("request_latency") else {
        return;
    };
    put(
        metrics,
        "request_count",
        Some(Metric::run_level("requests", requests as f64, requests)),
    );
    let Some(seconds) = duration(group) else {
        return;
    };
    let per_second =
        |unit: &str, (amount, n): (f64, u64)| Some(Metric::run_level(unit, amount / seconds, n));
    put(
        metrics,
        "request_throughput",
        per_second("requests/sec", (requests as f64, requests)),
    );
    let both = output
        .zip(input)
        .map(|((output, n), (input, _))| (output + input, n));
    for (tag, tokens) in [
        ("output_token_throughput", output),
        ("input_token_throughput", input),
        ("total_token_throughput", both),
    ] {
        put(
            metrics,
            tag,
            tokens.and_then(|tokens| per_second("tokens/sec", tokens)),
        );
    }
}

fn duration(group: &Group) -> Option<f64> {
    let (from, to) = (group.period.from?, group.period.to?);
    let length = to.0.duration_since(from.0).ok()?;
    (length > Duration::ZERO).then_some(length.as_secs_f64())
}
