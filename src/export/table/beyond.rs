//! What stands below the Spec Decode section: how certain its figures are, what drafting bought, and the findings.

use super::Look;
use crate::export::compare::columns::aligned;
use crate::export::summary::{Metric, Summary};
use crate::stats::advice::{Advice, Range};

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
            let depths = if low == high {
                format!("depth {low}")
            } else {
                format!("depth {low} to {high}")
            };
            text.push_str(&format!(
                "At a draft cost of {cost} the estimate is best at {depths}; speed-up = length / (1 + cost × depth), \
                 against no speculation.\n"
            ));
        }
        _ => text.push_str(
            "The speed-up needs --draft-cost: the time to draft one token / the time of one verify step, \
             about the drafter's share of the model's size.\n",
        ),
    }
    text
}

fn range(range: Range) -> String {
    match range.high {
        Some(high) if format!("{high:.2}") == format!("{:.2}", range.low) => format!("{high:.2}"),
        Some(high) => format!("{:.2} to {high:.2}", range.low),
        None => format!("{:.2} or more", range.low),
    }
}
