//! A summary as markdown tables, with the rows and cells of the console tables.

use std::fmt::Write;

use super::figures::{Figure, SPEC_DECODE, TRAFFIC};
use super::summary::{Metrics, Summary};
use super::table::{HEADER, Look, group_name, histogram_line, row_cells, why_nothing};
use crate::record::AcceptanceHistogram;

/// Writes a summary and its groups.
pub fn of_summary(summary: &Summary, look: Look) -> String {
    let mut text = section(
        "Spec Decode",
        &summary.metrics,
        &summary.pooled_spec_decode_acceptance_histogram,
        look,
    )
    .unwrap_or_else(|| format!("{}\n", why_nothing(&summary.n, &summary.reasons)));
    for finding in &summary.findings {
        // Writing to a String never fails.
        let _ = writeln!(text, "\n{}", finding.text);
    }
    if let Some(traffic) = figures_table("Traffic", &TRAFFIC, &summary.metrics, look) {
        let _ = write!(text, "\n{traffic}");
    }
    for group in &summary.groups {
        let title = format!("Spec Decode: {}", group_name(group));
        let histogram = &group.pooled_spec_decode_acceptance_histogram;
        let section = section(&title, &group.metrics, histogram, look)
            .unwrap_or_else(|| format!("{title}: {}\n", why_nothing(&group.n, &group.reasons)));
        let _ = write!(text, "\n{section}");
    }
    text
}

fn section(
    title: &str,
    metrics: &Metrics,
    histogram: &AcceptanceHistogram,
    look: Look,
) -> Option<String> {
    let mut text = figures_table(title, &SPEC_DECODE, metrics, look)?;
    if let Some(line) = histogram_line(histogram) {
        let mark = look
            .mark
            .map(|mark| format!(" ({mark})"))
            .unwrap_or_default();
        let _ = writeln!(text, "\n{}{mark}", line.trim_start());
    }
    Some(text)
}

fn figures_table(title: &str, figures: &[Figure], metrics: &Metrics, look: Look) -> Option<String> {
    let mut header = HEADER.map(str::to_owned).to_vec();
    header.push("n".to_owned());
    let rows: Vec<Vec<String>> = figures
        .iter()
        .filter(|figure| figure.in_console || look.all)
        .filter_map(|figure| {
            let metric = metrics.get(figure.tag)?;
            let mark = look
                .mark
                .map(|mark| format!(", {mark}"))
                .unwrap_or_default();
            let label = format!("{} ({}){mark}", figure.label, figure.unit);
            let n = metric.count.or(metric.n);
            let mut cells = row_cells(label, metric).to_vec();
            cells.push(n.map(|n| n.to_string()).unwrap_or_default());
            Some(cells)
        })
        .collect();
    (!rows.is_empty()).then(|| table(title, &header, &rows))
}

/// A heading and a table whose first column is to the left and whose others are to the right.
pub(super) fn table(title: &str, header: &[String], rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| escaped(cell)).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let rule: Vec<&str> = std::iter::once("---")
        .chain(header.iter().skip(1).map(|_| "---:"))
        .collect();
    let mut text = format!("### {}\n\n", escaped(title));
    text.push_str(&line(header));
    let _ = writeln!(text, "|{}|", rule.join("|"));
    for row in rows {
        text.push_str(&line(row));
    }
    text
}

/// Names come from engines and clients: none may break the table or become a tag.
fn escaped(cell: &str) -> String {
    cell.replace('\\', "\\\\")
        .replace('|', "\\|")
        .replace('<', "&lt;")
        .replace(char::is_control, " ")
}
