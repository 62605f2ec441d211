//! Hand-computed curves.

use super::*;
use crate::record::{AcceptanceRecord, EngineName, Provenance};

fn ordered(steps: &[(u64, u64)]) -> AcceptanceRecord {
    let mut histogram = AcceptanceHistogram::new();
    for &(_, accepted) in steps {
        *histogram.entry(accepted as u32).or_default() += 1;
    }
    let drafted: Vec<u64> = steps.iter().map(|step| step.0).collect();
    let accepted: Vec<u64> = steps.iter().map(|step| step.1).collect();
    AcceptanceRecord {
        provenance: Provenance::PerStep,
        acceptance_histogram: histogram,
        num_spec_steps: Some(steps.len() as u64),
        num_spec_tokens: Some(4),
        ..AcceptanceRecord {
            per_step_accepted: Some(accepted.clone()),
            per_step_drafted: Some(drafted.clone()),
            ..AcceptanceRecord::of_counts(
                EngineName::Vllm,
                accepted.iter().sum(),
                drafted.iter().sum(),
            )
        }
    }
}

fn curve_of(records: &[AcceptanceRecord]) -> Vec<Survival> {
    let (mut histogram, mut widths) = (AcceptanceHistogram::new(), Widths::default());
    for record in records {
        widths.add(&steps_by_width(record, equal_width(record)));
        for (&accepted, &steps) in &record.acceptance_histogram {
            *histogram.entry(accepted).or_default() += steps;
        }
    }
    curve(&histogram, &widths)
}

fn figures(curve: &[Survival]) -> Vec<(f64, u64, Option<f64>, u64)> {
    curve
        .iter()
        .map(|point| (point.share, point.n, point.conditional, point.conditional_n))
        .collect()
}

#[test]
fn a_position_is_judged_by_the_steps_that_drafted_it() {
    // Drafted, accepted. Two steps carried one draft only and are censored behind it.
    let curve = curve_of(&[ordered(&[(1, 1), (1, 0), (3, 3), (3, 1), (3, 0)])]);
    assert_eq!(
        figures(&curve),
        [
            (3.0 / 5.0, 5, Some(3.0 / 5.0), 5),
            (1.0 / 3.0, 3, Some(1.0 / 2.0), 2),
            (1.0 / 3.0, 3, Some(1.0), 1),
        ]
    );
    assert!(curve.iter().all(|point| !point.lower_bound));
}

#[test]
fn steps_that_all_carried_k_need_no_order() {
    let record = AcceptanceRecord {
        per_step_accepted: None,
        per_step_drafted: None,
        ..ordered(&[(4, 0), (4, 1), (4, 2), (4, 2)])
    };
    let curve = curve_of(&[record]);
    assert_eq!(
        figures(&curve),
        [
            (0.75, 4, Some(0.75), 4),
            (0.5, 4, Some(2.0 / 3.0), 3),
            (0.0, 4, Some(0.0), 2),
            (0.0, 4, None, 0),
        ]
    );
    assert!(curve.iter().all(|point| !point.lower_bound));
}

#[test]
fn steps_of_unknown_width_make_the_curve_a_lower_bound() {
    // 7 drafts in 4 steps: some carried fewer than the others.
    let unknown = AcceptanceRecord {
        per_step_accepted: None,
        per_step_drafted: None,
        ..ordered(&[(1, 0), (2, 1), (2, 2), (2, 2)])
    };
    let curve = curve_of(std::slice::from_ref(&unknown));
    assert_eq!(
        figures(&curve),
        [(0.75, 4, Some(0.75), 4), (0.5, 4, Some(2.0 / 3.0), 3)]
    );
    assert!(curve.iter().all(|point| point.lower_bound));
    let mixed = curve_of(&[unknown, ordered(&[(1, 1)])]);
    assert_eq!((mixed[1].share, mixed[1].n), (0.5, 4));
    assert!(mixed[0].lower_bound);
}

#[test]
fn nominal_drafts_tell_no_width() {
    let nominal = AcceptanceRecord {
        per_step_accepted: None,
        per_step_drafted: None,
        nominal_drafts: true,
        ..ordered(&[(4, 0), (4, 1)])
    };
    assert!(curve_of(&[nominal])[0].lower_bound);
}

#[test]
fn absurd_widths_stay_out_of_the_table() {
    let mut widths = Widths::default();
    let absurd = ordered(&[(u64::MAX / 2, 3), (4, 1)]);
    widths.add(&steps_by_width(&absurd, equal_width(&absurd)));
    assert_eq!(widths.steps.keys().copied().collect::<Vec<_>>(), [4]);
}

#[test]
fn an_interval_stands_where_the_share_is_of_all_steps() {
    use super::super::tests::{observation, record};
    use crate::observation::ObservationSink;
    use crate::stats::Statistics;

    let statistics = Statistics::new();
    for accepts_more in [false, true] {
        let mut record = record();
        if accepts_more {
            // All four steps accept 2.
            record.acceptance_histogram = [(2, 4)].into();
            record.num_accepted_draft_tokens = 8;
            record.mean_acceptance_length = Some(3.0);
            record.draft_acceptance_rate = Some(0.5);
        }
        statistics.record(std::sync::Arc::new(observation(vec![record])));
    }
    let groups = statistics.groups(|_| true);
    let group = &groups[0].1;
    let evidence = &group.evidence;
    let curve = curve(&group.aiperf.pooled.histogram, &evidence.widths);
    let curve = with_intervals(curve, &evidence.positions);
    // 7 of 8 steps; (3 − 3.5)² + (4 − 3.5)² = 0.5, times 2 / 1, over 8².
    let half = 1.959_963_984_540_054 * (1.0 / 64.0_f64).sqrt();
    let interval = curve[0].interval.unwrap();
    assert_eq!(curve[0].share, 0.875);
    assert!(
        (interval.low - (0.875 - half)).abs() < 1e-12,
        "{interval:?}"
    );
    assert_eq!(interval.high, 1.0, "a share is at most 1");
}
