//! Hand-computed correlations and bins.

use super::*;

#[test]
fn ranks_that_run_together_correlate_with_1_and_against_each_other_with_minus_1() {
    let pairs: Vec<(f64, f64)> = (1..=10).map(|i| (f64::from(i), f64::from(i * i))).collect();
    assert_eq!(spearman(&pairs), Some(1.0));
    let against: Vec<(f64, f64)> = pairs.iter().map(|&(x, y)| (x, -y)).collect();
    assert_eq!(spearman(&against), Some(-1.0));
}

#[test]
fn equal_values_share_their_mean_rank() {
    // Ranks 0, 1.5, 1.5, 3 against 0, 2, 1, 3: covariance 4.5, squares 4.5 and 5.
    let pairs = [(1.0, 10.0), (2.0, 30.0), (2.0, 20.0), (3.0, 40.0)];
    let expected = 4.5 / (4.5_f64 * 5.0).sqrt();
    assert!((spearman(&pairs).unwrap() - expected).abs() < 1e-12);
}

#[test]
fn a_value_that_never_varies_has_no_correlation() {
    assert_eq!(spearman(&[(1.0, 2.0), (1.0, 3.0)]), None);
    assert_eq!(spearman(&[]), None);
}

#[test]
fn bins_have_their_ends_their_median_and_their_number() {
    let samples: Vec<Sample> = (1..=12)
        .map(|i| Sample {
            key: i,
            steps: 10,
            accepted: 10 * i,
            drafted: 200,
            k: 20,
            completion_tokens: 0,
            inter_token_latency_ms: Some(100.0 / f64::from(i)),
            in_flight: i,
        })
        .collect();
    let by_concurrency = with_concurrency(&samples).unwrap();
    let bins: Vec<(f64, f64, f64, u64)> = by_concurrency
        .bins
        .iter()
        .map(|bin| (bin.from, bin.to, bin.median, bin.n))
        .collect();
    assert_eq!(
        bins,
        [
            (1.0, 1.0, 2.0, 1),
            (2.0, 3.0, 3.5, 2),
            (4.0, 7.0, 6.5, 4),
            (8.0, 12.0, 11.0, 5)
        ]
    );
    assert_eq!(by_concurrency.spearman, Some(1.0));
    let by_length = with_latency(&samples).unwrap();
    assert_eq!(by_length.spearman, Some(-1.0));
    assert_eq!(by_length.bins.len(), 4);
    assert_eq!((by_length.bins[0].from, by_length.bins[0].to), (2.0, 4.0));
    assert_eq!(by_length.bins[0].median, 50.0);
    assert_eq!(with_latency(&samples[..9]), None);
}
