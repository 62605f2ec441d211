//! Measured acceptance as the knobs with which engines pretend it in benchmarks.
//!
//! Sources of the names: vLLM's speculative config (`synthetic_acceptance_rates`, by position and unconditional, as many
//! as drafts per step; `synthetic_acceptance_length`), SGLang's `SGLANG_SIMULATE_ACC_LEN`, and TensorRT-LLM's
//! `TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS`, which counts accepted drafts without the bonus token.

use std::fmt::Write;

use super::summary::Metrics;
use crate::record::AcceptanceHistogram;
use crate::stats::survival::{self, Widths};

const WARNING: &str = "\
Such runs produce no valid text: the engine keeps as many drafts as it is told, whatever they are. They measure speed
and nothing else. Mark them: spectap serve --note acceptance=synthetic";

/// The knobs for one set of figures; absent where there is no acceptance length. `k`: most drafts of a step, where known.
/// `mark`: what stands beside every figure, if anything.
pub fn knobs(
    title: &str,
    metrics: &Metrics,
    histogram: &AcceptanceHistogram,
    k: Option<u64>,
    mark: Option<&str>,
) -> Option<String> {
    let length = metrics.get("spec_decode_token_weighted_acceptance_length")?;
    let steps = metrics.get("total_spec_decode_steps")?;
    // Of all steps, also of those that drafted less deep: only these shares add up to the length.
    let survival = survival::curve(histogram, &Widths::default());
    let mut shares: Vec<f64> = survival.iter().map(|it| it.share).collect();
    let of_k = match k {
        Some(k) => {
            // No step got that far: a share of 0 is what was measured there.
            let k = usize::try_from(k).unwrap_or(0).min(MOST_POSITIONS);
            shares.resize(shares.len().max(k), 0.0);
            format!("k = {k}")
        }
        None => format!(
            "k unknown, at least {}: append 0.0 for each position beyond",
            shares.len()
        ),
    };
    let rates: Vec<String> = shares.iter().map(|share| format!("{share:.4}")).collect();
    let mark = mark.map(|mark| format!(", {mark}")).unwrap_or_default();
    let mut text = String::new();
    // Writing to a String never fails.
    let _ = writeln!(
        text,
        "{title}: n = {} requests, {:.0} verify steps, {of_k}{mark}",
        length.n.unwrap_or(0),
        steps.avg
    );
    let _ = writeln!(
        text,
        "  vLLM, members of --speculative-config (one of the two):"
    );
    let _ = writeln!(
        text,
        "    \"synthetic_acceptance_rates\": [{}]",
        rates.join(", ")
    );
    let _ = writeln!(
        text,
        "    \"synthetic_acceptance_length\": {:.4}",
        length.avg
    );
    let _ = writeln!(text, "  SGLang, environment:");
    let _ = writeln!(text, "    SGLANG_SIMULATE_ACC_LEN={:.4}", length.avg);
    let _ = writeln!(
        text,
        "  TensorRT-LLM, environment (accepted drafts, length - 1):"
    );
    let _ = writeln!(
        text,
        "    TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS={:.4}",
        length.avg - 1.0
    );
    Some(text)
}

/// What stands above the knobs.
pub fn warning() -> &'static str {
    WARNING
}

/// Positions that are printed at most.
const MOST_POSITIONS: usize = 256;
