//! A comparison for people: tables on a terminal, or in markdown.

use std::collections::BTreeSet;

use super::columns::aligned;
use super::{ComparedRun, ComparisonOfRuns};
use crate::export::markdown::table;
use crate::stats::compare::{Comparison, Difference, Verdict};
use crate::stats::interval::{FEW_REQUESTS, Interval};

const NOTE: &str = "The intervals of all figures that get a verdict hold together at 95 %, by drawing requests anew.";

const NOTE_ON_PAIRS: &str = "The intervals of all figures that get a verdict hold together at 95 %, by drawing pairs of requests anew.";

/// The comparison on a terminal, one part per compared run.
pub fn text(comparison: &ComparisonOfRuns) -> String {
    let mut text = format!("Base: {}\n", comparison.base.title());
    for other in &comparison.others {
        text.push_str(&format!("\nCompared: {}\n", other.run.title()));
        for piece in pieces(other) {
            match piece {
                Piece::Line(line) => text.push_str(&format!("  {line}\n")),
                Piece::Table { title, rows } => {
                    text.push_str(&format!("  {title}:\n{}", aligned(&rows)));
                }
            }
        }
    }
    text.push_str(&format!("\n{}\n", note(comparison)));
    text
}

/// The comparison for a page.
pub fn markdown(comparison: &ComparisonOfRuns) -> String {
    // Names of files and taps are the user's own; in code marks they break nothing.
    let code = |title: String| title.replace('`', "'");
    let mut text = format!("Base: `{}`\n", code(comparison.base.title()));
    for other in &comparison.others {
        text.push_str(&format!("\n## `{}`\n", code(other.run.title())));
        for piece in pieces(other) {
            text.push('\n');
            match piece {
                Piece::Line(line) => text.push_str(&format!("{line}\n")),
                Piece::Table { title, rows } => {
                    if let [header, rows @ ..] = rows.as_slice() {
                        text.push_str(&table(&title, header, rows));
                    }
                }
            }
        }
    }
    text.push_str(&format!("\n{}\n", note(comparison)));
    text
}

fn note(comparison: &ComparisonOfRuns) -> &'static str {
    let mut others = comparison.others.iter();
    match others.any(|other| other.comparison.pairing.is_some()) {
        true => NOTE_ON_PAIRS,
        false => NOTE,
    }
}

/// What a part is made of.
enum Piece {
    Line(String),
    /// The first row is the header.
    Table {
        title: String,
        rows: Vec<Vec<String>>,
    },
}

fn pieces(other: &ComparedRun) -> Vec<Piece> {
    let Comparison {
        pairing,
        differences,
        positions,
        categories,
        speed_up,
    } = &other.comparison;
    let mut pieces = Vec::new();
    if let Some(pairing) = pairing {
        pieces.push(Piece::Line(format!(
            "Paired by {}: {} pairs. Left out, since they have no partner: {} requests of the base and {} of this run.",
            pairing.by.as_str(),
            pairing.pairs,
            pairing.unpaired_base,
            pairing.unpaired_other
        )));
    }
    let rows = differences
        .iter()
        .map(|it| row(name(it), it, Shown::default()));
    pieces.push(titled("Whole run", "figure", rows));
    pieces.extend(reasons(differences).map(Piece::Line));
    if let Some(speed_up) = speed_up {
        let interval = speed_up.interval.map_or_else(String::new, |it| {
            format!(" ({:.2} to {:.2})", it.low, it.high)
        });
        pieces.push(Piece::Line(format!(
            "Speed-up: tokens come {:.2} times as fast as in the base{interval}, at equal concurrency.",
            speed_up.value
        )));
    }
    if !positions.is_empty() {
        let rows = positions
            .iter()
            .map(|it| row(it.position.to_string(), &it.difference, Shown::PERCENT));
        let title = "Steps that accepted the draft at each position (% of steps)";
        pieces.push(titled(title, "position", rows));
        let differences: Vec<Difference> =
            positions.iter().map(|it| it.difference.clone()).collect();
        pieces.extend(reasons(&differences).map(Piece::Line));
    }
    for (index, figure) in differences.iter().enumerate() {
        let of_figure: Vec<(&Option<String>, &Difference)> = categories
            .iter()
            .filter_map(|category| Some((&category.tag, category.differences.get(index)?)))
            .collect();
        // What no category has needs no table.
        if of_figure
            .iter()
            .all(|(_, it)| it.base.or(it.other).is_none())
        {
            continue;
        }
        let rows = of_figure.iter().map(|(tag, difference)| {
            let tag = tag
                .as_deref()
                .unwrap_or("(none)")
                .replace(char::is_control, " ");
            row(tag, difference, Shown::default())
        });
        pieces.push(titled(&format!("{} by tag", name(figure)), "tag", rows));
        let differences: Vec<Difference> = of_figure.iter().map(|(_, it)| (*it).clone()).collect();
        pieces.extend(reasons(&differences).map(Piece::Line));
    }
    pieces
}

