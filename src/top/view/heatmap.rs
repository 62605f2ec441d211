//! Accepted drafts per step over time. With colour two rows share a line, by half blocks; without it a character tells
//! the share.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use crate::top::heat::Heat;
use crate::top::model::{Model, span};
use crate::top::palette::Palette;

/// Columns for the numbers of accepted drafts, to the left.
const SCALE: u16 = 4;

/// Draws the heading, the map and its time axis.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, model: &Model, palette: Palette) {
    let Some(answer) = &model.answer else { return };
    let columns = usize::from(area.width.saturating_sub(SCALE + 1));
    let heat = Heat::of(
        model.wanted(),
        model.engine_columns(),
        answer.at,
        span(model.window),
        columns,
    );
    let mut lines = vec![Line::styled(
        "accepted drafts per step, over time",
        palette.quiet(),
    )];
    let height = u32::from(area.height.saturating_sub(2)).max(1);
    match heat.deepest() {
        None => lines.push(Line::raw("    no verify step yet")),
        Some(deepest) => {
            let per_line = if palette.has_colour() { 2 } else { 1 };
            // More drafts than rows: neighbours share one.
            let per_row = (deepest + 1).div_ceil(height * per_line);
            let rows = (deepest + 1).div_ceil(per_row).max(per_line);
            for line in (0..rows.div_ceil(per_line)).rev() {
                lines.push(row(&heat, line * per_line, per_line, per_row, palette));
            }
            lines.push(axis(&heat, palette));
        }
    }
    frame.render_widget(Paragraph::new(lines), area);
}

/// One line of the screen: the rows from `low` on.
fn row(heat: &Heat, low: u32, rows: u32, per_row: u32, palette: Palette) -> Line<'static> {
    let share = |column, row: u32| heat.share(column, row * per_row, (row + 1) * per_row - 1);
    let mut parts = vec![Span::styled(
        format!("{:>3} ", low * per_row),
        palette.quiet(),
    )];
    parts.extend((0..heat.columns.len()).map(|column| match rows {
        1 => Span::raw(Palette::character(share(column, low)).to_string()),
        _ => {
            let style = Style::new()
                .fg(palette.shade(share(column, low + 1)))
                .bg(palette.shade(share(column, low)));
            let half = if share(column, low).is_some() {
                "▀"
            } else {
                " "
            };
            Span::styled(half, style)
        }
    }));
    Line::from(parts)
}

fn axis(heat: &Heat, palette: Palette) -> Line<'static> {
    let ago = heat.width.saturating_mul(heat.columns.len() as u32);
    let left = format!("{} ago", humantime::format_duration(ago));
    let each = format!("each {}", humantime::format_duration(heat.width));
    let space = heat.columns.len().saturating_sub(left.len() + 3);
    let middle = if space > each.len() + 2 {
        each
    } else {
        String::new()
    };
    Line::styled(format!("    {left}{middle:^space$}now"), palette.quiet())
}
