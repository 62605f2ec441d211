//! Draws the model. Each part of the screen has a file; none of them changes anything.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::model::{Model, Screen};
use super::palette::Palette;

mod categories;
mod detail;
mod figures;
mod heatmap;
mod help;
mod requests;
mod survival;

/// Smallest screen on which the overview has all its parts.
const SMALLEST: (u16, u16) = (76, 18);

/// Draws the whole screen.
pub(super) fn draw(frame: &mut Frame<'_>, model: &mut Model, palette: Palette) {
    let area = frame.area();
    let [header, body, footer] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Fill(1),
        Constraint::Length(1),
    ])
    .areas(area);
    frame.render_widget(heading(model, palette), header);
    frame.render_widget(foot(model, palette), footer);
    match model.screen {
        Screen::Help => help::draw(frame, body, palette),
        Screen::Detail(scrolled) => {
            let lines = detail::draw(frame, body, model, palette, scrolled);
            model.screen = Screen::Detail(lines);
        }
        Screen::Overview if area.width < SMALLEST.0 || area.height < SMALLEST.1 => {
            let text = format!(
                "{} × {} is too small; {} × {} is the least",
                area.width, area.height, SMALLEST.0, SMALLEST.1
            );
            frame.render_widget(
                Paragraph::new(text).wrap(ratatui::widgets::Wrap { trim: true }),
                body,
            );
        }
        Screen::Overview => overview(frame, body, model, palette),
    }
}

fn overview(frame: &mut Frame<'_>, area: Rect, model: &Model, palette: Palette) {
    let notes = notes(model, palette, usize::from(area.height) / 10);
    let groups = model.summary().map_or(0, |summary| summary.groups.len());
    let charts = if area.height >= 34 { 12 } else { 7 };
    let most_groups = usize::from(area.height) / 4;
    let [figures, told, charts, categories, requests] = Layout::vertical([
        Constraint::Length(3),
        Constraint::Length(notes.len() as u16),
        Constraint::Length(charts),
        // Heading and names of columns.
        Constraint::Length(2 + groups.clamp(1, most_groups.saturating_sub(2).max(1)) as u16),
        Constraint::Fill(1),
    ])
    .areas(area);
    let [heat, curve] =
        Layout::horizontal([Constraint::Fill(3), Constraint::Fill(2)]).areas(charts);
    figures::draw(frame, figures, model, palette);
    frame.render_widget(Paragraph::new(notes), told);
    heatmap::draw(frame, heat, model, palette);
    survival::draw(frame, curve, model, palette);
    categories::draw(frame, categories, model, palette);
    requests::draw(frame, requests, model, palette);
}

/// Taps that are down, and findings.
fn notes(model: &Model, palette: Palette, most: usize) -> Vec<Line<'static>> {
    let taps = model.answer.iter().flat_map(|answer| &answer.taps);
    let down = taps.filter_map(|tap| tap.problem.clone());
    let mut notes: Vec<Line<'static>> = down
        .map(|problem| Line::styled(format!("down: {problem}"), palette.bad()))
        .collect();
    notes.extend(engine_line(model).map(|line| Line::styled(line, palette.quiet())));
    let findings = model
        .summary()
        .into_iter()
        .flat_map(|summary| &summary.findings);
    notes.extend(findings.map(|it| Line::styled(format!("! {}", it.text), palette.notice())));
    notes.truncate(most.max(1));
    notes
}

/// What the engine counts itself, beside the records or instead of them.
fn engine_line(model: &Model) -> Option<String> {
    let Some(summary) = model.summary() else {
        return Some(match model.engine()?.since {
            Some(_) => "read from the engine's own counters, since this view began".to_owned(),
            None => "read from the engine's own counters, since the engine began".to_owned(),
        });
    };
    let server = summary.server.as_ref()?;
    let figure = |tag: &str| server.metrics.get(tag).map(|metric| metric.avg);
    let length = figure("spec_decode_token_weighted_acceptance_length");
    let rate = figure("spec_decode_overall_draft_acceptance_rate");
    let coverage = summary
        .coverage
        .as_ref()
        .and_then(|coverage| coverage.ratio());
    let coverage =
        coverage.map(|ratio| format!(", of whose steps the records hold {:.1} %", ratio * 100.0));
    Some(format!(
        "the engine's own counters: length {}, rate {} %{}",
        cell(length, 2),
        cell(rate, 1),
        coverage.unwrap_or_default()
    ))
}

fn heading(model: &Model, palette: Palette) -> Line<'static> {
    let mut parts = vec![Span::styled("spectap top", palette.strong())];
    let mut push = |text: String, style| {
        parts.push(Span::raw("  "));
        parts.push(Span::styled(text, style));
    };
    if let Some(answer) = &model.answer {
        let up: Vec<&str> = answer
            .taps
            .iter()
            .filter(|tap| tap.problem.is_none())
            .map(|tap| tap.url.trim_start_matches("http://"))
            .collect();
        let taps = match (up.as_slice(), answer.taps.len()) {
            ([], _) => "no tap answers".to_owned(),
            ([one], 1) => (*one).to_owned(),
            (up, all) => format!("{} of {all} taps", up.len()),
        };
        push(taps, palette.quiet());
    }
    push(format!("window {}", model.window.as_str()), palette.quiet());
    if !model.filter.text.is_empty() {
        push(format!("filter {}", model.filter.text), palette.notice());
    }
    if model.mark.is_some() {
        push("against the mark".to_owned(), palette.notice());
    }
    if model.is_paused {
        push("PAUSED".to_owned(), palette.notice());
    }
    match &model.answer {
        Some(answer) => push(clock(answer.at), palette.quiet()),
        None => push("asking …".to_owned(), palette.quiet()),
    }
    Line::from(parts)
}

fn foot(model: &Model, palette: Palette) -> Line<'static> {
    if let Some((text, problem)) = &model.editing {
        let mut parts = vec![Span::raw(format!("/{text}▏"))];
        match problem {
            Some(problem) => parts.push(Span::styled(format!("  {problem}"), palette.bad())),
            None => parts.push(Span::styled(
                "  Enter takes it, Esc leaves it",
                palette.quiet(),
            )),
        }
        return Line::from(parts);
    }
    let keys = match model.screen {
        Screen::Overview => {
            "/ filter  s sort  g group  +- window  ⏎ open  d mark  p pause  ? help  q quit"
        }
        Screen::Detail(_) => "Esc back  ↑ ↓ scroll  q quit",
        Screen::Help => "Esc back  q quit",
    };
    Line::styled(keys, palette.quiet())
}

/// Hours, minutes and seconds in UTC.
fn clock(time: std::time::SystemTime) -> String {
    let text = humantime::format_rfc3339_seconds(time).to_string();
    text.get(11..19).unwrap_or("").to_owned()
}

/// A figure as a cell; a dash where it is unknown.
fn cell(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.decimals$}"))
}

/// How far a figure moved, with its sign and a colour that tells whether that is good.
fn moved(by: f64, decimals: usize, more_is_better: bool, palette: Palette) -> Span<'static> {
    let text = format!("{by:+.decimals$}");
    let is_still = text
        .trim_start_matches(['+', '-'])
        .chars()
        .all(|it| matches!(it, '0' | '.'));
    let style = match (is_still, (by > 0.0) == more_is_better) {
        (true, _) => palette.quiet(),
        (false, true) => palette.good(),
        (false, false) => palette.bad(),
    };
    Span::styled(text, style)
}
