//! The page of results: what is measured goes between two marks, what people wrote around them stays.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::figure::Figure;
use crate::peers::Peer;
use crate::report::Report;
use crate::results::Spread;
use crate::scenario::Scenario;
use crate::targets::TARGETS;

const BEGIN: &str = "<!-- measured: begin -->\n";
const END: &str = "<!-- measured: end -->\n";

/// Makes sure that a page can take results.
///
/// # Errors
///
/// It can't be read, or has not both marks.
pub fn check(page: &Path) -> Result<()> {
    let name = || page.display().to_string();
    let text = std::fs::read_to_string(page).with_context(name)?;
    between(&text, "").map(drop).with_context(name)
}

/// Puts the results into a page.
///
/// # Errors
///
/// The page can't be read or written, or has not both marks.
pub fn update(page: &Path, report: &Report) -> Result<()> {
    let name = || page.display().to_string();
    let text = std::fs::read_to_string(page).with_context(name)?;
    let text = between(&text, &render(report)).with_context(name)?;
    std::fs::write(page, text).with_context(name)
}

fn between(page: &str, measured: &str) -> Result<String> {
    let (before, rest) = page.split_once(BEGIN).context("no mark of the beginning")?;
    let (_, after) = rest.split_once(END).context("no mark of the end")?;
    Ok(format!("{before}{BEGIN}{measured}{END}{after}"))
}

/// The measured part of the page.
pub fn render(report: &Report) -> String {
    let mut page = String::new();
    conditions(&mut page, report);
    targets(&mut page, report);
    for scenario in Scenario::ALL {
        table(&mut page, report, scenario);
    }
    page
}

fn conditions(page: &mut String, report: &Report) {
    let machine = &report.machine;
    let _ = writeln!(
        page,
        "\n{}, {} cores, {} GB, Linux {}. {} rounds, readings of about {} s.\n",
        machine.cpu,
        machine.cores,
        machine.memory_gb,
        machine.kernel,
        report.rounds,
        report.seconds
    );
    page.push_str("| hop | version |\n|---|---|\n");
    for (peer, version) in &report.peers {
        let version = version
            .as_deref()
            .unwrap_or("**missing**: it could not be installed");
        let _ = writeln!(page, "| {peer} | {version} |");
    }
    let disturbed = report
        .results
        .0
        .iter()
        .filter(|reading| reading.is_disturbed);
    let disturbed = disturbed.count();
    if disturbed > 0 {
        let _ = writeln!(
            page,
            "\n{disturbed} of {} readings are disturbed, marked by a star: more than {} cores worked for others.",
            report.results.0.len(),
            report.quiet
        );
    }
}

fn targets(page: &mut String, report: &Report) {
    page.push_str("\n### Targets\n\n| what | target | measured | |\n|---|---|---|---|\n");
    for target in TARGETS {
        let (spread, verdict) = target.judge(&report.results);
        let sign = if target.is_lower_bound() {
            "≥"
        } else {
            "≤"
        };
        let _ = writeln!(
            page,
            "| {} | {sign} {} | {} | {} |",
            target.what,
            number(target.bound),
            spread.map_or_else(String::new, cell),
            verdict.name()
        );
    }
}

fn table(page: &mut String, report: &Report, scenario: Scenario) {
    let results = &report.results;
    let figures = scenario.figures();
    let peers: Vec<Peer> = Peer::ALL
        .into_iter()
        .filter(|peer| {
            let has = |figure: &&Figure| results.spread(scenario, *peer, **figure).is_some();
            figures.iter().any(|figure| has(&figure))
        })
        .collect();
    if peers.is_empty() {
        return;
    }
    let _ = write!(page, "\n### {}\n\n| hop |", scenario.heading());
    for figure in figures {
        let _ = write!(page, " {} |", figure.heading());
    }
    // Of the first figure, which is the one that matters most; watched readings are held against unwatched ones.
    let (base, over) = if scenario == Scenario::Watched {
        ((Scenario::Paced256, Peer::Spectap), "not watched")
    } else {
        ((scenario, Peer::Nginx), "nginx")
    };
    let _ = write!(page, " {} / {over} |\n|---|", name(figures[0]));
    page.push_str(&"---|".repeat(figures.len() + 1));
    page.push('\n');
    for peer in peers {
        let star = if results.is_disturbed(scenario, peer) {
            " *"
        } else {
            ""
        };
        let _ = write!(page, "| {peer}{star} |");
        for figure in figures {
            let spread = results.spread(scenario, peer, *figure);
            let _ = write!(page, " {} |", spread.map_or_else(String::new, cell));
        }
        let ratio = results.ratio(figures[0], (scenario, peer), base);
        let _ = writeln!(page, " {} |", ratio.map_or_else(String::new, ratio_cell));
    }
}

/// A figure's name without its unit.
fn name(figure: Figure) -> &'static str {
    figure.heading().split(',').next().unwrap_or_default()
}

/// Median and range.
fn cell(spread: Spread) -> String {
    let [median, low, high] = [spread.median, spread.low, spread.high].map(number);
    if low == high {
        return median;
    }
    format!("{median} ({low} to {high})")
}

fn ratio_cell(spread: Spread) -> String {
    let [median, low, high] =
        [spread.median, spread.low, spread.high].map(|value| format!("{value:.2}"));
    if low == high {
        return median;
    }
    format!("{median} ({low} to {high})")
}

/// With about three digits that say something.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_stands_between_the_marks_changes() {
        let page = format!("before\n{BEGIN}old\n{END}after\n");
        let new = format!("before\n{BEGIN}new\n{END}after\n");
        assert_eq!(between(&page, "new\n").unwrap(), new);
        assert!(between("no marks", "new\n").is_err());
        assert!(between(&format!("{END}{BEGIN}"), "new\n").is_err());
    }

    #[test]
    fn a_cell_has_median_and_range_where_there_is_one() {
        let spread = |values: &[f64]| Spread::of(values.iter().copied()).unwrap();
        assert_eq!(cell(spread(&[1.234, 12.34, 123.4])), "12.3 (1.23 to 123)");
        assert_eq!(cell(spread(&[1.2])), "1.20");
    }
}
