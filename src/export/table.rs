//! The Spec Decode section as AIPerf prints it at the end of a run: a table and the histogram line below it.
//!
//! Checked character for character against real output of AIPerf, title apart. Below it stands of how many exchanges it
//! is; where there is nothing to print, a sentence says why.

use super::summary::{Counts, GroupSummary, Metric, Metrics, Reasons, Summary};
use crate::record::AcceptanceHistogram;
use crate::stats::steps_in;

mod absence;
mod by_group;
mod grid;

pub use absence::sentence as why_nothing;
pub use by_group::by_group;

/// Rows in AIPerf's order: tag, label, unit.
const ROWS: [(&str, &str, &str); 7] = [
    (
        "spec_decode_acceptance_length",
        "Acceptance Length",
        "ratio",
    ),
    (
        "spec_decode_token_weighted_acceptance_length",
        "Token-Weighted Acceptance Length",
        "ratio",
    ),
    (
        "spec_decode_draft_acceptance_rate",
        "Draft Acceptance Rate",
        "%",
    ),
    (
        "spec_decode_overall_draft_acceptance_rate",
        "Overall Draft Acceptance Rate",
        "%",
    ),
    (
        "spec_decode_accepted_per_verified",
        "Accepted per Verified",
        "ratio",
    ),
    ("spec_decode_steps", "Spec Decode Steps", "count"),
    (
        "spec_decode_zero_step_requests",
        "Zero-Step Requests",
        "requests",
    ),
];

const HEADER: [&str; 8] = ["Metric", "avg", "min", "max", "p99", "p90", "p50", "std"];

/// A label longer than this has its unit on the next line, as AIPerf does it.
const LONGEST_LABEL_WITH_UNIT: usize = 30;

/// Buckets from this one on stand together in the histogram line once one of them is filled.
const FIRST_JOINED_BUCKET: u32 = 8;

/// The section for all of a summary: table and histogram line, or the sentence that says why there is none.
pub fn spec_decode(summary: &Summary) -> String {
    let histogram = &summary.pooled_spec_decode_acceptance_histogram;
    let mut text = match section("Spec Decode", &summary.metrics, histogram) {
        Some(section) => with_counts(section, &summary.n, &summary.reasons),
        None => format!("{}\n", why_nothing(&summary.n, &summary.reasons)),
    };
    for finding in &summary.findings {
        text.push_str(&finding.text);
        text.push('\n');
    }
    text
}

/// The section for one group; the title names it.
pub fn spec_decode_of_group(group: &GroupSummary) -> String {
    let title = format!("Spec Decode: {}", by_group::name(group));
    let histogram = &group.pooled_spec_decode_acceptance_histogram;
    match section(&title, &group.metrics, histogram) {
        Some(section) => with_counts(section, &group.n, &group.reasons),
        None => format!("{title}: {}\n", why_nothing(&group.n, &group.reasons)),
    }
}

/// AIPerf's section, and after an empty line what it does not say: of how many exchanges the figures are, and what
/// became of the others.
fn with_counts(section: String, n: &Counts, reasons: &Reasons) -> String {
    format!("{section}\n  {}\n", absence::counts(n, reasons))
}

fn section(title: &str, metrics: &Metrics, histogram: &AcceptanceHistogram) -> Option<String> {
    let mut text = table(title, metrics)?;
    if let Some(line) = histogram_line(histogram) {
        text.push_str(&line);
        text.push('\n');
    }
    Some(text)
}

/// The table alone; absent where no row has a value.
pub fn table(title: &str, metrics: &Metrics) -> Option<String> {
    let rows: Vec<[String; 8]> = ROWS
        .iter()
        .filter_map(|(tag, label, unit)| {
            let metric = metrics.get(*tag)?;
            let separator = if label.chars().count() > LONGEST_LABEL_WITH_UNIT {
                '\n'
            } else {
                ' '
            };
            Some(row(format!("{label}{separator}({unit})"), metric))
        })
        .collect();
    (!rows.is_empty()).then(|| grid::render(title, &HEADER, &rows))
}

fn row(label: String, metric: &Metric) -> [String; 8] {
    let percentiles = metric.percentiles;
    let cell = |value: Option<f64>| value.map_or_else(|| "N/A".to_owned(), grid::number);
    [
        label,
        grid::number(metric.avg),
        cell(metric.min),
        cell(metric.max),
        cell(percentiles.map(|p| p.p99)),
        cell(percentiles.map(|p| p.p90)),
        cell(percentiles.map(|p| p.p50)),
        cell(metric.std),
    ]
}

/// The line below the table; absent where no step was counted.
///
/// Each share is rounded alone, half to even on the binary number as Python does it, so that the line need not add up
/// to 100.
pub fn histogram_line(histogram: &AcceptanceHistogram) -> Option<String> {
    let total = steps_in(histogram, ..);
    let (&deepest, _) = histogram.iter().rev().find(|&(_, &steps)| steps > 0)?;
    let percent = |steps: u64| format!("{:.0}%", steps as f64 / total as f64 * 100.0);
    let mut buckets: Vec<String> = (0..=deepest.min(FIRST_JOINED_BUCKET - 1))
        .map(|accepted| {
            let steps = histogram.get(&accepted).copied().unwrap_or(0);
            format!("{accepted}: {}", percent(steps))
        })
        .collect();
    if deepest >= FIRST_JOINED_BUCKET {
        let joined = steps_in(histogram, FIRST_JOINED_BUCKET..);
        buckets.push(format!(">={FIRST_JOINED_BUCKET}: {}", percent(joined)));
    }
    Some(format!(
        "  Accepted drafts per step (% of steps):  {}",
        buckets.join("   ")
    ))
}

#[cfg(test)]
mod tests;
