//! A summary as AIPerf's `profile_export_aiperf.csv`: one block of per-request figures, one of run-level ones.
//!
//! CRLF, rows by tag, two decimals, no thousands commas. With groups, columns that name them stand in front; the rows of
//! all exchanges come first then, with empty names.

use std::borrow::Cow;

use super::figures::{Figure, SPEC_DECODE, TRAFFIC};
use super::query::By;
use super::summary::{Metric, Metrics, Summary};

const PER_REQUEST: [&str; 15] = [
    "Metric", "avg", "min", "max", "sum", "p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95",
    "p99", "std",
];

const RUN_LEVEL: [&str; 2] = ["Metric", "Value"];

/// Writes a summary. `mark`: what stands behind the name of every figure, if anything.
pub fn of_summary(summary: &Summary, mark: Option<&str>) -> String {
    let names: Vec<By> = summary
        .groups
        .first()
        .map(|group| group.key.keys().copied().collect())
        .unwrap_or_default();
    let mut parts: Vec<(Vec<String>, &Metrics)> =
        vec![(vec![String::new(); names.len()], &summary.metrics)];
    for group in &summary.groups {
        let key = group.key.values();
        parts.push((
            key.map(|value| value.clone().unwrap_or_else(|| "unknown".to_owned()))
                .collect(),
            &group.metrics,
        ));
    }
    let mut figures: Vec<Figure> = SPEC_DECODE.into_iter().chain(TRAFFIC).collect();
    figures.sort_by_key(|figure| figure.tag);
    let mut blocks = [
        block_head(&names, &PER_REQUEST),
        block_head(&names, &RUN_LEVEL),
    ];
    for (key, metrics) in &parts {
        for figure in &figures {
            let Some(metric) = metrics.get(figure.tag) else {
                continue;
            };
            let name = name(figure, mark);
            let (block, values) = match per_request(metric) {
                Some(values) => (0, values),
                None => (1, vec![format!("{:.2}", metric.avg)]),
            };
            let names = key.iter().map(String::as_str).chain([name.as_str()]);
            blocks[block].push_str(&line(names.chain(values.iter().map(String::as_str))));
        }
    }
    blocks.join("\r\n")
}

fn block_head(names: &[By], columns: &[&'static str]) -> String {
    line(
        names
            .iter()
            .map(|by| by.as_str())
            .chain(columns.iter().copied()),
    )
}

/// The unit is left out where it only says what is counted.
fn name(figure: &Figure, mark: Option<&str>) -> String {
    let mut name = match figure.unit {
        "count" | "requests" => figure.label.to_owned(),
        unit => format!("{} ({unit})", figure.label),
    };
    if let Some(mark) = mark {
        name.push_str(", ");
        name.push_str(mark);
    }
    name
}

fn per_request(metric: &Metric) -> Option<Vec<String>> {
    let p = metric.percentiles?;
    let values = [
        Some(metric.avg),
        metric.min,
        metric.max,
        metric.sum,
        Some(p.p1),
        Some(p.p5),
        Some(p.p10),
        Some(p.p25),
        Some(p.p50),
        Some(p.p75),
        Some(p.p90),
        Some(p.p95),
        Some(p.p99),
        metric.std,
    ];
    let cell = |value: Option<f64>| value.map(|value| format!("{value:.2}")).unwrap_or_default();
    Some(values.map(cell).into())
}

/// A line of cells, by RFC 4180.
pub fn line<'a>(cells: impl IntoIterator<Item = &'a str>) -> String {
    let cells: Vec<Cow<'_, str>> = cells.into_iter().map(quoted).collect();
    format!("{}\r\n", cells.join(","))
}

fn quoted(cell: &str) -> Cow<'_, str> {
    if cell.contains([',', '"', '\r', '\n']) {
        Cow::Owned(format!("\"{}\"", cell.replace('"', "\"\"")))
    } else {
        Cow::Borrowed(cell)
    }
}
