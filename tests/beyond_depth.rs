//! Draft-depth advice against the truth: replies whose acceptance belongs to places in the text, with easy and hard
//! stretches, run at every depth.

#![allow(
    clippy::expect_used,
    reason = "a test fails loudly; clippy sees only the test functions as tests"
)]

mod numbers_support;

use numbers_support::{record, recorded, statistics};
use spectap::export::{Query, Summary, summary};
use spectap::observation::Observation;
use spectap::record::{AcceptanceRecord, Provenance};
use spectap::stats::advice::{Advice, Basis};

const DEEPEST: usize = 8;
const REPLIES: usize = 300;

/// Whether the draft of each place would be accepted: easy stretches and hard ones take turns.
fn text(random: &mut fastrand::Rng, places: usize, easy: f64, hard: f64) -> Vec<bool> {
    let mut text = Vec::with_capacity(places);
    let mut is_easy = random.bool();
    while text.len() < places {
        // Stretches of 20 to 60 places that are easy, 10 to 40 that are hard.
        let length = if is_easy {
            random.usize(20..=60)
        } else {
            random.usize(10..=40)
        };
        let share = if is_easy { easy } else { hard };
        text.extend((0..length).map(|_| random.f64() < share));
        is_easy = !is_easy;
    }
    text.truncate(places);
    text
}

/// The accepted drafts of each step of an engine that drafts `depth` places ahead.
fn steps(text: &[bool], depth: usize) -> Vec<u64> {
    let mut steps = Vec::new();
    let mut place = 0;
    while place < text.len() {
        let drafts = text[place..].iter().take(depth);
        let accepted = drafts.take_while(|accepts| **accepts).count();
        steps.push(accepted as u64);
        place += accepted + 1;
    }
    steps
}

/// The record of these steps, as an engine at the detailed level sends it.
fn detailed(steps: &[u64], depth: usize) -> AcceptanceRecord {
    let mut histogram = vec![0; depth + 1];
    for &accepted in steps {
        histogram[accepted as usize] += 1;
    }
    AcceptanceRecord {
        provenance: Provenance::PerStep,
        per_step_accepted: Some(steps.to_vec()),
        per_step_drafted: Some(vec![depth as u64; steps.len()]),
        ..record(&histogram)
    }
}

fn texts(seed: u64, easy: f64, hard: f64) -> Vec<Vec<bool>> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..REPLIES)
        .map(|_| {
            let places = random.usize(300..900);
            text(&mut random, places, easy, hard)
        })
        .collect()
}

fn run(
    texts: &[Vec<bool>],
    depth: usize,
    change: fn(AcceptanceRecord) -> AcceptanceRecord,
) -> Summary {
    let observations = texts.iter().enumerate().map(|(number, text)| Observation {
        id: format!("{number:026}"),
        ..recorded(vec![change(detailed(&steps(text, depth), depth))])
    });
    summary(&statistics(observations), &Query::default())
}

fn length_of(summary: &Summary) -> f64 {
    summary.metrics["spec_decode_token_weighted_acceptance_length"].avg
}

fn without_order(record: AcceptanceRecord) -> AcceptanceRecord {
    AcceptanceRecord {
        provenance: Provenance::Histogram,
        per_step_accepted: None,
        per_step_drafted: None,
        ..record
    }
}

/// Holds the advice of a run at depth 8 against real runs at each depth.
fn check(seed: u64, easy: f64, hard: f64) {
    let texts = texts(seed, easy, hard);
    let advice = run(&texts, DEEPEST, |record| record)
        .advice
        .expect("advice");
    assert_eq!(advice.basis, Some(Basis::OrderedSteps));
    assert_eq!(
        advice.depths.len(),
        DEEPEST,
        "nothing beyond the observed k"
    );
    for depth in &advice.depths {
        let truth = length_of(&run(&texts, depth.depth as usize, |record| record));
        let predicted = depth.length.high.expect("ordered steps give an upper end");
        let error = (predicted - truth).abs() / truth;
        println!(
            "easy {easy}, hard {hard}, depth {}: truth {truth:.4}, re-cut {predicted:.4} ({:.2} %), truncated {:.4}",
            depth.depth,
            error * 100.0,
            depth.length.low
        );
        assert!(
            error <= 0.01,
            "depth {}: {predicted} for {truth}",
            depth.depth
        );
        assert!(depth.length.low <= truth * 1.01, "depth {}", depth.depth);
        assert_eq!(depth.estimate, depth.depth as usize != DEEPEST);
    }
}

