//! Counters of acceptance: drafts, tokens, positions, and what became of each request's numbers.

use std::collections::BTreeMap;

use prometheus::proto::MetricFamily;

use super::series::{Labels, Samples, Series};
use crate::observation::Acceptance;
use crate::stats::{Counts, Pooled, steps_in};

/// Positions that get a series of their own; deeper ones are in the JSON only.
const MOST_POSITIONS: u32 = 32;

/// Finite bounds of the histogram of accepted drafts per step: 0 to this.
const DEEPEST_BOUND: u32 = 16;

const STEPS: Series = Series {
    name: "spectap_spec_decode_num_drafts_total",
    help: "Verify steps: forward passes of the target model over drafts of one sequence.",
};
const DRAFTED: Series = Series {
    name: "spectap_spec_decode_num_draft_tokens_total",
    help: "Draft tokens put before the verifier.",
};
const ACCEPTED: Series = Series {
    name: "spectap_spec_decode_num_accepted_tokens_total",
    help: "Draft tokens that the verifier kept (the bonus token is not among them).",
};
const PER_POSITION: Series = Series {
    name: "spectap_spec_decode_num_accepted_tokens_per_pos_total",
    help: "Accepted draft tokens by position in the draft, counted from 0.",
};
const PER_STEP: Series = Series {
    name: "spectap_spec_decode_accepted_tokens_per_step",
    help: "Accepted draft tokens of each verify step (the bonus token is not among them); exact, one observation per step.",
};
const REQUESTS: Series = Series {
    name: "spectap_spec_decode_requests_total",
    help: "Answered inference requests by what became of their acceptance numbers and why (none: no reason needed).",
};
const VIOLATIONS: Series = Series {
    name: "spectap_spec_decode_violations_total",
    help: "Payloads with which the engine contradicts itself, by kind; all but mean_or_rate are left out of every figure.",
};

pub(super) const ALL: [Series; 7] = [
    STEPS,
    DRAFTED,
    ACCEPTED,
    PER_POSITION,
    PER_STEP,
    REQUESTS,
    VIOLATIONS,
];

/// The counters of these counts.
pub(super) fn counters(counted: &BTreeMap<Labels, Counts>) -> Vec<MetricFamily> {
    let mut steps = Samples::counter(&STEPS);
    let mut drafted = Samples::counter(&DRAFTED);
    let mut accepted = Samples::counter(&ACCEPTED);
    let mut per_position = Samples::counter(&PER_POSITION);
    let mut requests = Samples::counter(&REQUESTS);
    let mut violations = Samples::counter(&VIOLATIONS);
    for (labels, counts) in counted {
        let pooled = &counts.pooled;
        if pooled.records > 0 {
            drafted.count(labels, &[], pooled.drafted);
            accepted.count(labels, &[], pooled.accepted);
        }
        // An engine that tells totals alone has no steps: absent, not 0.
        if pooled.records_with_steps > 0 {
            steps.count(labels, &[], pooled.steps);
            add_positions(&mut per_position, labels, pooled);
        }
        add_requests(&mut requests, labels, counts);
        add_violations(&mut violations, labels, counts);
    }
    let all = [steps, drafted, accepted, per_position, requests, violations];
    all.map(Samples::family).into()
}

/// The histogram of accepted drafts per step.
pub(super) fn per_step(counted: &BTreeMap<Labels, Counts>) -> MetricFamily {
    let mut per_step = Samples::histogram(&PER_STEP);
    for (labels, Counts { pooled, .. }) in counted {
        if pooled.records_with_steps > 0 {
            let sum = pooled.accepted_in_steps as f64;
            per_step.distribute(labels, steps_up_to(pooled), pooled.steps, sum);
        }
    }
    per_step.family()
}

fn add_positions(samples: &mut Samples, labels: &Labels, pooled: &Pooled) {
    let deepest = pooled.histogram.keys().next_back().copied().unwrap_or(0);
    for position in 0..deepest.min(MOST_POSITIONS) {
        // A step accepted the draft at a position if it accepted more drafts than come before it.
        let accepted = steps_in(&pooled.histogram, position + 1..);
        samples.count(labels, &[("position", &position.to_string())], accepted);
    }
}

fn steps_up_to(pooled: &Pooled) -> impl Iterator<Item = (f64, u64)> {
    (0..=DEEPEST_BOUND).map(|accepted| {
        (
            f64::from(accepted),
            steps_in(&pooled.histogram, ..=accepted),
        )
    })
}

fn add_requests(samples: &mut Samples, labels: &Labels, counts: &Counts) {
    for (&acceptance, &exchanges) in &counts.exchanges {
        let mut without_reason = exchanges;
        for (&reason, &with_reason) in counts.reasons.get(&acceptance).into_iter().flatten() {
            without_reason = without_reason.saturating_sub(with_reason);
            let more = [
                ("acceptance", acceptance.as_str()),
                ("reason", reason.as_str()),
            ];
            samples.count(labels, &more, with_reason);
        }
        if without_reason > 0 {
            let more = [("acceptance", acceptance.as_str()), ("reason", "none")];
            samples.count(labels, &more, without_reason);
        }
    }
}

fn add_violations(samples: &mut Samples, labels: &Labels, counts: &Counts) {
    let malformed = counts.reasons.get(&Acceptance::Malformed);
    for (&reason, &exchanges) in malformed.into_iter().flatten() {
        samples.count(labels, &[("kind", reason.as_str())], exchanges);
    }
    if counts.contradictions > 0 {
        samples.count(labels, &[("kind", "mean_or_rate")], counts.contradictions);
    }
}
