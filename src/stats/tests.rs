//! What is counted where, and that memory stays bounded.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use super::*;
use crate::observation::{Acceptance, Facets, Outcome, Reason, Route, Timing, Usage};
use crate::record::{AcceptanceRecord, EngineName, Provenance, Recomputed};

pub(super) fn observation(records: Vec<AcceptanceRecord>) -> Observation {
    let started_at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    Observation {
        id: "01J00000000000000000000000".into(),
        request_id: None,
        x_request_id: None,
        trace_id: None,
        started_at,
        ended_at: started_at + Duration::from_millis(100),
        lane: "127.0.0.1:8090".into(),
        route: Route::ChatCompletions,
        model: Some("m".into()),
        tag: None,
        run: None,
        stream: true,
        n: 1,
        prompts: 1,
        stream_options_asked: None,
        in_flight: 1,
        status: Some(200),
        outcome: Outcome::Complete,
        acceptance: Some(Acceptance::Recorded),
        reason: None,
        finish_reasons: Vec::new(),
        facets: Facets::default(),
        usage: Usage::default(),
        timing: Timing::default(),
        engine_metrics: BTreeMap::new(),
        content_chunks: 1,
        spec_decode_acceptance: records,
    }
}

/// 4 steps: one accepted nothing, three accepted 2 of 4.
pub(super) fn record() -> AcceptanceRecord {
    AcceptanceRecord {
        engine: EngineName::Vllm,
        provenance: Provenance::Histogram,
        choice_index: None,
        mean_acceptance_length: Some(2.5),
        draft_acceptance_rate: Some(0.375),
        acceptance_histogram: [(0, 1), (2, 3)].into(),
        num_accepted_draft_tokens: 6,
        num_draft_tokens: 16,
        num_spec_steps: Some(4),
        num_spec_tokens: Some(4),
        completion_tokens: None,
        per_step_accepted: None,
        per_step_drafted: None,
        recomputed: None,
        nominal_drafts: false,
        zero_filled: false,
    }
}

fn zero_step() -> AcceptanceRecord {
    AcceptanceRecord {
        mean_acceptance_length: Some(1.0),
        draft_acceptance_rate: Some(0.0),
        acceptance_histogram: BTreeMap::new(),
        num_accepted_draft_tokens: 0,
        num_draft_tokens: 0,
        num_spec_steps: Some(0),
        ..record()
    }
}

/// All groups in one.
fn whole(observations: impl IntoIterator<Item = Observation>) -> Group {
    let statistics = Statistics::new();
    for observation in observations {
        statistics.record(Arc::new(observation));
    }
    let mut whole = Group::default();
    for (_, group) in statistics.groups(|_| true) {
        whole.merge(&group);
    }
    whole
}

#[test]
fn only_answered_exchanges_on_observed_routes_count() {
    let mut elsewhere = observation(vec![record()]);
    elsewhere.route = Route::Other;
    let mut refused = observation(vec![record()]);
    refused.status = Some(404);
    let mut unanswered = observation(vec![record()]);
    unanswered.status = None;
    let group = whole([elsewhere, refused, unanswered]);
    assert!(group.exchanges.is_empty());
    assert_eq!(group.all_pooled(), Pooled::default());
}

#[test]
fn a_cancelled_exchange_counts_in_all_but_not_in_aiperf() {
    let mut cancelled = observation(vec![record()]);
    cancelled.outcome = Outcome::Cancelled;
    let mut silent = observation(vec![record()]);
    silent.content_chunks = 0;
    let group = whole([cancelled, silent]);
    assert_eq!(group.all_pooled().records, 2);
    assert_eq!(group.aiperf.pooled, Pooled::default());
    assert_eq!(
        group
            .traffic(&[TrafficColumn::RequestLatency])
            .remove(0)
            .statistic(),
        None
    );
}

#[test]
fn several_sequences_count_each_in_all_and_not_in_aiperf() {
    let mut several = observation(vec![record(), record(), zero_step()]);
    several.n = 3;
    let group = whole([several]);
    assert_eq!(group.all_pooled().records, 2);
    assert_eq!(group.all_pooled().zero_step, 1);
    assert_eq!(group.all_pooled().steps, 8);
    assert_eq!(group.aiperf.pooled, Pooled::default());
    assert_eq!(group.exchanges[&Acceptance::Recorded], 1);
}

