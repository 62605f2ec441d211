//! Engines that tell totals alone count in accepted, drafted and rate, and nowhere else; what is nominal is not clamped.

#![allow(
    clippy::expect_used,
    reason = "a test fails loudly; clippy sees only the test functions as tests"
)]

mod numbers_support;

use numbers_support::{record, recorded, statistics};
use prometheus::{Registry, TextEncoder};
use spectap::export::prometheus::{BuildInfo, register};
use spectap::export::{By, Query, summary};
use spectap::observation::Observation;
use spectap::record::{AcceptanceRecord, EngineName, Provenance};

/// What only records with a histogram may fill.
const OF_STEPS: &[&str] = &[
    "spec_decode_acceptance_length",
    "spec_decode_token_weighted_acceptance_length",
    "spec_decode_accepted_per_verified",
    "spec_decode_steps",
    "total_spec_decode_steps",
];

fn llamacpp() -> AcceptanceRecord {
    AcceptanceRecord::of_counts(EngineName::LlamaCpp, 25, 60)
}

/// Totals beside which the engine tells its steps.
fn mlx_vlm() -> AcceptanceRecord {
    let mut record = AcceptanceRecord::of_counts(EngineName::MlxVlm, 30, 60);
    record.num_spec_steps = Some(20);
    record.mean_acceptance_length = record.derived_length();
    record
}

fn nominal() -> AcceptanceRecord {
    AcceptanceRecord {
        provenance: Provenance::Histogram,
        draft_acceptance_rate: Some(1.25),
        mean_acceptance_length: Some(2.0),
        acceptance_histogram: [(1, 5)].into(),
        num_spec_steps: Some(5),
        nominal_drafts: true,
        ..AcceptanceRecord::of_counts(EngineName::Sglang, 5, 4)
    }
}

fn scrape(exchanges: Vec<Observation>) -> String {
    let registry = Registry::new();
    let build = BuildInfo {
        version: "1.2.3".into(),
        commit: "abc".into(),
    };
    register(&registry, statistics(exchanges), &build, 5000).expect("fresh names");
    TextEncoder::new()
        .encode_to_string(&registry.gather())
        .expect("text")
}

#[test]
fn totals_alone_fill_accepted_drafted_and_rate_only() {
    let exchanges = [llamacpp(), mlx_vlm()].map(|record| recorded(vec![record]));
    let summary = summary(&statistics(exchanges), &Query::default());
    assert_eq!(summary.n.recorded, 2);
    for metrics in [&summary.metrics, &summary.sequences.metrics] {
        let of = |tag: &str| metrics[tag].avg;
        assert_eq!(of("total_accepted_draft_tokens"), 55.0);
        assert_eq!(of("total_draft_tokens"), 120.0);
        let rate = of("spec_decode_overall_draft_acceptance_rate");
        assert!((rate - 100.0 * 55.0 / 120.0).abs() < 1e-9);
        assert_eq!(metrics["spec_decode_draft_acceptance_rate"].count, Some(2));
        for tag in OF_STEPS {
            assert!(!metrics.contains_key(*tag), "{tag}");
        }
    }
    assert!(summary.pooled_spec_decode_acceptance_histogram.is_empty());
    assert!(summary.survival.is_empty());
}

#[test]
fn totals_leave_every_figure_of_steps_as_it_was() {
    let histogram = || recorded(vec![record(&[8, 4, 3, 5])]);
    let alone = summary(&statistics([histogram()]), &Query::default());
    let with_totals = [
        histogram(),
        recorded(vec![llamacpp()]),
        recorded(vec![mlx_vlm()]),
    ];
    let query = Query {
        by: vec![By::Engine],
        ..Query::default()
    };
    let both = summary(&statistics(with_totals), &query);
    for tag in OF_STEPS {
        assert_eq!(both.metrics[*tag], alone.metrics[*tag], "{tag}");
    }
    assert_eq!(
        both.pooled_spec_decode_acceptance_histogram,
        alone.pooled_spec_decode_acceptance_histogram
    );
    assert_eq!(both.survival, alone.survival);
    assert_eq!(both.metrics["total_draft_tokens"].avg, 180.0);
    assert_eq!(both.groups.len(), 3);
}

#[test]
fn an_engine_without_steps_has_no_series_of_steps() {
    let text = scrape(vec![recorded(vec![llamacpp()])]);
    let labels = r#"{backend="llamacpp",model_name="m"}"#;
    assert!(text.contains(&format!(
        "spectap_spec_decode_num_draft_tokens_total{labels} 60\n"
    )));
    assert!(text.contains(&format!(
        "spectap_spec_decode_num_accepted_tokens_total{labels} 25\n"
    )));
    for series in [
        "num_drafts_total",
        "num_accepted_tokens_per_pos_total",
        "accepted_tokens_per_step_count",
    ] {
        let name = format!("spectap_spec_decode_{series}{{backend=\"llamacpp\"");
        assert!(!text.contains(&name), "{name}");
    }
}

#[test]
fn a_rate_above_1_is_shown_and_counted() {
    let exchanges = vec![recorded(vec![nominal()])];
    let summary = summary(&statistics(exchanges.clone()), &Query::default());
    let rate = &summary.metrics["spec_decode_draft_acceptance_rate"];
    assert_eq!(rate.avg, 125.0);
    assert!(scrape(exchanges).contains(
        r#"spectap_spec_decode_violations_total{backend="sglang",kind="mean_or_rate",model_name="m"} 1"#
    ));
}
