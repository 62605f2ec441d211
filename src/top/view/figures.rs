//! The line of figures: what all requests of the window come to, with n or how far each moved since the mark.

use std::time::SystemTime;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::{cell, moved};
use crate::export::Summary;
use crate::top::engine::Movement;
use crate::top::model::Model;
use crate::top::palette::Palette;

/// One figure.
#[derive(Clone)]
struct Shown {
    name: &'static str,
    value: Option<f64>,
    decimals: usize,
    unit: &'static str,
    /// What it is made of.
    n: u64,
    what: &'static str,
    /// Whether it is of too few requests.
    is_doubtful: bool,
    /// Its name in the summary, where the mark has it, and whether more of it is better.
    tag: Option<(&'static str, bool)>,
}

/// Draws three lines: names, values, n.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, model: &Model, palette: Palette) {
    let figures = model.summary().map(|summary| figures(summary).to_vec());
    let figures = figures.or_else(|| Some(of_engine(model.engine()?, model.answer.as_ref()?.at)));
    let Some(figures) = figures else {
        let text = match &model.answer {
            None => "Asking the taps …",
            Some(_) => "No tap answers. It is asked again and again; r asks now.",
        };
        frame.render_widget(Paragraph::new(text), area);
        return;
    };
    let parts = Layout::horizontal(figures.iter().map(|_| Constraint::Fill(1)))
        .spacing(1)
        .split(area);
    for (figure, part) in figures.iter().zip(parts.iter()) {
        frame.render_widget(Paragraph::new(lines(figure, model, palette)), *part);
    }
}

fn lines(figure: &Shown, model: &Model, palette: Palette) -> Vec<Line<'static>> {
    let style: Style = if figure.is_doubtful {
        palette.doubtful()
    } else {
        palette.strong()
    };
    let value = match figure.value {
        Some(_) => format!("{}{}", cell(figure.value, figure.decimals), figure.unit),
        None => "-".to_owned(),
    };
    let change = figure
        .tag
        .zip(figure.value)
        .and_then(|((tag, more_is_better), value)| {
            let by = model.moved(tag, value)?;
            Some(moved(by, figure.decimals, more_is_better, palette))
        });
    let below = change.unwrap_or_else(|| {
        let few = if figure.is_doubtful && figure.n > 0 {
            " (few)"
        } else {
            ""
        };
        Span::styled(
            format!("{} {}{few}", figure.n, figure.what),
            palette.quiet(),
        )
    });
    vec![
        Line::styled(figure.name, palette.quiet()),
        Line::styled(value, style),
        Line::from(below),
    ]
}

fn figures(summary: &Summary) -> [Shown; 6] {
    let run_level = |tag: &'static str| summary.metrics.get(tag).or_else(|| summary.gain.get(tag));
    let of = |name, tag: &'static str, decimals, unit, scale: f64, more_is_better| {
        let metric = run_level(tag);
        Shown {
            name,
            value: metric.map(|metric| metric.avg * scale),
            decimals,
            unit,
            n: metric.and_then(|metric| metric.n).unwrap_or(0),
            what: "requests",
            is_doubtful: metric.is_some_and(|metric| metric.few_requests),
            // A scaled figure would be held against one that is not.
            tag: (scale == 1.0).then_some((tag, more_is_better)),
        }
    };
    // A tap may be younger than the window: from its first exchange to the last, as the summary's own throughput.
    let of_traffic = |tag: &str| summary.metrics.get(tag).map(|metric| metric.avg);
    let seconds = of_traffic("request_count").zip(of_traffic("request_throughput"));
    let seconds = seconds.map(|(requests, per_second)| requests / per_second);
    let seconds = seconds.filter(|it| *it > 0.0 && it.is_finite());
    let total = |tag: &str| summary.metrics.get(tag).map(|metric| metric.avg);
    let drafted = total("total_draft_tokens").zip(total("total_accepted_draft_tokens"));
    let per_second = |name, amount: Option<f64>, n, what| Shown {
        name,
        value: amount
            .zip(seconds)
            .map(|(amount, seconds)| amount / seconds),
        decimals: 1,
        unit: "/s",
        n,
        what,
        is_doubtful: false,
        tag: None,
    };
    let wasted = drafted.map(|(drafted, accepted)| drafted - accepted);
    [
        of(
            "length",
            "spec_decode_token_weighted_acceptance_length",
            2,
            "",
            1.0,
            true,
        ),
        of(
            "draft rate",
            "spec_decode_overall_draft_acceptance_rate",
            1,
            "%",
            1.0,
            true,
        ),
        of("from drafts", "draft_token_share", 1, "%", 100.0, true),
        per_second(
            "wasted",
            wasted,
            wasted.map_or(0, |wasted| wasted as u64),
            "drafts",
        ),
        Shown {
            name: "record share",
            value: summary.record_share.map(|share| share * 100.0),
            decimals: 1,
            unit: "%",
            n: summary.n.exchanges,
            what: "requests",
            is_doubtful: false,
            tag: None,
        },
        per_second(
            "requests",
            Some(summary.n.exchanges as f64),
            summary.n.zero_step,
            "zero-step",
        ),
    ]
}

/// The same of an engine that is read directly: only its counters are known.
fn of_engine(engine: &Movement, now: SystemTime) -> Vec<Shown> {
    let counts = &engine.counts;
    let seconds = engine
        .since
        .and_then(|since| now.duration_since(since).ok());
    let seconds = seconds.map(|it| it.as_secs_f64()).filter(|it| *it > 0.0);
    let known = |name, value, decimals, unit, n: Option<u64>, what| Shown {
        name,
        value,
        decimals,
        unit,
        n: n.unwrap_or(0),
        what,
        is_doubtful: false,
        tag: None,
    };
    let per_second = |amount: Option<u64>| Some(amount? as f64 / seconds?);
    let steps = counts.steps.filter(|steps| *steps > 0);
    let tokens_per_step = counts
        .generation_tokens
        .zip(steps)
        .map(|(tokens, steps)| tokens as f64 / steps as f64);
    let wasted = counts
        .drafted
        .zip(counts.accepted)
        .map(|(drafted, accepted)| drafted.saturating_sub(accepted));
    let rate = counts.rate().map(|rate| rate * 100.0);
    vec![
        known("length", counts.length(), 2, "", counts.steps, "steps"),
        known("draft rate", rate, 1, "%", counts.drafted, "drafts"),
        known(
            "tokens/step",
            tokens_per_step,
            2,
            "",
            counts.generation_tokens,
            "tokens",
        ),
        known("wasted", per_second(wasted), 1, "/s", wasted, "drafts"),
        known(
            "steps",
            per_second(counts.steps),
            1,
            "/s",
            counts.steps,
            "steps",
        ),
        known(
            "requests",
            per_second(counts.requests),
            1,
            "/s",
            counts.requests,
            "requests",
        ),
    ]
}
