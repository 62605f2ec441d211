//! Rows give back what was put in, and samples merge to the same in any order and grouping.

use std::time::Duration;

use proptest::prelude::*;

use super::row::{Head, write_record};
use super::shape::{Shape, WrittenShape};
use super::*;
use crate::observation::{Acceptance, Observation, Outcome};
use crate::record::{AcceptanceRecord, Provenance};
use crate::stats::column::TrafficColumn;
use crate::stats::prepared::Prepared;
use crate::stats::tests::{observation, record};
use crate::stats::view::RecordValues;

/// Samples that give back these.
pub(in crate::stats) fn of_samples(samples: &[Sample]) -> Samples {
    let mut kept = Samples::default();
    for sample in samples {
        let mut bytes = Vec::new();
        let mut traffic = [None; 6];
        traffic[TrafficColumn::InterTokenLatency as usize] = sample.inter_token_latency_ms;
        let tokens = f64::from(sample.completion_tokens);
        traffic[TrafficColumn::OutputSequenceLength as usize] = (tokens > 0.0).then_some(tokens);
        Head {
            key: sample.key,
            is_sample: true,
            in_flight: u64::from(sample.in_flight),
            traffic: Some(traffic),
            records: usize::from(sample.has_record()),
        }
        .write(&mut bytes);
        if sample.has_record() {
            let count = |count: u32| (count > 0).then_some(u64::from(count));
            let values = RecordValues {
                length: sample.length(),
                rate: None,
                steps: count(sample.steps),
                accepted: u64::from(sample.accepted),
                drafted: u64::from(sample.drafted),
            };
            write_record(&mut bytes, &values, count(sample.k));
            WrittenShape::Unknown.write(&mut bytes);
        }
        kept.push(sample.key, &bytes);
    }
    kept
}

fn of(observations: &[Observation]) -> Samples {
    let mut samples = Samples::default();
    for observation in observations {
        let prepared = Prepared::new(observation);
        samples.push(prepared.key, &prepared.row);
    }
    samples
}

/// Exchanges one after the other.
fn exchanges(n: u64) -> Vec<Observation> {
    let one = |number: u64| {
        let mut exchange = observation(vec![record()]);
        exchange.started_at += Duration::from_micros(number * 17);
        exchange.in_flight = 1 + number % 300;
        exchange
    };
    (0..n).map(one).collect()
}

fn everything(samples: &Samples) -> Vec<Sample> {
    samples.first(usize::MAX, |_| true)
}

#[test]
fn thinned_samples_merge_to_the_sample_of_all() {
    let all = exchanges(10_000);
    let (mut whole, mut left, right) = (of(&all), of(&all[..9_000]), of(&all[9_000..]));
    left.thin_to(300);
    let mut one_way = left.clone();
    one_way.merge(&right);
    let mut other_way = right.clone();
    other_way.merge(&left);
    assert_eq!(everything(&one_way), everything(&other_way));
    let n = one_way.len();
    assert!(n > 300 && n < 400, "{n}");
    whole.thin_to(n);
    assert_eq!(everything(&one_way), everything(&whole));
    assert_eq!(everything(&one_way).len(), n);
}

#[test]
fn a_copy_keeps_what_it_had() {
    let all = exchanges(1_500);
    let mut samples = of(&all[..1_400]);
    let copy = samples.clone();
    samples.merge(&of(&all[1_400..]));
    samples.push(7, &[]);
    assert_eq!(everything(&copy), everything(&of(&all[..1_400])));
    assert_eq!(everything(&samples), everything(&of(&all)));
}

#[test]
fn equal_keys_do_no_harm() {
    let equal = exchanges(1_000);
    let mut samples = Samples::default();
    for exchange in &equal {
        samples.push(5, &Prepared::new(exchange).row);
    }
    samples.thin_to(10);
    assert!(samples.len() <= 10);
}

#[test]
fn keys_are_spread_evenly_and_the_same_for_a_row_without_ids_and_nanoseconds() {
    let all = exchanges(4_000);
    let mut quarters = [0; 4];
    for sample in of(&all).iter() {
        quarters[(sample.key >> 30) as usize] += 1;
    }
    assert!(
        quarters
            .iter()
            .all(|&count: &i32| (count - 1_000).abs() < 120),
        "{quarters:?}"
    );
    let mut live = all[5].clone();
    live.started_at += Duration::from_nanos(700);
    let row = Observation {
        id: String::new(),
        ..all[5].clone()
    };
    assert_eq!(everything(&of(&[live])), everything(&of(&[row])));
}

#[test]
fn foreign_samples_that_make_no_sense_give_some_answer() {
    let text = r#"{"below":0,"rows":[[1,true,18446744073709551615,[-1.0,null,1e300,0.0,-0.0,0.5],
        [[null,null,0,18446744073709551615,0,0,{"ordered":[]}],[1e300,-1.0,1,1,1,4294967296,{"histogram":[18446744073709551615]}]]]]}"#;
    let mut samples: Samples = serde_json::from_str(text).unwrap();
    assert!(samples.is_empty(), "no key is below 0");
    let text = text.replace("\"below\":0", "\"below\":null");
    let whole: Samples = serde_json::from_str(&text).unwrap();
    assert_eq!(everything(&whole)[0].in_flight, u32::MAX);
    samples.merge(&whole);
    samples.thin_to(0);
    assert!(samples.is_empty());
}

