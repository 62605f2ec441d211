//! The Prometheus series say what the JSON says, under the names and labels that are promised.

#![allow(
    clippy::expect_used,
    reason = "a test fails loudly; clippy sees only the test functions as tests"
)]

mod numbers_support;

use std::collections::BTreeMap;
use std::sync::Arc;

use numbers_support::{aiperf_observations, observation, record, recorded, statistics};
use prometheus::{Registry, TextEncoder};
use spectap::export::prometheus::{BuildInfo, register};
use spectap::export::{Query, summary};
use spectap::observation::{Observation, ObservationSink, Route};
use spectap::record::Recomputed;
use spectap::stats::{Facet, Statistics};

fn scrape(exchanges: Vec<Observation>) -> BTreeMap<String, f64> {
    series_of(&scrape_text(exchanges))
}

/// The same with a facet as a label.
fn scrape_by(facet: Facet, exchanges: Vec<Observation>) -> BTreeMap<String, f64> {
    let statistics = Statistics::new().counting_by(facet);
    for exchange in exchanges {
        statistics.record(Arc::new(exchange));
    }
    series_of(&text_of(Arc::new(statistics)))
}

fn series_of(text: &str) -> BTreeMap<String, f64> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let (series, value) = line.rsplit_once(' ').expect("series and value");
            (series.to_owned(), value.parse().expect("a number"))
        })
        .collect()
}

fn scrape_text(exchanges: Vec<Observation>) -> String {
    text_of(statistics(exchanges))
}

fn text_of(statistics: Arc<Statistics>) -> String {
    let registry = Registry::new();
    let build = BuildInfo {
        version: "1.2.3".into(),
        commit: "abc".into(),
    };
    register(&registry, statistics, &build, 5000).expect("fresh names");
    TextEncoder::new()
        .encode_to_string(&registry.gather())
        .expect("text")
}

#[test]
fn counters_and_the_step_histogram_equal_the_json() {
    let exchanges = aiperf_observations("aiperf-vllm");
    let json = summary(&statistics(exchanges.clone()), &Query::default()).sequences;
    let mut exchanges = exchanges;
    for exchange in &mut exchanges {
        exchange.model = Some("m".into());
    }
    let series = scrape(exchanges);
    let labels = r#"{backend="vllm",model_name="m"}"#;
    let of = |name: &str| series[&format!("spectap_spec_decode_{name}{labels}")];
    let json_of = |tag: &str| json.metrics[tag].avg;
    assert_eq!(of("num_drafts_total"), json_of("total_spec_decode_steps"));
    assert_eq!(of("num_draft_tokens_total"), json_of("total_draft_tokens"));
    assert_eq!(
        of("num_accepted_tokens_total"),
        json_of("total_accepted_draft_tokens")
    );
    assert_eq!(
        of("accepted_tokens_per_step_sum"),
        json_of("total_accepted_draft_tokens")
    );
    assert_eq!(
        of("accepted_tokens_per_step_count"),
        json_of("total_spec_decode_steps")
    );
    assert_eq!(of("acceptance_length_count"), 37.0);
    let sum = json.metrics["spec_decode_acceptance_length"]
        .sum
        .expect("a sum");
    assert!((of("acceptance_length_sum") - sum).abs() < 1e-9);

    let mut below = 0.0;
    for bound in 0..=16_u32 {
        let steps = json.pooled_spec_decode_acceptance_histogram.get(&bound);
        below += steps.copied().unwrap_or(0) as f64;
        let bucket = format!(
            r#"spectap_spec_decode_accepted_tokens_per_step_bucket{{backend="vllm",model_name="m",le="{bound}"}}"#
        );
        assert_eq!(series[&bucket], below, "{bucket}");
    }
    let position = |position: u32| {
        series[&format!(
            r#"spectap_spec_decode_num_accepted_tokens_per_pos_total{{backend="vllm",model_name="m",position="{position}"}}"#
        )]
    };
    let positions: f64 = (0..5).map(position).sum();
    assert_eq!(
        positions,
        of("num_accepted_tokens_total"),
        "each accepted draft has one position"
    );
    assert_eq!(position(4), 68.0, "the steps that accepted all five");
}

