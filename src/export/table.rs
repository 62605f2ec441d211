//! The Spec Decode section as AIPerf prints it at the end of a run: a table and the histogram line below it.
//!
//! Checked character for character against real output of AIPerf, title apart. Below it stands of how many exchanges it
//! is; where there is nothing to print, a sentence says why.

use super::figures::{Figure, SPEC_DECODE, TRAFFIC};
use super::summary::{Counts, GroupSummary, Metric, Metrics, Reasons, Summary};
use crate::record::AcceptanceHistogram;
use crate::stats::steps_in;

mod absence;
mod beyond;
mod by_group;
mod categories;
mod grid;
mod server;

pub use absence::{advice, sentence as why_nothing};
pub use beyond::{beyond, cost_wanted, draft_depth};
pub use by_group::by_group;
pub use by_group::name as group_name;
pub use categories::categories;
pub use server::{LOW_COVERAGE, coverage, server};

/// How a table looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// Also the rows that AIPerf has only in its files.
    pub all: bool,
    /// What stands below the name of every figure.
    pub mark: Option<&'static str>,
}

pub(super) const HEADER: [&str; 8] = ["Metric", "avg", "min", "max", "p99", "p90", "p50", "std"];

/// A label longer than this has its unit on the next line, as AIPerf does it.
const LONGEST_LABEL_WITH_UNIT: usize = 30;

/// Buckets from this one on stand together in the histogram line once one of them is filled.
const FIRST_JOINED_BUCKET: u32 = 8;

/// The section for all of a summary: table and histogram line, or the sentence that says why there is none.
pub fn spec_decode(summary: &Summary) -> String {
    spec_decode_like(summary, Look::default())
}

/// The same with a look of its own.
pub fn spec_decode_like(summary: &Summary, look: Look) -> String {
    let histogram = &summary.pooled_spec_decode_acceptance_histogram;
    match section("Spec Decode", &summary.metrics, histogram, look) {
        Some(section) => with_counts(section, &summary.n, &summary.reasons),
        None => format!("{}\n", why_nothing(&summary.n, &summary.reasons)),
    }
}

/// The section for one group; the title names it.
pub fn spec_decode_of_group(group: &GroupSummary, look: Look) -> String {
    let title = format!("Spec Decode: {}", by_group::name(group));
    let histogram = &group.pooled_spec_decode_acceptance_histogram;
    match section(&title, &group.metrics, histogram, look) {
        Some(section) => with_counts(section, &group.n, &group.reasons),
        None => format!("{title}: {}\n", why_nothing(&group.n, &group.reasons)),
    }
}

/// AIPerf's section, and after an empty line what it does not say: of how many exchanges the figures are, and what
/// became of the others.
fn with_counts(section: String, n: &Counts, reasons: &Reasons) -> String {
    format!("{section}\n  {}\n", absence::counts(n, reasons))
}

/// The table of times, lengths and throughput; absent where no exchange had any.
pub fn traffic(title: &str, metrics: &Metrics, look: Look) -> Option<String> {
    figures_table(title, &TRAFFIC, metrics, look)
}

fn section(
    title: &str,
    metrics: &Metrics,
    histogram: &AcceptanceHistogram,
    look: Look,
) -> Option<String> {
    let mut text = figures_table(title, &SPEC_DECODE, metrics, look)?;
    if let Some(line) = histogram_line(histogram) {
        text.push_str(&line);
        if let Some(mark) = look.mark {
            text.push_str(&format!("  ({mark})"));
        }
        text.push('\n');
    }
    Some(text)
}

/// The Spec Decode table alone; absent where no row has a value.
pub fn table(title: &str, metrics: &Metrics) -> Option<String> {
    figures_table(title, &SPEC_DECODE, metrics, Look::default())
}

fn figures_table(title: &str, figures: &[Figure], metrics: &Metrics, look: Look) -> Option<String> {
    let rows: Vec<[String; 8]> = figures
        .iter()
        .filter(|figure| figure.in_console || look.all)
        .filter_map(|figure| {
            let metric = metrics.get(figure.tag)?;
            let separator = if figure.label.chars().count() > LONGEST_LABEL_WITH_UNIT {
                '\n'
            } else {
                ' '
            };
            let mut label = format!("{}{separator}({})", figure.label, figure.unit);
            if let Some(mark) = look.mark {
                label.push('\n');
                label.push_str(mark);
            }
            Some(row_cells(label, metric))
        })
        .collect();
    (!rows.is_empty()).then(|| grid::render(title, &HEADER, &rows))
}

pub(super) fn row_cells(label: String, metric: &Metric) -> [String; 8] {
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
