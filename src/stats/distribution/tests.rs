//! A distribution says the same as numpy while it is exact, and keeps its error bound beyond.

use proptest::prelude::*;

use super::*;

fn of(values: &[f64]) -> Distribution {
    Distribution::of(values.to_vec())
}

fn condensed(values: &[f64]) -> Distribution {
    let mut sketch = Sketch::default();
    values.iter().for_each(|&value| sketch.push(value));
    Distribution::of_sketch(sketch)
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
    assert_eq!(of(&[]).statistic(), None);
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
fn a_foreign_sketch_that_makes_no_sense_gives_some_answer() {
    let texts = [
        r#"{"moments":{"count":0,"min":3.0,"max":-3.0,"sum":0.0,"sum_carry":0.0,"origin":0.0,"mean":0.0,"squares":-1.0},"zero":0,"bins":{}}"#,
        r#"{"moments":{"count":18446744073709551615,"min":0.0,"max":1.0,"sum":0.0,"sum_carry":0.0,"origin":0.0,"mean":0.0,"squares":0.0},"zero":18446744073709551615,"bins":{"2147483647":18446744073709551615,"-2147483648":1}}"#,
    ];
    for text in texts {
        let mut sketch: Sketch = serde_json::from_str(text).unwrap();
        let _ = Distribution::of_sketch(sketch.clone()).statistic();
        sketch.merge(&sketch.clone());
        sketch.push(1.0);
        let _ = Distribution::of_sketch(sketch).statistic();
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
    fn order_does_not_matter(mut values in prop::collection::vec(0.0..1e4_f64, 2..300)) {
        let statistic = of(&values).statistic();
        values.reverse();
        prop_assert_eq!(of(&values).statistic(), statistic);
    }

    #[test]
    fn a_sketch_goes_through_json_unchanged(values in prop::collection::vec(0.0..1e4_f64, 0..50)) {
        let mut sketch = Sketch::default();
        values.iter().for_each(|&value| sketch.push(value));
        let text = serde_json::to_string(&sketch).unwrap();
        let read: Sketch = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(serde_json::to_string(&read).unwrap(), text);
        prop_assert_eq!(Distribution::of_sketch(read).statistic(), Distribution::of_sketch(sketch).statistic());
    }
}
