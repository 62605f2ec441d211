//! One compact line per group, for a live view of several models side by side.

use super::grid;
use crate::export::query::By;
use crate::export::summary::{Counts, GroupSummary, Metrics, Summary};

const FIGURES: [&str; 6] = ["n", "recorded", "length", "rate", "steps", "zero-step"];

/// The groups' names in one text: `model qwen, engine vllm`.
pub fn name(group: &GroupSummary) -> String {
    let parts: Vec<String> = group
        .key
        .iter()
        .map(|(by, value)| format!("{} {}", by.as_str(), shown(*by, value.as_deref())))
        .collect();
    parts.join(", ")
}

/// A line of headings and a line per group: what it is grouped by, exchanges, exchanges recorded, token-weighted
/// length (bonus token included), overall draft acceptance rate, verify steps, zero-step requests. Where there are no
/// groups, one line for all.
///
/// Unknown figures are a dash.
pub fn by_group(summary: &Summary) -> String {
    let mut headings: Vec<String> = summary
        .groups
        .first()
        .map(|group| group.key.keys().map(|by| by.as_str().to_owned()).collect())
        .unwrap_or_default();
    let names = headings.len();
    headings.extend(FIGURES.map(str::to_owned));
    let mut lines = vec![headings];
    for group in &summary.groups {
        let key = group
            .key
            .iter()
            .map(|(by, value)| shown(*by, value.as_deref()).to_owned());
        lines.push(key.chain(figures(&group.n, &group.metrics)).collect());
    }
    if summary.groups.is_empty() {
        lines.push(figures(&summary.n, &summary.metrics).into());
    }
    aligned(&lines, names)
}

/// A request without a tag has none; a model or an engine that it does not tell is unknown.
fn shown(by: By, value: Option<&str>) -> &str {
    value.unwrap_or(match by {
        By::Tag => "(none)",
        By::Model | By::Engine | By::Route | By::Hour => "unknown",
    })
}

fn figures(n: &Counts, metrics: &Metrics) -> [String; 6] {
    let value = |tag: &str, show: &dyn Fn(f64) -> String| {
        metrics
            .get(tag)
            .map_or_else(|| "-".to_owned(), |metric| show(metric.avg))
    };
    let whole = |value: f64| format!("{value:.0}");
    [
        n.exchanges.to_string(),
        n.recorded.to_string(),
        value(
            "spec_decode_token_weighted_acceptance_length",
            &grid::number,
        ),
        value("spec_decode_overall_draft_acceptance_rate", &|rate| {
            format!("{}%", grid::number(rate))
        }),
        value("total_spec_decode_steps", &whole),
        n.zero_step.to_string(),
    ]
}

// Names to the left, numbers to the right.
fn aligned(lines: &[Vec<String>], names: usize) -> String {
    let columns = lines.first().map_or(0, Vec::len);
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            lines
                .iter()
                .map(|line| line[column].chars().count())
                .max()
                .unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    for line in lines {
        let cells: Vec<String> = line
            .iter()
            .zip(&widths)
            .enumerate()
            .map(|(column, (cell, &width))| {
                if column < names {
                    format!("{cell:<width$}")
                } else {
                    format!("{cell:>width$}")
                }
            })
            .collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}