fn records() -> impl Strategy<Value = AcceptanceRecord> {
    let steps = prop::collection::vec((0_u64..5, 0_u64..2), 1..40);
    (steps, 0_u8..5, prop::option::of(0.0..9.0_f64)).prop_map(|(steps, kind, sent)| {
        let accepted: Vec<u64> = steps.iter().map(|(accepted, _)| *accepted).collect();
        let drafted: Vec<u64> = steps.iter().map(|(it, more)| (it + more).max(1)).collect();
        let mut histogram = std::collections::BTreeMap::new();
        for &accepted in &accepted {
            *histogram.entry(accepted as u32).or_default() += 1;
        }
        let is_even = kind == 1 || kind == 2;
        let all_drafted = if is_even {
            5 * accepted.len() as u64
        } else {
            drafted.iter().sum()
        };
        let base = record();
        AcceptanceRecord {
            provenance: match kind {
                0 => Provenance::Counts,
                1 => Provenance::Histogram,
                _ => Provenance::PerStep,
            },
            acceptance_histogram: histogram,
            num_accepted_draft_tokens: accepted.iter().sum(),
            num_draft_tokens: all_drafted,
            num_spec_steps: Some(accepted.len() as u64),
            num_spec_tokens: (kind != 4).then_some(5),
            mean_acceptance_length: sent,
            draft_acceptance_rate: None,
            per_step_accepted: (kind >= 2).then_some(accepted),
            per_step_drafted: (kind >= 3).then_some(drafted),
            ..base
        }
    })
}

fn any_exchange() -> impl Strategy<Value = Observation> {
    let times = prop::array::uniform4(prop::option::of(prop_oneof![
        (0_u32..2_000).prop_map(f64::from),
        0.0..1e5_f64
    ]));
    (
        prop::collection::vec(records(), 0..3),
        times,
        prop::option::of(0_u64..3_000),
        any::<(bool, bool)>(),
        0_u64..500,
    )
        .prop_map(|(records, times, tokens, (complete, derived), in_flight)| {
            let mut exchange = observation(records);
            if exchange.spec_decode_acceptance.is_empty() {
                exchange.acceptance = Some(Acceptance::Absent);
            }
            if !complete {
                exchange.outcome = Outcome::Cancelled;
            }
            exchange.in_flight = in_flight;
            exchange.usage.completion_tokens = tokens;
            exchange.usage.prompt_tokens = tokens.map(|tokens| tokens * 3);
            let timing = &mut exchange.timing;
            timing.time_to_first_token_ms = times[0];
            timing.request_latency_ms = times[1];
            timing.inter_chunk_latency_ms = times[2];
            timing.inter_token_latency_ms = match (derived, times, tokens) {
                (true, [Some(first), Some(latency), ..], Some(tokens @ 2..)) => {
                    Some((latency - first) / (tokens - 1) as f64)
                }
                _ => times[3],
            };
            exchange
        })
}

proptest! {
    #[test]
    fn a_row_gives_back_the_values_of_its_exchange_to_the_last_digit(exchange in any_exchange()) {
        let prepared = Prepared::new(&exchange);
        let row = Row::read(&prepared.row).unwrap();
        prop_assert_eq!(row.key, prepared.key);
        prop_assert_eq!(row.is_sample, prepared.is_sample);
        prop_assert_eq!(row.in_flight, exchange.in_flight);
        prop_assert_eq!(row.traffic, prepared.traffic);
        let read: Vec<_> = row.records.collect();
        prop_assert_eq!(read.len(), prepared.records.len());
        for (read, prepared) in read.iter().zip(&prepared.records) {
            prop_assert_eq!(read.values, prepared.values);
            prop_assert_eq!(read.k, prepared.record.num_spec_tokens);
            match &prepared.ordered {
                Some(ordered) => {
                    let stretches: Vec<_> = read.shape.stretches(ordered.k).collect();
                    prop_assert_eq!(&stretches, &ordered.stretches);
                    prop_assert_eq!(read.shape.stretches(ordered.k + 1).count(), 0);
                }
                None => prop_assert!(!matches!(read.shape, Shape::Ordered(_))),
            }
            if let Shape::Histogram(_) = read.shape {
                let histogram = read.shape.histogram();
                let buckets = (0..).zip(histogram).filter(|(_, steps)| *steps > 0);
                prop_assert!(buckets.eq(prepared.record.acceptance_histogram.iter().map(|(j, n)| (*j, *n))));
            }
        }
        if prepared.is_sample {
            let record = exchange.spec_decode_acceptance.first();
            prop_assert_eq!(Sample::of_row(&row), Sample::of(&exchange, record));
        }
    }

    #[test]
    fn samples_go_through_json_unchanged(all in prop::collection::vec(any_exchange(), 0..20), thin: bool) {
        let mut samples = of(&all);
        if thin {
            samples.thin_to(all.len() / 2);
        }
        let text = serde_json::to_string(&samples).unwrap();
        let read: Samples = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(read.len(), samples.len());
        prop_assert!(read.rows().zip(samples.rows()).all(|(read, own)| read.bytes == own.bytes));
        prop_assert_eq!(serde_json::to_string(&read).unwrap(), text);
    }
}
