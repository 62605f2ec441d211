//! How many steps got past each draft position, as bars.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use crate::stats::survival::{self, Widths};
use crate::top::model::Model;
use crate::top::palette::Palette;

/// Columns beside a bar: the position to its left, shares to its right.
const BESIDE: u16 = 5 + 18;

/// A bar's end in eighths of a column.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// Draws the heading and a bar for each position.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, model: &Model, palette: Palette) {
    let of_engine = || {
        let histogram = model.engine()?.counts.histogram()?;
        Some(survival::curve(&histogram, &Widths::default()))
    };
    let curve = match model.summary() {
        Some(summary) => Some(summary.survival.clone()),
        None => of_engine(),
    };
    let Some(curve) = curve else { return };
    let bound = curve.iter().any(|it| it.lower_bound);
    let heading = match bound {
        true => "kept at least … (lower bound), if all before",
        false => "kept, and if all before were",
    };
    let mut lines = vec![Line::styled(heading, palette.quiet())];
    let width = usize::from(area.width.saturating_sub(BESIDE)).max(4);
    let rows = usize::from(area.height.saturating_sub(1));
    for position in curve.iter().take(rows) {
        let conditional = position.conditional.map_or_else(
            || "      -".to_owned(),
            |share| format!("{:>6.1}%", share * 100.0),
        );
        lines.push(Line::from(vec![
            Span::styled(
                format!("{:>4} ", ordinal(position.position + 1)),
                palette.quiet(),
            ),
            Span::styled(
                format!("{:<width$}", bar(position.share, width)),
                palette.bar(),
            ),
            Span::raw(format!(" {:>6.1}%", position.share * 100.0)),
            Span::styled(format!(" {conditional}"), palette.quiet()),
        ]));
    }
    frame.render_widget(Paragraph::new(lines), area);
}

fn bar(share: f64, width: usize) -> String {
    let eighths = (share.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

/// 1st, 2nd, 3rd, 4th: drafts as people count them.
fn ordinal(number: u32) -> String {
    let ending = match (number % 100, number % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}