#[test]
fn two_records_where_one_was_asked_for_are_not_for_aiperf() {
    let group = whole([observation(vec![record(), record()])]);
    assert_eq!(
        (group.aiperf.pooled.records, group.all_pooled().records),
        (0, 2)
    );
}

#[test]
fn a_record_of_a_malformed_exchange_counts_nowhere_but_in_the_reasons() {
    let mut malformed = observation(vec![record()]);
    malformed.acceptance = Some(Acceptance::Malformed);
    malformed.reason = Some(Reason::IdentitySum);
    let group = whole([malformed]);
    assert_eq!(group.all_pooled(), Pooled::default());
    assert_eq!(group.exchanges[&Acceptance::Malformed], 1);
    assert_eq!(
        group.reasons[&Acceptance::Malformed][&Reason::IdentitySum],
        1
    );
}

#[test]
fn totals_alone_count_in_the_rate_and_not_in_the_length() {
    let totals = AcceptanceRecord {
        provenance: Provenance::Counts,
        mean_acceptance_length: None,
        draft_acceptance_rate: None,
        acceptance_histogram: BTreeMap::new(),
        num_accepted_draft_tokens: 10,
        num_draft_tokens: 16,
        num_spec_steps: None,
        ..record()
    };
    let group = whole([observation(vec![record()]), observation(vec![totals])]);
    let pooled = &group.aiperf.pooled;
    assert_eq!(pooled.length(), Some(2.5));
    assert_eq!(pooled.rate(), Some(0.5));
    assert_eq!(pooled.histogram, record().acceptance_histogram);
    let count = |column| {
        let mut values = group.records(ViewName::Aiperf, &[column]);
        values.remove(0).statistic().map(|it| it.count)
    };
    assert_eq!(count(RecordColumn::AcceptanceLength), Some(1));
    assert_eq!(count(RecordColumn::Steps), Some(1));
    assert_eq!(count(RecordColumn::DraftAcceptanceRate), Some(2));
}

#[test]
fn a_mean_that_contradicts_its_counts_gives_way_to_them_and_is_counted() {
    let lying = AcceptanceRecord {
        mean_acceptance_length: Some(5.0),
        recomputed: Some(Recomputed {
            mean_acceptance_length: Some(2.5),
            draft_acceptance_rate: Some(0.375),
        }),
        ..record()
    };
    let group = whole([observation(vec![lying])]);
    let mut lengths = group.records(ViewName::Aiperf, &[RecordColumn::AcceptanceLength]);
    let length = lengths.remove(0).statistic().unwrap();
    assert_eq!(length.avg, 2.5);
    assert_eq!(group.contradictions, 1);
}

#[test]
fn model_names_beyond_the_limit_count_as_other() {
    let statistics = Statistics::new();
    for model in 0..MOST_MODELS + 20 {
        let mut observation = observation(vec![record()]);
        observation.model = Some(format!("model {model:03}"));
        statistics.record(Arc::new(observation));
    }
    let groups = statistics.groups(|_| true);
    assert_eq!(groups.len(), MOST_MODELS + 1);
    let (_, other) = groups
        .iter()
        .find(|(key, _)| key.model.as_deref() == Some(OTHER))
        .unwrap();
    assert_eq!(other.all_pooled().records, 20);
}

#[test]
fn groups_beyond_the_limit_fold_together_and_nothing_is_lost() {
    let statistics = Statistics::new();
    let mut sent = 0;
    for model in 0..MOST_MODELS {
        for tag in 0..MOST_TAGS + 5 {
            let mut observation = observation(vec![zero_step()]);
            observation.model = Some(format!("model {model:03}"));
            observation.tag = Some(format!("tag {tag:03}"));
            statistics.record(Arc::new(observation));
            sent += 1;
        }
    }
    let groups = statistics.groups(|_| true);
    assert!(groups.len() <= MOST_GROUPS + 1, "{} groups", groups.len());
    let counted: u64 = groups
        .iter()
        .map(|(_, group)| group.all_pooled().zero_step)
        .sum();
    assert_eq!(counted, sent);
}

#[test]
fn sums_stop_at_the_largest_integer() {
    let huge = AcceptanceRecord {
        num_draft_tokens: u64::MAX,
        ..record()
    };
    let mut pooled = Pooled::default();
    pooled.add(&huge);
    pooled.add(&huge);
    assert_eq!(pooled.drafted, u64::MAX);
    assert_eq!(pooled.accepted, 12);
}
