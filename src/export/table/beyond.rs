//! What stands below the Spec Decode section: how certain its figures are, what drafting bought, and the findings.

use super::Look;
use crate::export::compare::columns::aligned;
use crate::export::summary::{Metric, Summary};
use crate::stats::advice::{Advice, BestDepth, MeasuredCost, Range};

/// The lines, with an empty one before them; empty where there is nothing to say.
pub fn beyond(summary: &Summary, look: Look) -> String {
    let mark = look.mark.map(|mark| format!(" ({mark})"));
    let marked = |line| format!("{line}{}", mark.as_deref().unwrap_or_default());
    let mut lines = Vec::new();
    lines.extend(certainty(summary).map(marked));
    lines.extend(gain(summary).map(marked));
    lines.extend(summary.findings.iter().map(|finding| finding.text.clone()));
    if lines.is_empty() {
        return String::new();
    }
    format!("\n{}\n", lines.join("\n"))
}

/// `Length 3.09 (95 % interval 2.98 to 3.20, n = 510), rate 54.87 % (…)`.
fn certainty(summary: &Summary) -> Option<String> {
    let figure = |name: &str, tag: &str, unit: &str| {
        let metric = summary.metrics.get(tag)?;
        let n = metric.n.unwrap_or(0);
        let interval = metric.interval.as_ref().map_or_else(String::new, |it| {
            format!("95 % interval {:.2} to {:.2}, ", it.low, it.high)
        });
        let few = if metric.few_requests { ", few" } else { "" };
        Some(format!(
            "{name} {:.2}{unit} ({interval}n = {n}{few})",
            metric.avg
        ))
    };
    let figures: Vec<String> = [
        figure(
            "Acceptance length",
            "spec_decode_token_weighted_acceptance_length",
            "",
        ),
        figure(
            "draft acceptance rate",
            "spec_decode_overall_draft_acceptance_rate",
            " %",
        ),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!figures.is_empty()).then(|| format!("{}.", figures.join("; ")))
}

fn gain(summary: &Summary) -> Option<String> {
    let value = |tag: &str| summary.gain.get(tag).map(|metric: &Metric| metric.avg);
    let parts: Vec<String> = [
        value("draft_token_share").map(|share| {
            format!(
                "{:.1} % of the output tokens came from drafts",
                share * 100.0
            )
        }),
        value("wasted_drafts_per_accepted")
            .map(|wasted| format!("{wasted:.2} drafts were wasted per accepted one")),
        value("drafts_per_step").map(|drafts| format!("{drafts:.2} drafts per step")),
        value("passes_that_drafted")
            .map(|share| format!("about {:.1} % of the passes drafted", share * 100.0)),
        value("tokens_per_pass").map(|tokens| format!("about {tokens:.2} tokens per pass")),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!parts.is_empty()).then(|| format!("{}.", parts.join("; ")))
}

/// The advice on the draft depth with its table, with an empty line before it.
pub fn draft_depth(advice: &Advice) -> String {
    let mut text = format!("\n{}\n", advice.text);
    if advice.depths.is_empty() {
        return text;
    }
    let mut rows = vec![
        [
            "depth",
            "length",
            "drafted per token",
            "wasted per token",
            "speed-up",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    rows.extend(advice.depths.iter().map(|depth| {
        vec![
            depth.depth.to_string(),
            range(depth.length),
            range(depth.drafted_per_token),
            range(depth.wasted_per_token),
            depth.speed_up.map_or_else(|| "-".to_owned(), range),
        ]
    }));
    text.push_str(&aligned(&rows));
    match (advice.best, advice.draft_cost) {
        (Some([low, high]), Some(cost)) => {
            let cost = match &advice.measured_cost {
                Some(measured) => measured_cost(measured),
                None => format!("{cost}"),
            };
            text.push_str(&format!(
                "At a draft cost of {cost} the estimate is best at {}; speed-up = length / (1 + cost × depth), \
                 against no speculation.\n",
                depths(low, high)
            ));
            text.extend(advice.best_interval.as_ref().map(certainty_of_depth));
        }
        _ => text.push_str(COST_WANTED),
    }
    text
}

/// What to give so that the best depth is said, with an empty line before it; empty where there is no advice.
pub fn cost_wanted(advice: &Advice) -> String {
    if advice.depths.is_empty() {
        return String::new();
    }
    format!("\n{COST_WANTED}")
}

const COST_WANTED: &str = "The best draft depth needs --draft-cost: the time to draft one token / the time of one verify step, \
                           about the drafter's share of the model's size. Where requests ran at two depths it is measured.\n";

fn depths(low: u32, high: u32) -> String {
    if low == high {
        format!("depth {low}")
    } else {
        format!("depth {low} to {high}")
    }
}

/// `0.052 (measured: 95 % interval 0.049 to 0.055, n = 812 at k = 3, 8)`.
fn measured_cost(measured: &MeasuredCost) -> String {
    let ks: Vec<String> = measured.depths.iter().map(|it| it.k.to_string()).collect();
    format!(
        "{:.3} (measured: 95 % interval {:.3} to {:.3}, n = {} at k = {})",
        measured.value,
        measured.interval.low,
        measured.interval.high,
        measured.n,
        ks.join(", ")
    )
}

fn certainty_of_depth(best: &BestDepth) -> String {
    let shares: Vec<String> = best
        .shares
        .iter()
        .map(|it| format!("{} in {:.0} %", it.depth, it.share * 100.0))
        .collect();
    format!(
        "Drawing the requests anew, 95 % of the draws are best at {} ({}).\n",
        depths(best.low, best.high),
        shares.join(", ")
    )
}

fn range(range: Range) -> String {
    match range.high {
        Some(high) if format!("{high:.2}") == format!("{:.2}", range.low) => format!("{high:.2}"),
        Some(high) => format!("{:.2} to {high:.2}", range.low),
        None => format!("{:.2} or more", range.low),
    }
}
