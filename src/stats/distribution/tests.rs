//! A distribution says the same as numpy while it is exact, and keeps its error bound beyond.

use proptest::prelude::*;

use super::*;

fn of(values: &[f64]) -> Distribution {
    let mut distribution = Distribution::default();
    values.iter().for_each(|&value| distribution.push(value));
    distribution
}

fn condensed(values: &[f64]) -> Distribution {
    let mut distribution = of(values);
    distribution.condense();
    distribution
}

#[test]
fn percentiles_interpolate_linearly_as_numpy_does() {
    // numpy.percentile([1, 2, 4, 8], PERCENTILES)
    let statistic = of(&[8.0, 1.0, 4.0, 2.0]).statistic().unwrap();
    let expected = [1.03, 1.15, 1.3, 1.75, 3.0, 5.0, 6.8, 7.4, 7.88];
    for (ours, numpys) in statistic.percentiles.iter().zip(expected) {
        assert!((ours - numpys).abs() < 1e-12, "{ours} is not {numpys}");
    }
    assert_eq!(statistic.avg, 3.75);
    assert!((statistic.std - 2.680951323690902).abs() < 1e-12); // numpy.std
    assert_eq!((statistic.min, statistic.max), (1.0, 8.0));
    assert_eq!((statistic.sum, statistic.count), (15.0, 4));
    assert!(statistic.exact);
}

#[test]
fn one_value_has_no_spread_and_is_every_percentile() {
    let statistic = of(&[2.5]).statistic().unwrap();
    assert_eq!(statistic.std, 0.0);
    assert_eq!(statistic.percentiles, [2.5; 9]);
}

#[test]
fn nothing_has_no_statistic_and_what_is_not_a_number_is_left_out() {
    assert_eq!(Distribution::default().statistic(), None);
    assert_eq!(condensed(&[]).statistic(), None);
    assert_eq!(of(&[f64::NAN, f64::INFINITY]).statistic(), None);
}

#[test]
fn a_small_spread_on_a_large_value_keeps_its_digits() {
    // Σx² − (Σx)²/n would lose all of it.
    let values: Vec<f64> = (0..1000).map(|i| 1e9 + f64::from(i % 2)).collect();
    for distribution in [of(&values), condensed(&values)] {
        let std = distribution.statistic().unwrap().std;
        assert!((std - 0.5).abs() < 1e-9, "{std}");
    }
}

#[test]
fn it_turns_into_a_sketch_after_the_limit_and_says_so() {
    let mut distribution = Distribution::default();
    for i in 0..MOST_EXACT_VALUES {
        distribution.push(i as f64);
    }
    assert!(distribution.statistic().unwrap().exact);
    distribution.push(MOST_EXACT_VALUES as f64);
    let statistic = distribution.statistic().unwrap();
    assert!(!statistic.exact);
    assert_eq!(statistic.count, MOST_EXACT_VALUES as u64 + 1);
    assert_eq!(statistic.max, MOST_EXACT_VALUES as f64);
    assert_eq!(distribution.exact_values(), 0);
}

#[test]
fn a_foreign_sketch_that_makes_no_sense_gives_some_answer() {
    let texts = [
        r#"{"sketch":{"moments":{"count":0,"min":3.0,"max":-3.0,"sum":0.0,"sum_carry":0.0,"origin":0.0,"mean":0.0,"squares":-1.0},"zero":0,"bins":{}}}"#,
        r#"{"sketch":{"moments":{"count":18446744073709551615,"min":0.0,"max":1.0,"sum":0.0,"sum_carry":0.0,"origin":0.0,"mean":0.0,"squares":0.0},"zero":18446744073709551615,"bins":{"2147483647":18446744073709551615,"-2147483648":1}}}"#,
    ];
    for text in texts {
        let mut distribution: Distribution = serde_json::from_str(text).unwrap();
        let _ = distribution.statistic();
        distribution.merge(&distribution.clone());
        distribution.merge(&of(&[1.0]));
        let _ = distribution.statistic();
    }
}

proptest! {
    #[test]
    fn a_sketch_keeps_its_error_bound_and_exact_moments(
        values in prop::collection::vec(prop_oneof![Just(0.0), 1e-6..1e9_f64, 1.0..16.0_f64], 1..400)
    ) {
        let (exact, sketch) = (of(&values).statistic().unwrap(), condensed(&values).statistic().unwrap());
        for (ours, truth) in sketch.percentiles.iter().zip(exact.percentiles) {
            prop_assert!((ours - truth).abs() <= RELATIVE_ERROR * truth * (1.0 + 1e-9), "{ours} for {truth}");
        }
        prop_assert_eq!((sketch.min, sketch.max, sketch.count), (exact.min, exact.max, exact.count));
        prop_assert!((sketch.sum - exact.sum).abs() <= 1e-9 * exact.sum);
        prop_assert!((sketch.std - exact.std).abs() <= 1e-9 * exact.max);
    }

    #[test]
    fn order_and_parts_do_not_matter(
        values in prop::collection::vec(0.0..1e4_f64, 2..300),
        cut in any::<prop::sample::Index>(),
    ) {
        let (left, right) = values.split_at(cut.index(values.len()));
        let mut merged = of(right);
        merged.merge(&of(left));
        prop_assert_eq!(merged.statistic(), of(&values).statistic());

        let percentiles = |distribution: &Distribution| distribution.statistic().map(|it| it.percentiles);
        let whole = percentiles(&condensed(&values));
        let mut sketch_first = condensed(right);
        sketch_first.merge(&of(left));
        sketch_first.condense();
        prop_assert_eq!(percentiles(&sketch_first), whole);
        let mut exact_first = of(left);
        exact_first.merge(&condensed(right));
        exact_first.condense();
        prop_assert_eq!(percentiles(&exact_first), whole);
    }

    #[test]
    fn json_keeps_it(values in prop::collection::vec(0.0..1e4_f64, 0..50), condense: bool) {
        let distribution = if condense { condensed(&values) } else { of(&values) };
        let text = serde_json::to_string(&distribution).unwrap();
        let read: Distribution = serde_json::from_str(&text).unwrap();
        match (read.statistic(), distribution.statistic()) {
            (Some(read), Some(own)) => {
                prop_assert_eq!(read.count, own.count);
                prop_assert_eq!(read.exact, own.exact);
                for (read, own) in read.percentiles.iter().zip(own.percentiles) {
                    prop_assert!((read - own).abs() <= 1e-12 * own.abs());
                }
            }
            (read, own) => prop_assert_eq!(read, own),
        }
    }
}
