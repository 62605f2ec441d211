//! The category table: a line per tag, model, engine or band.

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Row, Table};

use super::{cell, moved};
use crate::export::By;
use crate::export::summary::GroupSummary;
use crate::top::model::Model;
use crate::top::palette::Palette;

const LENGTH: &str = "spec_decode_token_weighted_acceptance_length";
const RATE: &str = "spec_decode_overall_draft_acceptance_rate";
const LENGTHS: &str = "spec_decode_acceptance_length";

/// Draws the names of the columns and the groups with the most requests.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, model: &Model, palette: Palette) {
    let Some(summary) = model.summary() else {
        return;
    };
    let mut groups: Vec<&GroupSummary> = summary.groups.iter().collect();
    let room = usize::from(area.height.saturating_sub(1));
    let hidden = groups.len().saturating_sub(room);
    if hidden > 0 {
        groups.sort_by_key(|group| std::cmp::Reverse(group.n.exchanges));
    }
    let by = model.grouping.by();
    let more = if hidden > 0 {
        format!(" ({hidden} more)")
    } else {
        String::new()
    };
    let heading = [
        format!("{}{more}", by.as_str()),
        "n".to_owned(),
        "recorded".to_owned(),
        "length".to_owned(),
        "p10".to_owned(),
        "p50".to_owned(),
        "p90".to_owned(),
        "rate".to_owned(),
    ];
    let right = |text: String| Cell::from(Line::from(text).right_aligned());
    let mut names = heading.into_iter();
    let first = Cell::from(names.next().unwrap_or_default());
    let header = Row::new(std::iter::once(first).chain(names.map(right))).style(palette.quiet());
    let rows = groups
        .iter()
        .take(room)
        .map(|group| row(group, by, model, palette));
    let widths = [
        Constraint::Fill(1),
        Constraint::Length(7),
        Constraint::Length(8),
        Constraint::Length(13),
        Constraint::Length(6),
        Constraint::Length(6),
        Constraint::Length(6),
        Constraint::Length(14),
    ];
    frame.render_widget(Table::new(rows, widths).header(header), area);
}

fn row(group: &GroupSummary, by: By, model: &Model, palette: Palette) -> Row<'static> {
    let name = group.key.get(&by).cloned().flatten();
    let name = name.unwrap_or_else(|| {
        match by {
            By::Tag => "(none)",
            _ => "unknown",
        }
        .to_owned()
    });
    let length = group.metrics.get(LENGTH);
    let style = if length.is_some_and(|length| length.few_requests) {
        palette.doubtful()
    } else {
        palette.strong()
    };
    let percentiles = group
        .metrics
        .get(LENGTHS)
        .and_then(|lengths| lengths.percentiles);
    let with_change = |tag: &str, decimals, unit: &str| {
        let value = group.metrics.get(tag).map(|metric| metric.avg);
        let shown = match value {
            Some(_) => format!("{}{unit}", cell(value, decimals)),
            None => "-".to_owned(),
        };
        let mut parts = Vec::new();
        let by = value.and_then(|value| model.moved_in(&group.key, tag, value));
        if let Some(by) = by {
            parts.push(moved(by, decimals, true, palette));
            parts.push(Span::raw(" "));
        }
        parts.push(Span::styled(shown, style));
        Cell::from(Line::from(parts).right_aligned())
    };
    let right = |text: String| Cell::from(Line::from(text).right_aligned());
    let percentile = |value: Option<f64>| right(cell(value, 2));
    Row::new([
        Cell::from(name),
        right(group.n.exchanges.to_string()),
        right(group.n.recorded.to_string()),
        with_change(LENGTH, 2, ""),
        percentile(percentiles.map(|it| it.p10)),
        percentile(percentiles.map(|it| it.p50)),
        percentile(percentiles.map(|it| it.p90)),
        with_change(RATE, 1, "%"),
    ])
}
