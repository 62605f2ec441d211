//! What the tap has counted, for the scraper to hold against the engine's counters.

use std::sync::Arc;

use prometheus::core::Collector;

use crate::counters::TapCounters;
use crate::observation::{Acceptance, Route};
use crate::runs::Runs;
use crate::scrape::{Probe, TapSums};
use crate::stats::{Group, Statistics};

/// Exchanges without a record that have no reason either.
const NO_REASON: &str = "none";

/// What the scraper asks.
pub(super) fn probe(statistics: Arc<Statistics>, counters: TapCounters, runs: Runs) -> Probe {
    Probe(Arc::new(move || {
        let mut sums = TapSums {
            // First, so that an exchange that ends meanwhile is seen as one that was under way.
            in_flight: in_flight(&counters),
            run: runs.current(),
            ..TapSums::default()
        };
        for (_, group) in statistics.shared_groups() {
            add(&mut sums, &group);
        }
        sums.ended = ended(&counters);
        sums
    }))
}

fn in_flight(counters: &TapCounters) -> u64 {
    let families = counters.requests_in_flight.collect();
    let metrics = families.iter().flat_map(|family| family.get_metric());
    let observed = metrics.filter(|metric| {
        let labels = metric.get_label();
        labels
            .iter()
            .all(|label| label.value() != Route::Other.as_str())
    });
    observed
        .map(|metric| metric.get_gauge().get_value().max(0.0) as u64)
        .sum()
}

fn ended(counters: &TapCounters) -> u64 {
    let families = counters.outcomes.collect();
    let metrics = families.iter().flat_map(|family| family.get_metric());
    metrics
        .map(|metric| metric.get_counter().get_value() as u64)
        .sum()
}

fn add(sums: &mut TapSums, group: &Group) {
    for pooled in [&group.aiperf.pooled, &group.rest.pooled] {
        sums.steps = sums.steps.saturating_add(pooled.steps);
        sums.drafted = sums.drafted.saturating_add(pooled.drafted);
        sums.accepted = sums.accepted.saturating_add(pooled.accepted);
    }
    sums.generation_tokens = sums
        .generation_tokens
        .saturating_add(group.generation_tokens);
    for (&acceptance, &exchanges) in &group.exchanges {
        if matches!(acceptance, Acceptance::Recorded | Acceptance::ZeroStep) {
            continue;
        }
        let mut without = exchanges;
        for (reason, &count) in group.reasons.get(&acceptance).into_iter().flatten() {
            without = without.saturating_sub(count);
            count_unrecorded(sums, reason.as_str(), count);
        }
        count_unrecorded(sums, NO_REASON, without);
    }
}

fn count_unrecorded(sums: &mut TapSums, reason: &str, count: u64) {
    if count > 0 {
        let sum = sums.unrecorded.entry(reason.to_owned()).or_default();
        *sum = sum.saturating_add(count);
    }
}