#[test]
fn every_exchange_is_in_requests_total_with_its_reason() {
    let series = scrape(aiperf_observations("aiperf-vllm"));
    let of = |backend: &str, acceptance: &str, reason: &str| {
        series[&format!(
            r#"spectap_spec_decode_requests_total{{acceptance="{acceptance}",backend="{backend}",model_name="m",reason="{reason}"}}"#
        )]
    };
    assert_eq!(of("vllm", "recorded", "none"), 37.0);
    assert_eq!(of("vllm", "zero_step", "none"), 6.0);
    assert_eq!(of("unknown", "absent", "unknown"), 7.0);
    assert_eq!(of("unknown", "ambiguous", "two_payloads"), 1.0);
    assert_eq!(of("unknown", "malformed", "bad_number"), 4.0);
    let violation = r#"spectap_spec_decode_violations_total{backend="unknown",kind="bad_number",model_name="m"}"#;
    assert_eq!(series[violation], 4.0);
    let all: f64 = series
        .iter()
        .filter(|(name, _)| name.starts_with("spectap_spec_decode_requests_total"))
        .map(|(_, value)| value)
        .sum();
    assert_eq!(all, 60.0);
}

#[test]
fn times_are_in_seconds_and_routes_fold_together() {
    let mut chat = recorded(vec![record(&[1, 1])]);
    chat.timing.request_latency_ms = Some(250.0);
    chat.timing.time_to_first_token_ms = Some(50.0);
    chat.usage.prompt_tokens = Some(7);
    chat.usage.completion_tokens = Some(3);
    let mut completion = chat.clone();
    completion.route = Route::Completions;
    let series = scrape(vec![chat, completion]);
    let labels = r#"backend="vllm",model_name="m""#;
    assert_eq!(
        series[&format!("spectap_e2e_request_latency_seconds_sum{{{labels}}}")],
        0.5
    );
    assert_eq!(
        series[&format!("spectap_e2e_request_latency_seconds_count{{{labels}}}")],
        2.0
    );
    assert_eq!(
        series[&format!(r#"spectap_time_to_first_token_seconds_bucket{{{labels},le="0.06"}}"#)],
        2.0
    );
    assert_eq!(
        series[&format!(r#"spectap_time_to_first_token_seconds_bucket{{{labels},le="0.04"}}"#)],
        0.0
    );
    assert_eq!(
        series[&format!("spectap_prompt_tokens_total{{{labels}}}")],
        14.0
    );
    assert_eq!(
        series[&format!("spectap_generation_tokens_total{{{labels}}}")],
        6.0
    );
}

#[test]
fn only_counters_of_tagged_exchanges_carry_the_tag() {
    let mut tagged = recorded(vec![record(&[1, 1])]);
    tagged.tag = Some("math".into());
    let text = scrape_text(vec![tagged, recorded(vec![record(&[1, 1])])]);
    let series: Vec<&str> = text.lines().filter(|line| line.contains("tag=")).collect();
    assert!(
        series.contains(
            &r#"spectap_spec_decode_num_drafts_total{backend="vllm",model_name="m",tag="math"} 2"#
        ),
        "{series:#?}"
    );
    assert!(
        text.contains("spectap_spec_decode_num_drafts_total{backend=\"vllm\",model_name=\"m\"} 2")
    );
    assert!(text.contains(
        "spectap_spec_decode_acceptance_length_count{backend=\"vllm\",model_name=\"m\"} 2"
    ));
}

#[test]
fn a_contradicting_mean_is_a_violation() {
    let mut lying = record(&[1, 1]);
    lying.mean_acceptance_length = Some(9.0);
    assert!(lying.note_contradiction());
    assert!(matches!(lying.recomputed, Some(Recomputed { .. })));
    let series = scrape(vec![recorded(vec![lying])]);
    let name = r#"spectap_spec_decode_violations_total{backend="vllm",kind="mean_or_rate",model_name="m"}"#;
    assert_eq!(series[name], 1.0);
}

#[test]
fn help_says_what_the_engine_vocabulary_hides() {
    let text = scrape_text(vec![recorded(vec![record(&[1, 1])])]);
    assert!(text.contains("# HELP spectap_spec_decode_num_drafts_total Verify steps"));
    let length = text
        .lines()
        .find(|line| line.starts_with("# HELP spectap_spec_decode_acceptance_length "))
        .expect("a HELP line");
    assert!(length.contains("includes the bonus token"));
    assert!(text.contains(r#"spectap_build_info{commit="abc",version="1.2.3"} 1"#));
}

#[test]
fn without_exchanges_there_are_no_series_but_the_build() {
    let series = scrape(Vec::new());
    assert_eq!(series.len(), 2, "{series:?}");
    let mut nameless = observation();
    nameless.model = None;
    let series = scrape(vec![nameless]);
    let name = r#"spectap_spec_decode_requests_total{acceptance="absent",backend="unknown",model_name="unknown",reason="unknown"}"#;
    assert_eq!(series[name], 1.0);
}

#[test]
fn the_series_stay_within_the_budget_and_no_count_is_lost() {
    let exchanges = || {
        (0..100).flat_map(|model| {
            (0..20).map(move |tag| {
                let mut exchange = recorded(vec![record(&[3, 2, 1])]);
                exchange.model = Some(format!("model-{model}"));
                exchange.tag = Some(format!("tag-{tag}"));
                exchange
            })
        })
    };
    let series = scrape(exchanges().collect());
    assert!(series.len() < 5000, "{} series", series.len());
    assert!(series["spectap_folded_label_sets"] > 0.0);
    let sum = |name: &str| -> f64 {
        let of_name = series.iter().filter(|(series, _)| series.starts_with(name));
        of_name.map(|(_, value)| value).sum()
    };
    assert_eq!(sum("spectap_spec_decode_num_drafts_total{"), 2000.0 * 6.0);
    assert_eq!(sum("spectap_spec_decode_acceptance_length_count{"), 2000.0);
    assert!(
        series
            .keys()
            .any(|series| series.contains(r#"model_name="other""#))
    );
    // Few label sets keep their names.
    assert_eq!(
        scrape(exchanges().take(1).collect())["spectap_folded_label_sets"],
        0.0
    );
}

#[test]
fn models_keep_their_names_before_tags_do_and_before_those_without_numbers() {
    // As they are before the first scrape: all at once, those without a known engine first in the order of the keys.
    let exchanges = |models: u32, tags: u32| {
        let sets = (0..models).flat_map(move |model| (0..tags).map(move |tag| (model, tag)));
        let exchanges = sets.flat_map(|(model, tag)| {
            let mut known = recorded(vec![record(&[3, 2, 1])]);
            known.model = Some(format!("model-{model}"));
            known.tag = Some(format!("tag-{tag}"));
            let mut untold = observation();
            (untold.model, untold.tag) = (known.model.clone(), known.tag.clone());
            [known, untold]
        });
        scrape(exchanges.collect())
    };
    let folded = "spectap_folded_label_sets";
    assert_eq!(exchanges(3, 10)[folded], 0.0);
    let crowded = exchanges(18, 10);
    assert!(crowded[folded] > 0.0);
    for model in 0..18 {
        let length = format!(
            r#"spectap_spec_decode_acceptance_length_count{{backend="vllm",model_name="model-{model}"}}"#
        );
        assert_eq!(crowded[&length], 10.0, "{length}");
    }
}

/// The same series without the facet's label, summed.
fn without_label(series: &BTreeMap<String, f64>, label: &str) -> BTreeMap<String, f64> {
    let mut sums = BTreeMap::new();
    for (name, value) in series {
        let name = match name.split_once(&format!("{label}=\"")) {
            Some((before, behind)) => {
                let (_, behind) = behind.split_once('"').expect("an end");
                // The labels are sorted: this one may be the first, the last or between two.
                let behind = behind.strip_prefix(',').unwrap_or(behind);
                format!("{before}{behind}").replace(",}", "}")
            }
            None => name.clone(),
        };
        *sums.entry(name).or_default() += value;
    }
    sums
}

/// Exchanges of all kinds, with one token count or another.
fn of_many_lengths() -> Vec<Observation> {
    let mut exchanges = aiperf_observations("aiperf-vllm");
    for (exchange, number) in exchanges.iter_mut().zip(0..) {
        exchange.usage.prompt_tokens = [None, Some(10), Some(200), Some(3_000)][number % 4];
        exchange.tag = [None, Some("math".to_owned())][number % 2].clone();
        exchange.stream = number % 3 == 0;
    }
    exchanges
}

#[test]
fn a_facet_divides_the_acceptance_counters_and_nothing_else() {
    let plain = scrape(of_many_lengths());
    for (facet, values) in [(Facet::Prompt, 4), (Facet::Stream, 2), (Facet::Cached, 1)] {
        let label = facet.as_str();
        let divided = scrape_by(facet, of_many_lengths());
        assert_eq!(without_label(&divided, label), plain, "{label}");
        let with_label: Vec<&String> = divided
            .keys()
            .filter(|name| name.contains(&format!("{label}=\"")))
            .collect();
        let of_counter = |counter: &str| {
            let found = with_label.iter().filter(|name| {
                name.starts_with(&format!("spectap_spec_decode_{counter}_total{{"))
                    && name.contains("vllm")
                    && !name.contains("tag")
            });
            found.count()
        };
        assert!(
            of_counter("num_drafts") <= values,
            "{label}: {with_label:#?}"
        );
        for name in &with_label {
            let counter = name.split('{').next().expect("a name");
            assert!(
                counter.starts_with("spectap_spec_decode_") && counter.ends_with("_total"),
                "{name}"
            );
        }
        // Each counter has it, wherever it stands.
        for name in divided
            .keys()
            .filter(|name| name.starts_with("spectap_spec_decode_") && name.contains("_total{"))
        {
            assert!(name.contains(&format!("{label}=\"")), "{name}");
        }
    }
    let divided = scrape_by(Facet::Prompt, of_many_lengths());
    let steps =
        r#"spectap_spec_decode_num_drafts_total{backend="vllm",model_name="m",prompt="up_to_256"}"#;
    assert!(divided.contains_key(steps), "{divided:#?}");
}

#[test]
fn a_facet_stays_within_the_budget_and_no_count_is_lost() {
    let exchanges: Vec<Observation> = (0..40)
        .flat_map(|model| {
            [1, 2, 4, 8, 16, 32, 64, 128, 256, 1000].map(|in_flight| {
                let mut exchange = recorded(vec![record(&[3, 2, 1])]);
                exchange.model = Some(format!("model-{model}"));
                exchange.in_flight = in_flight;
                exchange
            })
        })
        .collect();
    let series = scrape_by(Facet::Concurrency, exchanges);
    assert!(series.len() < 5000, "{} series", series.len());
    assert!(series["spectap_folded_label_sets"] > 0.0);
    let drafts = series
        .iter()
        .filter(|(name, _)| name.starts_with("spectap_spec_decode_num_drafts_total{"));
    assert_eq!(drafts.map(|(_, value)| value).sum::<f64>(), 400.0 * 6.0);
    let folded = r#"spectap_spec_decode_num_drafts_total{backend="vllm",concurrency="other",model_name="other"}"#;
    assert!(series.contains_key(folded), "{series:#?}");
}

#[test]
fn the_many_models_that_count_as_other_do_not_escape_the_budget_by_a_facet() {
    // 300 models, of which 100 keep their names; the rest come in at every concurrency.
    let exchanges: Vec<Observation> = (0..3_000)
        .map(|number| {
            let mut exchange = recorded(vec![record(&[3, 2, 1, 0, 0, 0, 0, 0, 1])]);
            exchange.model = Some(format!("model-{}", number / 10));
            exchange.tag = Some(format!("tag-{}", number % 7));
            exchange.in_flight = 1 << (number % 10);
            exchange
        })
        .collect();
    let series = scrape_by(Facet::Concurrency, exchanges);
    assert!(series.len() < 5000, "{} series", series.len());
    let drafts = series
        .iter()
        .filter(|(name, _)| name.starts_with("spectap_spec_decode_num_drafts_total{"));
    assert_eq!(drafts.map(|(_, value)| value).sum::<f64>(), 3_000.0 * 7.0);
}
