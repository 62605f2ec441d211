//! Intervals against the theory, and samples that merge to the same in any order.

use super::*;

fn sample(key: u32, steps: u32, accepted: u32) -> Sample {
    Sample {
        key,
        steps,
        accepted,
        drafted: 4 * steps,
        inter_token_latency_ms: None,
        in_flight: 1,
    }
}

fn pool(samples: &[Sample]) -> (Pooled, Samples) {
    let mut pooled = Pooled::default();
    let mut kept = Samples::default();
    for sample in samples {
        pooled.records += 1;
        pooled.records_with_steps += 1;
        pooled.steps += u64::from(sample.steps);
        pooled.accepted += u64::from(sample.accepted);
        pooled.accepted_in_steps += u64::from(sample.accepted);
        pooled.drafted += u64::from(sample.drafted);
        kept.push(*sample);
    }
    (pooled, kept)
}

/// Requests of ten steps whose accepted drafts are 10, 15, 20, 25 or 30.
fn requests(n: u32) -> Vec<Sample> {
    (0..n)
        .map(|number| {
            sample(
                number.wrapping_mul(2_654_435_761),
                10,
                10 + 5 * (number % 5),
            )
        })
        .collect()
}

#[test]
fn the_interval_is_as_wide_as_the_normal_one() {
    // The mean accepted per step is 2 with a deviation of √0.5 between requests: ± 1.96 · √(0.5 / 400).
    let (pooled, samples) = pool(&requests(400));
    let length = of_run(&pooled, &samples, SEED).length.unwrap();
    let half = 1.96 * (0.5_f64 / 400.0).sqrt();
    assert!((length.low - (3.0 - half)).abs() < 0.1 * half, "{length:?}");
    assert!(
        (length.high - (3.0 + half)).abs() < 0.1 * half,
        "{length:?}"
    );
    let rate = of_run(&pooled, &samples, SEED).rate.unwrap();
    assert!((rate.high - rate.low - (length.high - length.low) / 4.0).abs() < 1e-9);
    assert_eq!(length.level, 0.95);
}

#[test]
fn with_more_requests_than_are_drawn_from_it_is_as_narrow_as_all_of_them_make_it() {
    let (pooled, samples) = pool(&requests(20_000));
    let length = of_run(&pooled, &samples, SEED).length.unwrap();
    let half = 1.96 * (0.5_f64 / 20_000.0).sqrt();
    assert!(
        ((length.high - length.low) / 2.0 - half).abs() < 0.15 * half,
        "{length:?}"
    );
    assert!(length.low < 3.0 && 3.0 < length.high);
}

#[test]
fn fewer_than_two_requests_have_no_interval() {
    let (pooled, samples) = pool(&requests(1));
    assert_eq!(of_run(&pooled, &samples, SEED), RunIntervals::default());
    let (pooled, samples) = pool(&requests(2));
    assert!(of_run(&pooled, &samples, SEED).length.is_some());
}

#[test]
fn the_same_requests_give_the_same_interval_in_any_order() {
    let mut requests = requests(50);
    let (pooled, samples) = pool(&requests);
    requests.reverse();
    let (_, reversed) = pool(&requests);
    assert_eq!(
        of_run(&pooled, &samples, SEED),
        of_run(&pooled, &reversed, SEED)
    );
    assert_ne!(
        of_run(&pooled, &samples, SEED),
        of_run(&pooled, &samples, SEED + 1)
    );
}

#[test]
fn thinned_samples_merge_to_the_sample_of_all() {
    let all = requests(10_000);
    let places = |samples: &Samples| samples.first(usize::MAX, |_| true);
    let (_, mut whole) = pool(&all);
    let (_, mut left) = pool(&all[..9_000]);
    let (_, right) = pool(&all[9_000..]);
    left.thin_to(300);
    let mut one_way = left.clone();
    one_way.merge(&right);
    let mut other_way = right.clone();
    other_way.merge(&left);
    assert_eq!(places(&one_way), places(&other_way));
    assert!(
        one_way.len() > 300 && one_way.len() < 400,
        "{}",
        one_way.len()
    );
    whole.thin_to(one_way.len());
    assert_eq!(places(&one_way), places(&whole));
}

#[test]
fn equal_keys_do_no_harm() {
    let equal: Vec<Sample> = (0..1_000).map(|number| sample(5, 10, number)).collect();
    let (_, mut samples) = pool(&equal);
    samples.thin_to(10);
    assert!(samples.len() <= 10);
}

#[test]
fn samples_go_through_json_unchanged() {
    let mut requests = requests(20);
    requests[3].inter_token_latency_ms = Some(1.234_567_9);
    let (_, mut samples) = pool(&requests);
    samples.thin_to(15);
    let text = serde_json::to_string(&samples).unwrap();
    let read: Samples = serde_json::from_str(&text).unwrap();
    assert_eq!(read.first(99, |_| true), samples.first(99, |_| true));
    assert_eq!(serde_json::to_string(&read).unwrap(), text);
}

#[test]
fn keys_are_spread_evenly_and_the_same_for_a_row_without_ids_and_nanoseconds() {
    use crate::observation::Observation;
    use crate::stats::tests::{observation, record};
    use std::time::Duration;
    let at = |microseconds: u64| {
        let base = observation(vec![record()]);
        Observation {
            started_at: base.started_at + Duration::from_micros(microseconds),
            ..base
        }
    };
    let mut samples = Samples::default();
    for number in 0..4_000 {
        samples.add(&at(number * 17), Some(&record()));
    }
    let mut quarters = [0; 4];
    for sample in samples.iter() {
        quarters[(sample.key >> 30) as usize] += 1;
    }
    assert!(
        quarters
            .iter()
            .all(|&count: &i32| (count - 1_000).abs() < 120),
        "{quarters:?}"
    );
    let live = Observation {
        started_at: at(5).started_at + Duration::from_nanos(700),
        ..at(5)
    };
    let row = Observation {
        id: String::new(),
        ..at(5)
    };
    let only = |observation: &Observation| {
        let mut samples = Samples::default();
        samples.add(observation, Some(&record()));
        samples.first(1, |_| true)
    };
    assert_eq!(only(&live), only(&row));
}
