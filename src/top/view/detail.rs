//! One request with every field, and its steps one by one where the engine sent them.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use serde_json::Value;

use crate::observation::Observation;
use crate::record::AcceptanceRecord;
use crate::top::model::Model;
use crate::top::palette::Palette;

/// Columns before a value.
const NAMES: usize = 26;

/// Draws the selected request from line `scrolled` on; tells from which line it really was.
pub(super) fn draw(
    frame: &mut Frame<'_>,
    area: Rect,
    model: &Model,
    palette: Palette,
    scrolled: u16,
) -> u16 {
    let requests = model.requests();
    let Some(request) = requests.get(model.position(&requests)) else {
        frame.render_widget(Paragraph::new("This request is no longer kept."), area);
        return 0;
    };
    let lines = lines(request, usize::from(area.width), palette);
    let most = (lines.len() as u16).saturating_sub(area.height);
    let scrolled = scrolled.min(most);
    frame.render_widget(Paragraph::new(lines).scroll((scrolled, 0)), area);
    scrolled
}

fn lines(request: &Observation, width: usize, palette: Palette) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for record in &request.spec_decode_acceptance {
        lines.extend(steps(record, width, palette));
    }
    // All fields as the API has them, so that none is ever missing here.
    match serde_json::to_value(request) {
        Ok(Value::Object(fields)) => {
            for (name, value) in fields {
                push(&mut lines, &name, &value, 0, palette);
            }
        }
        _ => lines.push(Line::styled("this request can't be shown", palette.bad())),
    }
    lines
}

fn push(lines: &mut Vec<Line<'static>>, name: &str, value: &Value, depth: usize, palette: Palette) {
    let indent = "  ".repeat(depth);
    let width = NAMES.saturating_sub(indent.len());
    let line = |text: String| {
        Line::from(vec![
            Span::styled(format!("{indent}{name:<width$} "), palette.quiet()),
            Span::raw(text),
        ])
    };
    match value {
        Value::Object(fields) if !fields.is_empty() && name != "acceptance_histogram" => {
            lines.push(line(String::new()));
            for (name, value) in fields {
                push(lines, name, value, depth + 1, palette);
            }
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            for (index, item) in items.iter().enumerate() {
                push(lines, &format!("{name}[{index}]"), item, depth, palette);
            }
        }
        Value::Null => lines.push(line("-".to_owned())),
        Value::String(text) => lines.push(line(text.clone())),
        other => lines.push(line(other.to_string())),
    }
}

/// A cell per step: how many drafts it accepted, the brighter the more of those that it carried.
fn steps(record: &AcceptanceRecord, width: usize, palette: Palette) -> Vec<Line<'static>> {
    let Some(accepted) = &record.per_step_accepted else {
        return Vec::new();
    };
    let widest = accepted.iter().copied().max().unwrap_or(0);
    let cells = accepted.iter().enumerate().map(|(step, &accepted)| {
        let drafted = record
            .per_step_drafted
            .as_ref()
            .and_then(|drafted| drafted.get(step))
            .copied();
        let most = drafted.or(record.num_spec_tokens).unwrap_or(widest);
        let share = if most == 0 {
            0.0
        } else {
            accepted as f64 / most as f64
        };
        let digit = char::from_digit(accepted.min(35) as u32, 36).unwrap_or('+');
        let style = if palette.has_colour() {
            Style::new().bg(palette.shade(Some(share)))
        } else {
            Style::new()
        };
        Span::styled(digit.to_string(), style)
    });
    let cells: Vec<Span<'static>> = cells.collect();
    let mut lines = vec![Line::styled(
        "accepted drafts, step by step",
        palette.quiet(),
    )];
    lines.extend(
        cells
            .chunks(width.max(1))
            .map(|part| Line::from(part.to_vec())),
    );
    lines.push(Line::raw(""));
    lines
}
