//! How often a comparison errs: equal engines told apart, and a true change missed.

#![allow(
    clippy::expect_used,
    reason = "a test fails loudly; clippy sees only the test functions as tests"
)]

mod numbers_support;

use numbers_support::{record, recorded, statistics};
use spectap::observation::Observation;
use spectap::stats::Group;
use spectap::stats::compare::{Verdict, compare};

const K: usize = 4;
const STEPS: u64 = 40;

/// Spread of the true length between requests, relative.
const SPREAD: f64 = 0.15;

/// About a normal value with mean 0 and deviation 1.
fn normal(random: &mut fastrand::Rng) -> f64 {
    (0..12).map(|_| random.f64()).sum::<f64>() - 6.0
}

/// The probability of each draft to be accepted, given that all before it were, that makes this length.
fn accepting(length: f64) -> f64 {
    let length_at = |accepts: f64| (0..=K as i32).map(|depth| accepts.powi(depth)).sum::<f64>();
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..30 {
        let middle = (low + high) / 2.0;
        if length_at(middle) < length {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// A run of requests whose own lengths lie around `length`.
fn run(requests: usize, length: f64, random: &mut fastrand::Rng) -> Group {
    let observations: Vec<Observation> = (0..requests)
        .map(|_| {
            let own = (length * (1.0 + SPREAD * normal(random))).clamp(1.05, 4.9);
            let accepts = accepting(own);
            let mut histogram = [0; K + 1];
            for _ in 0..STEPS {
                let accepted = (0..K).take_while(|_| random.f64() < accepts).count();
                histogram[accepted] += 1;
            }
            let mut observation = recorded(vec![record(&histogram)]);
            observation.id = format!("{:016x}", random.u64(..));
            observation.timing.inter_token_latency_ms = Some((20.0 + normal(random)) / own);
            observation.in_flight = random.u64(1..8);
            observation
        })
        .collect();
    let mut whole = Group::default();
    for (_, group) in statistics(observations).groups(|_| true) {
        whole.merge(&group);
    }
    whole
}

fn is_alarm(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Higher | Verdict::Lower)
}

#[test]
fn two_equal_engines_are_told_apart_in_at_most_7_percent_of_comparisons() {
    let mut random = fastrand::Rng::with_seed(20_261_201);
    let mut alarms = 0;
    for seed in 0..400 {
        let base = run(60, 3.0, &mut random);
        let other = run(60, 3.0, &mut random);
        let comparison = compare(&base, &other, 1, seed);
        // Any figure at all counts.
        let verdicts = comparison.differences.iter().map(|it| it.verdict);
        assert!(
            comparison
                .differences
                .iter()
                .all(|it| it.interval.is_some())
        );
        alarms += usize::from(verdicts.into_iter().any(is_alarm));
    }
    println!("{alarms} false alarms in 400 comparisons");
    assert!(alarms <= 28, "{alarms} false alarms in 400 comparisons");
    assert!(alarms > 0, "a comparison that never errs is too timid");
}

#[test]
fn a_change_of_5_percent_in_length_is_found_in_at_least_90_percent_of_comparisons() {
    let mut random = fastrand::Rng::with_seed(7);
    let comparisons = 60;
    let mut found = 0;
    for seed in 0..comparisons {
        let base = run(400, 3.0, &mut random);
        let other = run(400, 3.15, &mut random);
        let comparison = compare(&base, &other, 1, seed);
        found += u64::from(comparison.differences[0].verdict == Verdict::Higher);
    }
    println!("{found} of {comparisons} found");
    assert!(
        found * 10 >= comparisons * 9,
        "{found} of {comparisons} found"
    );
}

#[test]
fn nine_of_ten_intervals_or_more_hold_the_true_length() {
    // The interval of a single run: 95 % wanted, and with 60 requests the bootstrap is a little narrow.
    let mut random = fastrand::Rng::with_seed(11);
    let mut held = 0;
    let mut lengths = Vec::new();
    for _ in 0..200 {
        let group = run(60, 3.0, &mut random);
        let intervals = spectap::stats::interval::of_run(
            &group.aiperf.pooled,
            &group.evidence.samples,
            spectap::stats::interval::SEED,
        );
        lengths.push((
            group.aiperf.pooled.length(),
            intervals.length.expect("an interval"),
        ));
    }
    // The true length of the simulation, clamps and all, is the mean over all 12,000 requests.
    let truth = lengths.iter().filter_map(|it| it.0).sum::<f64>() / lengths.len() as f64;
    for (_, interval) in &lengths {
        held += usize::from(!interval.excludes(truth));
    }
    println!("{held} of 200 intervals hold {truth:.4}");
    assert!((180..=199).contains(&held), "{held} of 200");
}
