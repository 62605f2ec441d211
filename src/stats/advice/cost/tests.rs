//! The cost that the step times were made with comes out again, and what can't tell is left out.

use super::*;
use crate::stats::samples::tests::of_samples;

/// A request at depth k whose steps took this long.
fn request(key: u32, k: u32, in_flight: u32, milliseconds: f64) -> Sample {
    let (steps, accepted) = (40, 20);
    let completion_tokens = 1 + steps + accepted;
    Sample {
        key,
        steps,
        accepted,
        drafted: k * steps,
        k,
        completion_tokens,
        inter_token_latency_ms: Some(
            milliseconds * f64::from(steps) / f64::from(completion_tokens - 1),
        ),
        in_flight,
    }
}

/// Requests by turns at depth 3 and 8: a step takes 10 ms and 0.5 ms for each draft, and twice that where 4 to 7 are in
/// flight.
fn requests(n: u32, noise: impl Fn(u32) -> f64) -> Vec<Sample> {
    let one = |number: u32| {
        let k = if number.is_multiple_of(2) { 3 } else { 8 };
        let busy = number % 4 < 2;
        let step = (10.0 + 0.5 * f64::from(k)) * if busy { 2.0 } else { 1.0 };
        let key = number.wrapping_mul(2_654_435_761);
        request(key, k, if busy { 4 } else { 1 }, step * noise(number))
    };
    (0..n).map(one).collect()
}

fn measured(samples: &[Sample]) -> Option<MeasuredCost> {
    measure(&of_samples(samples), [3, 8].into_iter()).map(|(measured, _)| measured)
}

#[test]
fn steps_that_take_target_and_draft_time_give_their_ratio() {
    let cost = measured(&requests(80, |_| 1.0)).unwrap();
    assert!((cost.value - 0.05).abs() < 1e-12, "{cost:?}");
    assert_eq!(cost.n, 80);
    let depths: Vec<(u32, u64)> = cost.depths.iter().map(|it| (it.k, it.n)).collect();
    assert_eq!(depths, [(3, 40), (8, 40)]);
    // Half of them busy: (11.5 + 23) / 2 and (14 + 28) / 2.
    assert!((cost.depths[0].milliseconds - 17.25).abs() < 1e-9);
    assert!((cost.depths[1].milliseconds - 21.0).abs() < 1e-9);
    assert!(cost.interval.low <= 0.05 && 0.05 <= cost.interval.high);
}

#[test]
fn the_ratio_is_that_of_least_squares_within_bands() {
    // By hand, each request weighing the same: band 1 has (3, 12), (8, 14) and (8, 16); band 4 has (3, 20), (3, 22) and (8, 27).
    // Band 1: k̄ = 19/3, ȳ = 14; Σ(k−k̄)² = 50/3, Σ(k−k̄)(y−ȳ) = 10. Band 4: k̄ = 14/3, ȳ = 23; Σ(k−k̄)² = 50/3,
    // Σ(k−k̄)(y−ȳ) = 20. Slope 30 / (100/3) = 0.9; target 18.5 − 0.9 · 5.5 = 13.55.
    let points = [
        (3, 1, 12.0),
        (8, 1, 14.0),
        (8, 1, 16.0),
        (3, 4, 20.0),
        (3, 4, 22.0),
        (8, 4, 27.0),
    ];
    let steps: Vec<Steps> = points
        .iter()
        .map(|&(k, in_flight, milliseconds)| {
            Steps::of(&request(1, k, in_flight, milliseconds)).unwrap()
        })
        .collect();
    assert!((ratio(steps.iter()).unwrap() - 0.9 / 13.55).abs() < 1e-12);
}

#[test]
fn the_interval_holds_the_true_cost_nearly_always() {
    let held = (0..40)
        .filter(|&seed| {
            let random = std::cell::RefCell::new(fastrand::Rng::with_seed(seed));
            let noise = |_| 0.9 + 0.2 * random.borrow_mut().f64();
            let interval = measured(&requests(60, noise)).unwrap().interval;
            assert!(interval.high - interval.low < 0.05, "{interval:?}");
            interval.low <= 0.05 && 0.05 <= interval.high
        })
        .count();
    assert!(held >= 34, "{held} of 40");
}

#[test]
fn drafts_that_seem_to_save_time_cost_nothing() {
    let faster = |number: u32| if number.is_multiple_of(2) { 1.5 } else { 1.0 };
    let cost = measured(&requests(80, faster)).unwrap();
    assert_eq!((cost.value, cost.interval.high), (0.0, 0.0));
}

#[test]
fn without_two_depths_that_have_enough_there_is_no_cost() {
    let all = requests(60, |_| 1.0);
    assert!(measured(&all).is_some());
    assert!(measured(&all[..59]).is_none(), "29 requests at depth 8");
    let of_3: Vec<Sample> = all.iter().copied().filter(|it| it.k == 3).collect();
    assert!(measured(&of_3).is_none());
    let short = all.iter().map(|it| Sample {
        steps: 20,
        accepted: 40,
        drafted: it.k * 20,
        ..*it
    });
    assert!(measured(&short.collect::<Vec<_>>()).is_none(), "600 steps");
}

#[test]
fn depths_that_never_met_the_same_concurrency_tell_nothing() {
    let apart = requests(80, |_| 1.0).into_iter().map(|it| Sample {
        in_flight: it.k,
        ..it
    });
    assert!(measured(&apart.collect::<Vec<_>>()).is_none());
}

#[test]
fn requests_whose_steps_can_not_be_timed_are_left_out() {
    let good = request(1, 3, 1, 10.0);
    assert!(Steps::of(&good).is_some());
    for (why, bad) in [
        (
            "no latency",
            Sample {
                inter_token_latency_ms: None,
                ..good
            },
        ),
        ("no steps", Sample { steps: 0, ..good }),
        ("no k", Sample { k: 0, ..good }),
        (
            "no tokens",
            Sample {
                completion_tokens: 0,
                ..good
            },
        ),
        (
            "steps of other widths",
            Sample {
                drafted: 100,
                ..good
            },
        ),
        (
            "passes without drafts",
            Sample {
                completion_tokens: 64,
                ..good
            },
        ),
    ] {
        assert!(Steps::of(&bad).is_none(), "{why}");
    }
}