fn titled(title: &str, first: &str, rows: impl Iterator<Item = Vec<String>>) -> Piece {
    let header = [
        first,
        "base",
        "other",
        "difference",
        "interval",
        "relative",
        "n",
        "verdict",
    ];
    let header = header.map(str::to_owned).to_vec();
    Piece::Table {
        title: title.to_owned(),
        rows: std::iter::once(header).chain(rows).collect(),
    }
}

/// Why there are figures without a verdict, each reason once; what one side lacks and what is too few shows anyhow.
fn reasons(differences: &[Difference]) -> impl Iterator<Item = String> {
    let forbidden = differences
        .iter()
        .filter(|it| it.verdict == Verdict::NotComparable);
    let told: BTreeSet<String> = forbidden
        .filter_map(|it| {
            Some(format!(
                "{}: no verdict, since {}.",
                label(it),
                it.why.as_ref()?
            ))
        })
        .collect();
    told.into_iter()
}

/// How values are shown.
#[derive(Clone, Copy)]
struct Shown {
    scale: f64,
    decimals: usize,
}

impl Default for Shown {
    fn default() -> Self {
        Self {
            scale: 1.0,
            decimals: 2,
        }
    }
}

impl Shown {
    const PERCENT: Self = Self {
        scale: 100.0,
        decimals: 1,
    };
}

fn row(first: String, difference: &Difference, shown: Shown) -> Vec<String> {
    let Shown { scale, decimals } = shown;
    let absent = || "-".to_owned();
    let value =
        |value: Option<f64>| value.map_or_else(absent, |it| format!("{:.decimals$}", it * scale));
    let interval = |it: Interval| {
        let it = it.scaled(scale);
        format!("{:+.decimals$} to {:+.decimals$}", it.low, it.high)
    };
    let few = difference.n_base.min(difference.n_other) < FEW_REQUESTS;
    vec![
        first,
        value(difference.base),
        value(difference.other),
        difference
            .difference
            .map_or_else(absent, |it| format!("{:+.decimals$}", it * scale)),
        difference.interval.map_or_else(absent, interval),
        difference
            .relative
            .map_or_else(absent, |it| format!("{:+.1} %", it * 100.0)),
        format!(
            "{} / {}{}",
            difference.n_base,
            difference.n_other,
            if few { " few" } else { "" }
        ),
        verdict(difference.verdict).to_owned(),
    ]
}

fn name(difference: &Difference) -> String {
    format!("{} ({})", label(difference), difference.unit)
}

fn label(difference: &Difference) -> &str {
    match difference.figure.as_str() {
        "spec_decode_token_weighted_acceptance_length" => "Acceptance Length",
        "spec_decode_overall_draft_acceptance_rate" => "Draft Acceptance Rate",
        "inter_token_latency" => "Inter-Token Latency",
        "survival" => "Some positions",
        other => other,
    }
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Higher => "higher",
        Verdict::Lower => "lower",
        Verdict::NoEvidence => "no evidence",
        Verdict::TooFew => "too few requests",
        Verdict::NotComparable => "not comparable",
        Verdict::Unknown => "unknown",
    }
}
