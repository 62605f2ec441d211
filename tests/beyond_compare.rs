//! How often a comparison errs: equal engines told apart, and a true change missed.

#![allow(
    clippy::expect_used,
    reason = "a test fails loudly; clippy sees only the test functions as tests"
)]

mod numbers_support;

use numbers_support::{record, recorded, statistics};
use spectap::observation::Observation;
use spectap::stats::compare::{
    Comparison, Difference, PairBy, Pairs, RunFigures, Verdict, compare, compare_pairs,
};

const K: usize = 4;
const STEPS: u64 = 40;

const TAGS: [&str; 2] = ["code", "math"];

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

/// A request of some length of its own, which arrived as number `id` of its run.
fn request(own: f64, id: usize, random: &mut fastrand::Rng) -> Observation {
    let accepts = accepting(own);
    let mut histogram = [0; K + 1];
    for _ in 0..STEPS {
        let accepted = (0..K).take_while(|_| random.f64() < accepts).count();
        histogram[accepted] += 1;
    }
    let mut observation = recorded(vec![record(&histogram)]);
    observation.id = format!("{:016x}", random.u64(..));
    observation.x_request_id = Some(format!("request-{id}"));
    observation.tag = Some(TAGS[id % TAGS.len()].to_owned());
    observation.timing.inter_token_latency_ms = Some((20.0 + normal(random)) / own);
    observation.in_flight = random.u64(1..8);
    observation
}

/// The own lengths of requests around `length`.
fn lengths(requests: usize, length: f64, random: &mut fastrand::Rng) -> Vec<f64> {
    let own = |_| (length * (1.0 + SPREAD * normal(random))).clamp(1.05, 4.9);
    (0..requests).map(own).collect()
}

fn requests(lengths: &[f64], random: &mut fastrand::Rng) -> Vec<Observation> {
    let numbered = lengths.iter().enumerate();
    numbered
        .map(|(id, &own)| request(own, id, random))
        .collect()
}

/// A run of requests whose own lengths lie around `length`.
fn run(count: usize, length: f64, random: &mut fastrand::Rng) -> RunFigures {
    let lengths = lengths(count, length, random);
    figures(&requests(&lengths, random))
}

fn figures(requests: &[Observation]) -> RunFigures {
    let groups = statistics(requests.iter().cloned()).groups(|_| true);
    RunFigures::of(groups.iter().map(|(key, group)| (key, group)))
}

/// All that has a verdict: the three figures of the whole, of each category, and the positions.
fn with_verdict(comparison: &Comparison) -> Vec<&Difference> {
    let positions = comparison.positions.iter().map(|it| &it.difference);
    let categories = comparison.categories.iter().flat_map(|it| &it.differences);
    let all = comparison
        .differences
        .iter()
        .chain(positions)
        .chain(categories);
    all.collect()
}

fn is_alarm(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Higher | Verdict::Lower)
}

/// Compares 400 times what does not differ; any verdict at all is a false alarm.
fn assert_few_false_alarms(mut comparison: impl FnMut(u64) -> Comparison) {
    let mut alarms = 0;
    for seed in 0..400 {
        let comparison = comparison(seed);
        let differences = with_verdict(&comparison);
        assert_eq!(differences.len(), 3 + K + 3 * TAGS.len());
        assert!(differences.iter().all(|it| it.interval.is_some()));
        alarms += usize::from(differences.iter().any(|it| is_alarm(it.verdict)));
    }
    println!("{alarms} false alarms in 400 comparisons");
    assert!(alarms <= 28, "{alarms} false alarms in 400 comparisons");
    assert!(alarms > 0, "a comparison that never errs is too timid");
}

#[test]
fn two_equal_engines_are_told_apart_in_at_most_7_percent_of_comparisons() {
    let mut random = fastrand::Rng::with_seed(20_261_201);
    assert_few_false_alarms(|seed| {
        let [base, other] = [(); 2].map(|()| run(60, 3.0, &mut random));
        compare(&base, &other, 1, seed)
    });
}

#[test]
fn so_are_two_equal_engines_that_got_the_same_prompts() {
    let mut random = fastrand::Rng::with_seed(20_261_202);
    assert_few_false_alarms(|seed| {
        let lengths = lengths(60, 3.0, &mut random);
        let [base, other] = [(); 2].map(|()| requests(&lengths, &mut random));
        let pairs = Pairs::find(PairBy::XRequestId, &base, &other);
        compare_pairs(&pairs, 1, seed)
    });
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
fn pairs_find_a_change_of_5_percent_with_a_fourth_of_the_requests_and_narrower_intervals() {
    let mut random = fastrand::Rng::with_seed(8);
    let comparisons = 60;
    let (mut found, mut narrower) = (0, 0);
    let mut widths = [0.0; 2];
    for seed in 0..comparisons {
        let lengths = lengths(100, 3.0, &mut random);
        let base = requests(&lengths, &mut random);
        let longer: Vec<f64> = lengths.iter().map(|own| (own * 1.05).min(4.9)).collect();
        let other = requests(&longer, &mut random);
        let pairs = Pairs::find(PairBy::XRequestId, &base, &other);
        let paired = compare_pairs(&pairs, 1, seed);
        let unpaired = compare(&figures(&base), &figures(&other), 1, seed);
        found += u64::from(paired.differences[0].verdict == Verdict::Higher);
        let [paired, unpaired] = [paired, unpaired].map(|comparison| {
            let interval = comparison.differences[0].interval.expect("an interval");
            interval.high - interval.low
        });
        narrower += u64::from(paired < unpaired);
        widths[0] += paired / comparisons as f64;
        widths[1] += unpaired / comparisons as f64;
    }
    println!("{found} of {comparisons} found; widths paired and not: {widths:.3?}");
    assert!(
        found * 10 >= comparisons * 9,
        "{found} of {comparisons} found"
    );
    assert_eq!(narrower, comparisons);
}

#[test]
fn nine_of_ten_intervals_or_more_hold_the_true_length() {
    // The interval of a single run: 95 % wanted, and with 60 requests the bootstrap is a little narrow.
    let mut random = fastrand::Rng::with_seed(11);
    let mut held = 0;
    let mut lengths = Vec::new();
    for _ in 0..200 {
        let group = run(60, 3.0, &mut random).whole;
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
