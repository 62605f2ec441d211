//! The terminal view: frames at several sizes, what the keys do, and that its figures are the summary's.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test ends at the first surprise"
)]

mod numbers_support;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use numbers_support::traffic;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Color;
use spectap::export::{Query, Summary, summary};
use spectap::observation::{Acceptance, Observation, ObservationSink, Outcome};
use spectap::scrape::Counts;
use spectap::stats::{Statistics, Window};
use spectap::top::{
    Answer, Effect, Filter, Grouping, Model, Movement, Palette, TapAnswer, as_text, draw,
};

const EXCHANGES: u64 = 400;

fn exchanges() -> Vec<Arc<Observation>> {
    let all = (0..EXCHANGES).map(|number| {
        let mut exchange = traffic::exchange(number, 3, 4);
        exchange.id = format!("exchange-{number}");
        if number % 50 == 7 {
            exchange.outcome = Outcome::Cancelled;
            exchange.acceptance = Some(Acceptance::Absent);
            exchange.spec_decode_acceptance.clear();
        }
        Arc::new(exchange)
    });
    all.rev().collect()
}

fn summary_of(exchanges: &[Arc<Observation>], query: &Query) -> Summary {
    let statistics = Statistics::new();
    for exchange in exchanges.iter().rev() {
        statistics.record(Arc::clone(exchange));
    }
    summary(&statistics, query)
}

fn answer(exchanges: Vec<Arc<Observation>>, query: &Query) -> Answer {
    Answer {
        taps: vec![TapAnswer {
            url: "http://127.0.0.1:8091".into(),
            problem: None,
        }],
        summary: Some(summary_of(&exchanges, query)),
        exchanges,
        engine: None,
        at: traffic::end_of(EXCHANGES) + Duration::from_secs(20),
    }
}

fn model() -> Model {
    let mut model = Model::new(Window::All, Grouping::Tag, Filter::default());
    model.take(answer(exchanges(), &model.query()));
    model
}

fn press(model: &mut Model, keys: &str) -> Effect {
    let mut effect = Effect::None;
    for key in keys.chars() {
        let code = match key {
            '\n' => KeyCode::Enter,
            '\u{1b}' => KeyCode::Esc,
            '↓' => KeyCode::Down,
            other => KeyCode::Char(other),
        };
        effect = model.press(KeyEvent::new(code, KeyModifiers::NONE));
    }
    effect
}

fn frame(model: &mut Model, size: (u16, u16)) -> String {
    as_text(model, size).unwrap()
}

/// Holds a frame against the file of this name. With `SPECTAP_WRITE_FRAMES` set it writes the file instead: look at it
/// before it is committed.
#[track_caller]
fn is_drawn(name: &str, frame: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/top")
        .join(name);
    if std::env::var_os("SPECTAP_WRITE_FRAMES").is_some() {
        fs::write(path, frame).unwrap();
        return;
    }
    let expected = fs::read_to_string(&path).unwrap();
    assert!(
        frame == expected,
        "{name} is drawn otherwise:\n{frame}\nexpected:\n{expected}"
    );
}

#[test]
fn the_overview_fits_every_size() {
    is_drawn("overview-80x24.txt", &frame(&mut model(), (80, 24)));
    is_drawn("overview-120x40.txt", &frame(&mut model(), (120, 40)));
    is_drawn("overview-200x60.txt", &frame(&mut model(), (200, 60)));
    is_drawn("overview-76x18.txt", &frame(&mut model(), (76, 18)));
    let told = frame(&mut model(), (40, 10)).replace('\n', " ");
    assert!(
        told.contains("40 × 10 is too small; 76 × 18 is the least"),
        "{told}"
    );
    // No size brings it down.
    for size in [(1, 1), (3, 2), (60, 3), (10, 60), (61, 17)] {
        frame(&mut model(), size);
    }
}

#[test]
fn the_figures_are_those_of_the_summary() {
    let mut model = model();
    let summary = summary_of(&exchanges(), &model.query());
    let frame = frame(&mut model, (120, 40));
    for (tag, decimals, unit) in [
        ("spec_decode_token_weighted_acceptance_length", 2, ""),
        ("spec_decode_overall_draft_acceptance_rate", 1, "%"),
    ] {
        let figure = format!("{:.decimals$}{unit}", summary.metrics[tag].avg);
        assert!(
            frame.contains(&figure),
            "{tag} {figure} is missing in\n{frame}"
        );
    }
    for position in &summary.survival {
        assert!(frame.contains(&format!("{:.1}%", position.share * 100.0)));
    }
    for group in &summary.groups {
        let name = group.key.values().next().unwrap().clone().unwrap();
        let line = frame.lines().find(|line| line.starts_with(&name)).unwrap();
        assert!(line.contains(&group.n.exchanges.to_string()));
        let lengths = group.metrics["spec_decode_acceptance_length"]
            .percentiles
            .unwrap();
        assert!(line.contains(&format!("{:.2}", lengths.p90)), "{line}");
    }
}