#[test]
fn a_run_at_8_predicts_the_runs_at_1_to_7_within_1_percent() {
    check(1, 0.93, 0.35);
    check(2, 0.85, 0.20);
    check(3, 0.97, 0.50);
}

#[test]
fn the_truncated_histogram_alone_would_miss_by_more() {
    // What makes the test above one that can fail: with stretches, truncation is off by far more than 1 %.
    let texts = texts(1, 0.93, 0.35);
    let truth = length_of(&run(&texts, 1, |record| record));
    let advice = run(&texts, DEEPEST, without_order).advice.expect("advice");
    assert_eq!(advice.basis, Some(Basis::Histogram));
    let truncated = advice.depths[0].length;
    assert!(
        truncated.low < truth * 0.97,
        "{} for {truth}",
        truncated.low
    );
    assert_eq!(truncated.high, None);
    assert!(
        advice.text.contains("likely pessimistic"),
        "{}",
        advice.text
    );
}

#[test]
fn the_best_depth_by_the_estimate_is_the_best_of_the_real_runs() {
    let texts = texts(1, 0.93, 0.35);
    for cost in [0.02, 0.1, 0.3] {
        let advice: Advice = run(&texts, DEEPEST, |record| record)
            .advice
            .expect("advice")
            .with_draft_cost(cost);
        let speed_up = |depth: usize| {
            length_of(&run(&texts, depth, |record| record)) / (1.0 + cost * depth as f64)
        };
        let speed_ups: Vec<f64> = (1..=DEEPEST).map(speed_up).collect();
        let [low, high] = advice.best.expect("a best depth");
        let best = speed_ups.iter().copied().fold(0.0, f64::max);
        let of_range = speed_ups[low as usize - 1..high as usize]
            .iter()
            .copied()
            .fold(0.0, f64::max);
        assert!(
            of_range > 0.99 * best,
            "cost {cost}: {low} to {high}, {speed_ups:?}"
        );
        let certain = advice.best_interval.expect("an interval");
        let truly_best = speed_ups.iter().position(|it| *it == best).expect("one") as u32 + 1;
        println!("cost {cost}: truly best {truly_best}, {certain:?}");
        assert!((certain.low..=certain.high).contains(&truly_best));
        assert!(certain.high - certain.low <= 3, "{certain:?}");
    }
}

#[test]
fn a_few_narrow_steps_at_the_end_of_replies_do_not_spoil_it() {
    let texts = texts(4, 0.93, 0.35);
    // The last step of each reply carries one draft, as near the limit on tokens.
    let narrow = |mut record: AcceptanceRecord| {
        let (Some(accepted), Some(drafted)) =
            (&mut record.per_step_accepted, &mut record.per_step_drafted)
        else {
            return record;
        };
        accepted.push(0);
        drafted.push(1);
        *record.acceptance_histogram.entry(0).or_default() += 1;
        record.num_spec_steps = record.num_spec_steps.map(|steps| steps + 1);
        record.num_draft_tokens += 1;
        record.mean_acceptance_length = record.derived_length();
        record.draft_acceptance_rate = record.derived_rate();
        record.check().expect("an honest record");
        record
    };
    let advice = run(&texts, DEEPEST, narrow).advice.expect("advice");
    assert_eq!(advice.basis, Some(Basis::OrderedSteps));
    let truth = length_of(&run(&texts, 3, |record| record));
    let predicted = advice.depths[2].length.high.expect("an upper end");
    assert!(
        (predicted - truth).abs() / truth < 0.02,
        "{predicted} for {truth}"
    );
}
