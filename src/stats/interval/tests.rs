//! Intervals against the theory.

use super::*;
use crate::stats::samples::tests::of_samples;

fn sample(key: u32, steps: u32, accepted: u32) -> Sample {
    Sample {
        key,
        steps,
        accepted,
        drafted: 4 * steps,
        k: 4,
        completion_tokens: 0,
        inter_token_latency_ms: None,
        in_flight: 1,
    }
}

fn pool(samples: &[Sample]) -> (Pooled, Samples) {
    let mut pooled = Pooled::default();
    for sample in samples {
        pooled.records += 1;
        pooled.records_with_steps += 1;
        pooled.steps += u64::from(sample.steps);
        pooled.accepted += u64::from(sample.accepted);
        pooled.accepted_in_steps += u64::from(sample.accepted);
        pooled.drafted += u64::from(sample.drafted);
    }
    (pooled, of_samples(samples))
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