#[test]
fn colour_shows_two_rows_in_a_line_and_its_lack_one() {
    let mut model = model();
    let mut coloured = Terminal::new(TestBackend::new(100, 30)).unwrap();
    coloured
        .draw(|frame| draw(frame, &mut model, Palette::coloured()))
        .unwrap();
    let cells = coloured.backend().buffer().content();
    let halves = cells.iter().filter(|cell| cell.symbol() == "▀");
    assert!(halves.clone().count() > 0);
    assert!(
        halves
            .clone()
            .any(|cell| cell.bg != Color::Reset && cell.fg != cell.bg)
    );
    let mut plain = Terminal::new(TestBackend::new(100, 30)).unwrap();
    plain
        .draw(|frame| draw(frame, &mut model, Palette::plain()))
        .unwrap();
    for cell in plain.backend().buffer().content() {
        assert_ne!(cell.symbol(), "▀");
        assert_eq!((cell.fg, cell.bg), (Color::Reset, Color::Reset));
    }
}

#[test]
fn the_filter_narrows_figures_and_table() {
    let mut model = model();
    press(&mut model, "/model=nothing");
    assert!(frame(&mut model, (100, 30)).contains("/model=nothing▏"));
    assert_eq!(press(&mut model, "\n"), Effect::Ask);
    assert_eq!(model.query().model.as_deref(), Some("nothing"));
    assert!(frame(&mut model, (100, 30)).contains("\n0 requests, newest first"));
    // Esc takes the filter away.
    assert_eq!(press(&mut model, "\u{1b}"), Effect::Ask);
    assert_eq!(model.query().model, None);
    // A word narrows the table only.
    press(&mut model, "/Cancelled\n");
    assert!(frame(&mut model, (100, 30)).contains("\n8 requests, newest first"));
    assert_eq!(
        model.query().by,
        Model::new(Window::All, Grouping::Tag, Filter::default())
            .query()
            .by
    );
    // What can't be a filter is said where it was written.
    press(&mut model, "\u{1b}/engine=tgi\n");
    assert!(frame(&mut model, (160, 30)).contains("engine=tgi: should be"));
    press(&mut model, "\u{1b}");
    assert_eq!(model.query().engine, None);
}

#[test]
fn keys_sort_group_widen_and_quit() {
    let mut model = model();
    let first_request = |model: &mut Model| {
        let frame = frame(model, (120, 40));
        let mut lines = frame
            .lines()
            .skip_while(|line| !line.contains(" requests, "));
        lines.nth(2).unwrap().to_owned()
    };
    let newest = first_request(&mut model);
    press(&mut model, "s");
    let shortest = first_request(&mut model);
    assert_ne!(newest, shortest);
    let all = exchanges();
    let lengths = all.iter().filter_map(|exchange| {
        let record = exchange.spec_decode_acceptance.first()?;
        Some(1.0 + record.num_accepted_draft_tokens as f64 / record.num_spec_steps? as f64)
    });
    let least = lengths.fold(f64::INFINITY, f64::min);
    assert!(
        shortest.contains(&format!(" {least:.2} ")),
        "{shortest} has not {least:.2}"
    );
    assert_eq!(press(&mut model, "g"), Effect::Ask);
    assert_eq!(model.query().by, [spectap::export::By::Model]);
    // It goes through every facet, and back to where it began.
    let mut facets = BTreeSet::new();
    while model.query().by != [spectap::export::By::Tag] {
        facets.extend(model.query().by[0].facet());
        press(&mut model, "g");
    }
    assert_eq!(facets.len(), 8, "{facets:?}");
    assert_eq!(
        press(&mut model, "+"),
        Effect::None,
        "there is no window beyond all"
    );
    assert_eq!(press(&mut model, "-"), Effect::Ask);
    assert_eq!(model.query().window, Window::Hour);
    assert_eq!(press(&mut model, "?"), Effect::None);
    is_drawn("help-80x24.txt", &frame(&mut model, (80, 24)));
    assert_eq!(press(&mut model, "q"), Effect::Quit);
    let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(model.press(interrupt), Effect::Quit);
}

