//! What the engine's own counters say, and how much of it the records hold.

use super::{Look, grid, histogram_line};
use crate::export::summary::{Metrics, RankSummary, ServerSummary};
use crate::scrape::{Coverage, Gauge, Share};

/// Coverage below this is said at the head of a report.
pub const LOW_COVERAGE: f64 = 0.95;

const ROWS: [(&str, &str); 6] = [
    (
        "spec_decode_token_weighted_acceptance_length",
        "Acceptance Length (ratio)",
    ),
    (
        "spec_decode_overall_draft_acceptance_rate",
        "Draft Acceptance Rate (%)",
    ),
    ("total_spec_decode_steps", "Spec Decode Steps (count)"),
    (
        "total_accepted_draft_tokens",
        "Accepted Draft Tokens (tokens)",
    ),
    ("total_draft_tokens", "Draft Tokens (tokens)"),
    (
        "generation_tokens_per_step",
        "Generated Tokens per Step (tokens)",
    ),
];

/// The section: a table with a column for all of it and one for each rank, and the lines below.
pub fn server(summary: &ServerSummary, look: Look) -> String {
    let mut text = String::new();
    let ranks = shown(&summary.ranks);
    let mut header = vec!["Metric".to_owned(), "whole server".to_owned()];
    header.extend(ranks.iter().map(|rank| format!("rank {}", rank.rank)));
    let columns: Vec<&Metrics> = std::iter::once(&summary.metrics)
        .chain(ranks.iter().map(|rank| &rank.metrics))
        .collect();
    let rows: Vec<Vec<String>> = ROWS
        .iter()
        .filter(|(tag, _)| summary.metrics.contains_key(*tag))
        .map(|(tag, label)| {
            let cells = columns.iter().map(|metrics| {
                let metric = metrics.get(*tag);
                metric.map_or_else(|| "N/A".to_owned(), |metric| grid::number(metric.avg))
            });
            let label = match look.mark {
                Some(mark) => format!("{label}\n{mark}"),
                None => (*label).to_owned(),
            };
            std::iter::once(label).chain(cells).collect()
        })
        .collect();
    if rows.is_empty() {
        text.push_str("Server: the page has no counters of speculation.\n");
    } else {
        let header: Vec<&str> = header.iter().map(String::as_str).collect();
        text.push_str(&grid::render("Spec Decode: Server", &header, &rows));
    }
    let histogram = summary.pooled_spec_decode_acceptance_histogram.as_ref();
    if let Some(line) = histogram.and_then(histogram_line) {
        text.push_str(&format!("{line}\n"));
    }
    text.push('\n');
    for line in lines(summary) {
        text.push_str(&format!("  {line}\n"));
    }
    text
}

/// As many ranks as a table has room for; the worst come first.
fn shown(ranks: &[RankSummary]) -> &[RankSummary] {
    &ranks[..ranks.len().min(4)]
}

fn lines(summary: &ServerSummary) -> Vec<String> {
    let engine = summary.engine.as_deref().unwrap_or("unknown engine");
    let version = summary.version.as_deref();
    let version = version.map_or_else(String::new, |version| format!(" {version}"));
    let since = match &summary.from {
        Some(from) => format!("since {}", humantime::format_rfc3339_seconds(from.0)),
        None => "since the engine began to count".to_owned(),
    };
    let mut lines = vec![format!(
        "{engine}{version}, {}, {since}: every request of every client.",
        summary.url
    )];
    if !summary.survival.is_empty() {
        let shares = summary
            .survival
            .iter()
            .map(|point| format!("{}: {:.0}%", point.position, point.share * 100.0));
        let shares: Vec<String> = shares.collect();
        lines.push(format!(
            "Steps that accepted the draft at a position (% of all steps):  {}",
            shares.join("   ")
        ));
    }
    if summary.ranks.len() > 1 {
        let worst = &summary.ranks[0].rank;
        lines.push(format!(
            "{} ranks, added up; the lowest length is that of rank {worst}.",
            summary.ranks.len()
        ));
    }
    if summary.resets > 0 {
        lines.push(format!(
            "The engine was restarted {} times: what it counted shortly before is missing.",
            summary.resets
        ));
    }
    if let Some(trouble) = &summary.trouble {
        lines.push(format!("The last reading failed: {trouble}."));
    }
    lines.extend(summary.gauges.iter().map(gauge));
    lines.extend(summary.catch.iter().map(|catch| format!("Note: {catch}.")));
    lines
}

fn gauge(gauge: &Gauge) -> String {
    let of = match (&gauge.model, &gauge.rank) {
        (Some(model), Some(rank)) => format!(" of {model}, rank {rank}"),
        (Some(name), None) | (None, Some(name)) => format!(" of {name}"),
        (None, None) => String::new(),
    };
    format!("{}{of}: {:.4} ({})", gauge.name, gauge.value, gauge.about)
}

/// How much of the engine's work the records hold, in a line.
pub fn coverage(coverage: &Coverage) -> String {
    let part = |name: &str, share: Option<Share>| {
        let share = share?;
        Some(format!(
            "{:.1} % of the engine's {} {name}",
            share.share * 100.0,
            share.moved
        ))
    };
    let parts: Vec<String> = [
        part("steps", coverage.steps),
        part("drafted", coverage.drafted),
        part("accepted tokens", coverage.accepted),
    ]
    .into_iter()
    .flatten()
    .collect();
    let mut line = format!("Coverage: the records hold {}", parts.join(", "));
    if let Some(generated) = coverage.generation_tokens {
        line.push_str(&format!(
            "; of its {} generated tokens {:.1} % came through the tap with usage",
            generated.moved,
            generated.share * 100.0
        ));
    }
    if !coverage.unrecorded.is_empty() {
        let reasons: Vec<String> = coverage
            .unrecorded
            .iter()
            .map(|(reason, count)| format!("{reason} {count}"))
            .collect();
        line.push_str(&format!(
            "; exchanges without record: {}",
            reasons.join(", ")
        ));
    }
    if !coverage.settled {
        line.push_str(&format!(
            "; {} requests under way count as a gap",
            coverage.in_flight
        ));
    }
    if coverage.resets > 0 {
        line.push_str(&format!(
            "; the engine was restarted {} times, so that it has lost some counts",
            coverage.resets
        ));
    }
    line.push('.');
    line
}
