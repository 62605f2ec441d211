//! A comparison of runs, as JSON and as tables.

use serde::{Deserialize, Serialize};

use crate::stats::compare::{Comparison, Difference, Verdict, compare};
use crate::stats::interval::{FEW_REQUESTS, Interval};
use crate::stats::{Group, Period};

pub(super) mod columns;

use columns::aligned;

/// Runs side by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparisonOfRuns {
    /// What the others are held against.
    pub base: Run,
    /// The others in the order given.
    pub others: Vec<ComparedRun>,
}

/// Which run it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Where it came from.
    pub name: String,
    /// `from`: first start, `to`: last end.
    #[serde(flatten)]
    pub period: Period,
    /// Requests with a record; 0 for a run without speculation.
    pub n: u64,
    /// The k of its records, where they give one.
    pub k: Vec<u64>,
}

/// A run and how it differs from the base.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparedRun {
    /// Which run it is.
    pub run: Run,
    /// How it differs.
    #[serde(flatten)]
    pub comparison: Comparison,
}

/// Compares runs with the base.
pub fn comparison(base: (&str, &Group), others: &[(&str, Group)], seed: u64) -> ComparisonOfRuns {
    ComparisonOfRuns {
        base: Run::of(base.0, base.1),
        others: others
            .iter()
            .map(|(name, other)| ComparedRun {
                run: Run::of(name, other),
                comparison: compare(base.1, other, others.len(), seed),
            })
            .collect(),
    }
}

impl Run {
    fn of(name: &str, group: &Group) -> Self {
        Self {
            name: name.to_owned(),
            period: group.period,
            n: group.aiperf.pooled.records,
            k: group.evidence.records_by_k.keys().copied().collect(),
        }
    }

    fn title(&self) -> String {
        let k: Vec<String> = self.k.iter().map(u64::to_string).collect();
        match (self.n, k.is_empty()) {
            (0, _) => format!("{} (no speculation seen)", self.name),
            (n, true) => format!("{} ({n} requests with numbers)", self.name),
            (n, false) => format!(
                "{} ({n} requests with numbers, k = {})",
                self.name,
                k.join(", ")
            ),
        }
    }
}

/// The comparison as tables, one part per compared run.
pub fn tables(comparison: &ComparisonOfRuns) -> String {
    let mut text = format!("Base: {}\n", comparison.base.title());
    for other in &comparison.others {
        text.push_str(&part(other));
    }
    text.push_str(
        "\nThe intervals of the first table hold together at 95 %, by drawing requests anew; \
         those by position at 95 % each.\n",
    );
    text
}

fn part(other: &ComparedRun) -> String {
    let Comparison {
        differences,
        positions,
        speed_up,
    } = &other.comparison;
    let mut text = format!("\nCompared: {}\n", other.run.title());
    let mut rows = vec![
        [
            "figure",
            "base",
            "other",
            "difference",
            "interval",
            "relative",
            "n",
            "verdict",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    rows.extend(differences.iter().map(row));
    text.push_str(&aligned(&rows));
    for difference in differences {
        if let Some(why) = difference
            .why
            .as_ref()
            .filter(|_| difference.verdict != Verdict::Unknown)
        {
            text.push_str(&format!(
                "  {}: no verdict, since {why}.\n",
                label(difference)
            ));
        }
    }
    if let Some(speed_up) = speed_up {
        let interval = speed_up.interval.as_ref().map_or_else(String::new, |it| {
            format!(" ({:.2} to {:.2})", it.low, it.high)
        });
        text.push_str(&format!(
            "  Speed-up: tokens come {:.2} times as fast as in the base{interval}, at equal concurrency.\n",
            speed_up.value
        ));
    }
    if !positions.is_empty() {
        text.push_str("  Steps that accepted the draft at each position (% of steps):\n");
        let mut rows = vec![
            ["position", "base", "other", "difference", "interval"]
                .map(str::to_owned)
                .to_vec(),
        ];
        rows.extend(positions.iter().map(|position| {
            let percent = |share: f64| format!("{:.1}", share * 100.0);
            vec![
                position.position.to_string(),
                percent(position.base),
                percent(position.other),
                format!("{:+.1}", position.difference * 100.0),
                interval(position.interval.map(|it| it.scaled(100.0)), 1),
            ]
        }));
        text.push_str(&aligned(&rows));
    }
    text
}

fn row(difference: &Difference) -> Vec<String> {
    let value = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |it| format!("{it:.2}"));
    let few = difference.n_base.min(difference.n_other) < FEW_REQUESTS;
    vec![
        format!("{} ({})", label(difference), difference.unit),
        value(difference.base),
        value(difference.other),
        difference
            .difference
            .map_or_else(|| "-".to_owned(), |it| format!("{it:+.2}")),
        interval(difference.interval, 2),
        difference
            .relative
            .map_or_else(|| "-".to_owned(), |it| format!("{:+.1} %", it * 100.0)),
        format!(
            "{} / {}{}",
            difference.n_base,
            difference.n_other,
            if few { " few" } else { "" }
        ),
        verdict(difference.verdict).to_owned(),
    ]
}

fn interval(interval: Option<Interval>, decimals: usize) -> String {
    interval.map_or_else(
        || "-".to_owned(),
        |it| format!("{:+.decimals$} to {:+.decimals$}", it.low, it.high),
    )
}

fn label(difference: &Difference) -> &str {
    match difference.figure.as_str() {
        "spec_decode_token_weighted_acceptance_length" => "Acceptance Length",
        "spec_decode_overall_draft_acceptance_rate" => "Draft Acceptance Rate",
        "inter_token_latency" => "Inter-Token Latency",
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