#[test]
fn a_request_opens_with_every_field_and_its_steps() {
    let mut model = Model::new(Window::All, Grouping::Tag, Filter::default());
    let mut all = exchanges();
    let mut detailed = Observation::clone(&all[2]);
    let record = &mut detailed.spec_decode_acceptance[0];
    record.per_step_accepted = Some(vec![3, 0, 2, 4]);
    record.per_step_drafted = Some(vec![4, 4, 2, 4]);
    all[2] = Arc::new(detailed.clone());
    model.take(answer(all, &model.query()));
    press(&mut model, "↓↓\n");
    let shown = frame(&mut model, (100, 200));
    assert!(shown.contains("\n3024\n"), "{shown}");
    let fields = serde_json::to_value(&detailed).unwrap();
    for name in fields.as_object().unwrap().keys() {
        assert!(shown.contains(&format!("\n{name}")), "{name} is missing");
    }
    assert!(shown.contains(&detailed.id));
    // It can't be scrolled out of sight.
    let small = |model: &mut Model| frame(model, (100, 24));
    let top = small(&mut model);
    press(&mut model, &"↓".repeat(500));
    let bottom = small(&mut model);
    assert_ne!(top, bottom);
    assert_eq!(bottom.lines().count(), 24);
    press(&mut model, "\u{1b}");
    assert!(frame(&mut model, (100, 30)).contains("requests, newest first"));
}

#[test]
fn a_mark_shows_how_far_figures_move() {
    let mut model = model();
    press(&mut model, "d");
    let still = frame(&mut model, (120, 40));
    assert!(
        still.contains("against the mark") && still.contains("+0.00"),
        "{still}"
    );
    // The newer half alone has another length.
    let mut rest = exchanges();
    rest.truncate(150);
    let before = summary_of(&exchanges(), &model.query());
    let now = summary_of(&rest, &model.query());
    model.take(answer(rest, &model.query()));
    let tag = "spec_decode_token_weighted_acceptance_length";
    let by = now.metrics[tag].avg - before.metrics[tag].avg;
    let moved = frame(&mut model, (120, 40));
    assert!(
        moved.contains(&format!("{by:+.2}")),
        "{by:+.2} is missing in\n{moved}"
    );
    press(&mut model, "d");
    assert!(!frame(&mut model, (120, 40)).contains("against the mark"));
}

#[test]
fn a_pause_holds_the_picture() {
    let mut model = model();
    let before = frame(&mut model, (100, 30));
    press(&mut model, "p");
    model.take(answer(Vec::new(), &model.query()));
    let paused = frame(&mut model, (100, 30));
    assert!(paused.lines().next().unwrap().contains("PAUSED"));
    assert_eq!(
        before.lines().skip(1).collect::<Vec<_>>(),
        paused.lines().skip(1).collect::<Vec<_>>()
    );
    assert_eq!(press(&mut model, "p"), Effect::Ask);
    model.take(answer(Vec::new(), &model.query()));
    assert_ne!(before, frame(&mut model, (100, 30)));
}

#[test]
fn taps_that_are_down_are_said_so() {
    let mut model = model();
    let mut answer = answer(exchanges(), &model.query());
    answer.taps.push(TapAnswer {
        url: "http://127.0.0.1:1".into(),
        problem: Some("can't reach http://127.0.0.1:1: Connection refused".into()),
    });
    model.take(answer);
    let shown = frame(&mut model, (100, 30));
    assert!(shown.contains("1 of 2 taps"), "{shown}");
    assert!(
        shown.contains("down: can't reach http://127.0.0.1:1"),
        "{shown}"
    );
}

#[test]
fn an_engine_alone_shows_what_its_counters_moved_by() {
    let mut model = Model::new(Window::FiveMinutes, Grouping::Tag, Filter::default());
    let at = traffic::end_of(0);
    let counts = Counts {
        steps: Some(100),
        drafted: Some(300),
        accepted: Some(120),
        accepted_at: [(0, 60), (1, 40), (2, 20)].into(),
        generation_tokens: Some(250),
        requests: Some(7),
        ..Counts::default()
    };
    let histogram = counts.histogram().unwrap();
    assert_eq!(histogram, [(0, 40), (1, 20), (2, 20), (3, 20)].into());
    model.take(Answer {
        taps: vec![TapAnswer {
            url: "http://127.0.0.1:8000".into(),
            problem: None,
        }],
        summary: None,
        exchanges: Vec::new(),
        engine: Some(Movement {
            counts,
            since: Some(at - Duration::from_secs(10)),
            columns: vec![(at, histogram)],
        }),
        at,
    });
    let shown = frame(&mut model, (100, 30));
    for figure in [
        "2.20", "40.0%", "2.50", "18.0/s", "10.0/s", "0.7/s", "60.0%",
    ] {
        assert!(shown.contains(figure), "{figure} is missing in\n{shown}");
    }
    assert!(
        shown.contains("read from the engine's own counters"),
        "{shown}"
    );
}
