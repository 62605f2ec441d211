//! Histograms per record and per exchange, and the tokens of the usage objects. None of them carries a tag.

use std::collections::BTreeMap;

use prometheus::proto::MetricFamily;

use super::series::{Labels, Samples, Series, pairs};
use crate::export::exemplars::ExemplarTable;
use crate::stats::{Group, Histograms, RecordHistogram};

const LENGTH: Series = Series {
    name: "spectap_spec_decode_acceptance_length",
    help: "Tokens per verify step of each record; includes the bonus token.",
};
const RATE: Series = Series {
    name: "spectap_spec_decode_draft_acceptance_rate",
    help: "Accepted / drafted of each record, 0 to 1.",
};
const ACCEPTED_PER_VERIFIED: Series = Series {
    name: "spectap_spec_decode_accepted_per_verified",
    help: "(accepted + steps) / (drafted + steps) of each record: tokens won per token put through the target model.",
};
const STEPS: Series = Series {
    name: "spectap_spec_decode_steps",
    help: "Verify steps of each record.",
};
const REQUEST_LATENCY: Series = Series {
    name: "spectap_e2e_request_latency_seconds",
    help: "Request to last content chunk of each complete exchange with content, seen from the tap.",
};
const FIRST_TOKEN: Series = Series {
    name: "spectap_time_to_first_token_seconds",
    help: "Request to first content chunk of each complete streamed exchange, seen from the tap.",
};
const TOKEN_LATENCY: Series = Series {
    name: "spectap_request_time_per_output_token_seconds",
    help: "Time per output token after the first of each complete streamed exchange (AIPerf's inter-token latency).",
};
const CHUNK_LATENCY: Series = Series {
    name: "spectap_inter_chunk_latency_seconds",
    help: "Mean gap between content chunks of each complete streamed exchange; about the time of one verify step.",
};
const PROMPT_TOKENS: Series = Series {
    name: "spectap_prompt_tokens_total",
    help: "Prompt tokens of the usage objects.",
};
const GENERATION_TOKENS: Series = Series {
    name: "spectap_generation_tokens_total",
    help: "Completion tokens of the usage objects.",
};

pub(super) const ALL: [Series; 10] = [
    LENGTH,
    RATE,
    ACCEPTED_PER_VERIFIED,
    STEPS,
    REQUEST_LATENCY,
    FIRST_TOKEN,
    TOKEN_LATENCY,
    CHUNK_LATENCY,
    PROMPT_TOKENS,
    GENERATION_TOKENS,
];

/// The measures behind one set of labels.
#[derive(Default)]
pub(super) struct Measured {
    histograms: Histograms,
    prompt_tokens: u64,
    generation_tokens: u64,
}

/// Adds the values of records and exchanges.
pub(super) fn measure(measured: &mut Measured, histograms: &Histograms) {
    measured.histograms.merge(histograms);
}

/// The exemplars of the acceptance length.
pub(super) fn exemplars(measured: &BTreeMap<Labels, Measured>) -> ExemplarTable {
    let mut table = ExemplarTable::default();
    for (labels, measured) in measured {
        let histograms = &measured.histograms;
        let bounds = histograms.acceptance_length.bounds();
        let buckets = bounds.zip(histograms.length_exemplars.iter());
        let known = buckets.filter_map(|(bound, exemplar)| Some((bound, exemplar?.clone())));
        table.add(LENGTH.name, pairs(labels, &[]), known.collect());
    }
    table
}

/// Adds a group's tokens.
pub(super) fn count_tokens(measured: &mut Measured, group: &Group) {
    measured.prompt_tokens = measured.prompt_tokens.saturating_add(group.prompt_tokens);
    measured.generation_tokens = measured
        .generation_tokens
        .saturating_add(group.generation_tokens);
}

/// The families of these measures.
pub(super) fn families(measured: &BTreeMap<Labels, Measured>) -> Vec<MetricFamily> {
    let histogram = |series, of: fn(&Histograms) -> &RecordHistogram| {
        let mut samples = Samples::histogram(series);
        for (labels, measured) in measured {
            let values = of(&measured.histograms);
            if values.count() > 0 {
                samples.distribute(labels, values.cumulative(), values.count(), values.sum());
            }
        }
        samples.family()
    };
    let counter = |series, of: fn(&Measured) -> u64| {
        let mut samples = Samples::counter(series);
        for (labels, measured) in measured {
            samples.count(labels, &[], of(measured));
        }
        samples.family()
    };
    vec![
        histogram(&LENGTH, |all| &all.acceptance_length),
        histogram(&RATE, |all| &all.draft_acceptance_rate),
        histogram(&ACCEPTED_PER_VERIFIED, |all| &all.accepted_per_verified),
        histogram(&STEPS, |all| &all.steps),
        histogram(&REQUEST_LATENCY, |all| &all.request_latency),
        histogram(&FIRST_TOKEN, |all| &all.time_to_first_token),
        histogram(&TOKEN_LATENCY, |all| &all.inter_token_latency),
        histogram(&CHUNK_LATENCY, |all| &all.inter_chunk_latency),
        counter(&PROMPT_TOKENS, |measured| measured.prompt_tokens),
        counter(&GENERATION_TOKENS, |measured| measured.generation_tokens),
    ]
}
