//! The table of requests.

use std::sync::Arc;

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::text::Line;
use ratatui::widgets::{Cell, Row, Table, TableState};

use super::{cell, clock};
use crate::observation::{Observation, Outcome};
use crate::record::AcceptanceHistogram;
use crate::top::model::{Model, length_of, rate_of, steps_of};
use crate::top::palette::Palette;

/// From this width on there are tags, steps, inter-token latencies and longer names.
const WIDE: u16 = 104;

/// Bars of the small histograms.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A small histogram has at most so many bars; the last one is of all beyond.
const MOST_BARS: usize = 9;

/// Draws the names of the columns and as many requests as there is room for.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, model: &Model, palette: Palette) {
    let requests = model.requests();
    let selected = model.position(&requests);
    let is_wide = area.width >= WIDE;
    let order: &str = model.order.into();
    let title = format!("{} requests, {order} first", requests.len());
    let columns = columns(is_wide);
    let names = columns
        .iter()
        .map(|column| heading(column.name, column.is_right));
    let header = Row::new(names).style(palette.quiet());
    let room = usize::from(area.height.saturating_sub(2));
    // Only what can be seen is drawn: there may be thousands.
    let first = (selected + 1).saturating_sub(room);
    let rows = requests.iter().skip(first).take(room).map(|request| {
        let cells = columns
            .iter()
            .map(|column| heading(&(column.show)(request), column.is_right));
        let row = Row::new(cells);
        match request.outcome {
            Outcome::Complete => row,
            _ => row.style(palette.notice()),
        }
    });
    let widths = columns.iter().map(|column| column.width);
    let table = Table::new(rows, widths)
        .header(header)
        .row_highlight_style(palette.selected());
    let mut state = TableState::default();
    if !requests.is_empty() {
        state.select(selected.checked_sub(first));
    }
    let [title_area, table_area] =
        ratatui::layout::Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
    frame.render_widget(Line::styled(title, palette.quiet()), title_area);
    frame.render_stateful_widget(table, table_area, &mut state);
}

fn heading(text: &str, is_right: bool) -> Cell<'static> {
    let line = Line::from(text.to_owned());
    Cell::from(if is_right { line.right_aligned() } else { line })
}

struct Column {
    name: &'static str,
    width: Constraint,
    is_right: bool,
    show: fn(&Arc<Observation>) -> String,
}

fn columns(is_wide: bool) -> Vec<Column> {
    let text = |name, width, show| Column {
        name,
        width,
        is_right: false,
        show,
    };
    let number = |name, width, show| Column {
        name,
        width: Constraint::Length(width),
        is_right: true,
        show,
    };
    let mut columns = vec![
        text("ended", Constraint::Length(8), |it| clock(it.ended_at)),
        text("model", Constraint::Fill(1), |it| {
            it.model.clone().unwrap_or_else(|| "-".to_owned())
        }),
    ];
    if is_wide {
        columns.push(text("tag", Constraint::Length(12), |it| {
            it.tag.clone().unwrap_or_default()
        }));
    }
    columns.extend([
        text("acceptance", Constraint::Length(10), shown_acceptance),
        number("tokens", 6, |it| {
            it.usage
                .completion_tokens
                .map_or_else(|| "-".to_owned(), |tokens| tokens.to_string())
        }),
    ]);
    if is_wide {
        columns.push(number("steps", 6, |it| match steps_of(it) {
            0 => "-".to_owned(),
            steps => steps.to_string(),
        }));
    }
    columns.extend([
        number("length", 6, |it| cell(length_of(it), 2)),
        number("rate %", 6, |it| {
            cell(rate_of(it).map(|rate| rate * 100.0), 1)
        }),
        text("0 1 2 …", Constraint::Length(MOST_BARS as u16), |it| {
            bars(it)
        }),
        number("ttft ms", 7, |it| cell(it.timing.time_to_first_token_ms, 0)),
    ]);
    if is_wide {
        columns.push(number("itl ms", 7, |it| {
            cell(it.timing.inter_token_latency_ms, 2)
        }));
        columns.push(number("total ms", 8, |it| {
            cell(it.timing.request_latency_ms, 0)
        }));
    }
    columns
}

/// What became of its numbers, or how it ended, whichever tells more.
fn shown_acceptance(exchange: &Arc<Observation>) -> String {
    match (exchange.outcome, exchange.acceptance) {
        (Outcome::Complete, Some(acceptance)) => acceptance.as_str().to_owned(),
        (Outcome::ErrorStatus, _) => exchange
            .status
            .map_or_else(|| "error".to_owned(), |status| format!("status {status}")),
        (outcome, _) => outcome.as_str().to_owned(),
    }
}

/// The steps by number of accepted drafts, the tallest bar of a request reaching the top.
fn bars(exchange: &Observation) -> String {
    let mut histogram = AcceptanceHistogram::new();
    for record in &exchange.spec_decode_acceptance {
        for (&accepted, &steps) in &record.acceptance_histogram {
            let bar = accepted.min(MOST_BARS as u32 - 1);
            let sum = histogram.entry(bar).or_default();
            *sum = sum.saturating_add(steps);
        }
    }
    let tallest = histogram.values().copied().max().unwrap_or(0);
    let last = histogram.keys().next_back().copied();
    let bar = |accepted: u32| match histogram.get(&accepted) {
        None | Some(0) => ' ',
        Some(&steps) => {
            BARS[((steps as f64 / tallest as f64 * 8.0).ceil() as usize).clamp(1, 8) - 1]
        }
    };
    last.map_or_else(String::new, |last| (0..=last).map(bar).collect())
}
