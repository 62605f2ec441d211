//! The shape of the summary, and what is null or absent in it.

use serde_json::json;

use super::*;
use crate::stats::survival::Widths;

#[test]
fn without_exchanges_everything_is_null_or_empty() {
    let summary = summary(&Statistics::new(), &Query::default());
    assert_eq!(
        serde_json::to_value(summary).unwrap(),
        json!({
            "scope": {"window": "all", "run": null, "from": null, "to": null, "filter": {}},
            "n": {"exchanges": 0, "recorded": 0, "zero_step": 0, "absent": 0, "malformed": 0, "ambiguous": 0, "unobserved": 0},
            "record_share": null,
            "metrics": {},
            "pooled_spec_decode_acceptance_histogram": {},
            "sequences": {"metrics": {}, "pooled_spec_decode_acceptance_histogram": {}},
            "survival": [], "gain": {}, "along_the_reply": [], "relations": [], "advice": null,
            "server": null, "coverage": null, "findings": [], "groups": []
        })
    );
}

#[test]
fn survival_counts_steps_that_got_past_each_position() {
    let survival = survival::curve(&[(0, 6400), (1, 4608)].into(), &Widths::default());
    assert_eq!(survival.len(), 1);
    assert_eq!((survival[0].position, survival[0].n), (0, 11008));
    assert!((survival[0].share - 4608.0 / 11008.0).abs() < 1e-15);
}

#[test]
fn survival_stays_short_whatever_an_engine_says() {
    let curve = survival::curve(&[(u32::MAX, 1)].into(), &Widths::default());
    assert_eq!(curve.len(), 256);
}
