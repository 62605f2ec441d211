//! The keys, and how the figures are to be read.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Wrap};

use crate::top::keys::KEYS;
use crate::top::palette::Palette;

const READING: [&str; 8] = [
    "length: tokens per verify step, the bonus token included",
    "draft rate: accepted / drafted tokens",
    "from drafts: share of the output that came from drafts",
    "record share: requests with numbers / all requests",
    "map: over time; bright where many steps accepted that many drafts",
    "bars: steps that kept the draft at this place and all before;",
    "      behind them the same among those that kept all before",
    "Dim figures are of fewer than 30 requests. Times are UTC.",
];

/// Draws all of it.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, palette: Palette) {
    let keys = KEYS.iter().map(|(key, what)| {
        Line::from(vec![
            Span::styled(format!("  {key:<10}"), palette.strong()),
            Span::raw(*what),
        ])
    });
    let reading = READING.iter().map(|line| Line::raw(*line));
    let lines: Vec<Line<'_>> = keys.chain([Line::raw("")]).chain(reading).collect();
    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }), area);
}
