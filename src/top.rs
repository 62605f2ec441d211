//! `spectap top`: the live view in a terminal, of one tap or of several together.
//!
//! `ask` gets snapshots and recent exchanges over the admin API and merges them, as a report does; `model` is what
//! is shown and what the keys change; `view` draws it. Nothing here computes a figure that the summary has.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use ratatui::crossterm::event::{self, Event, KeyEvent, KeyEventKind};
use ratatui::{DefaultTerminal, Frame};
use serde::Serialize;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::cli::token;
use crate::cli::top::{TopArgs, TopFormat};
use crate::export::{Query, QueryError, Summary};
use crate::scrape::Counts;

mod ask;
mod engine;
mod filter;
mod heat;
mod keys;
mod model;
mod palette;
mod view;

pub use ask::{Answer, TapAnswer};
pub use engine::Movement;
pub use filter::Filter;
pub use keys::Effect;
pub use model::{Grouping, Model};
pub use palette::Palette;

use ask::Taps;

/// How often the thread that reads keys looks whether the view has ended.
const KEY_WAIT: Duration = Duration::from_millis(100);

/// What `--once` draws on, in characters.
const ONCE_SIZE: (u16, u16) = (110, 40);

/// Why the view ended early, or did not begin.
#[derive(Debug, thiserror::Error)]
pub enum TopError {
    /// Standard output is no terminal.
    #[error(
        "standard output is no terminal; `spectap top --once` prints the view once, and with --format json for scripts"
    )]
    NoTerminal,
    /// No tap answers.
    #[error("{0}")]
    NoTap(String),
    /// The filter can't be.
    #[error("--filter {0}")]
    Filter(#[from] QueryError),
    /// The token file can't be used.
    #[error("invalid value '{}' for '--admin-token-file': {problem}", path.display())]
    Token {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what would be right.
        problem: String,
    },
    /// The terminal failed.
    #[error("the terminal failed: {0}")]
    Terminal(#[from] io::Error),
    /// The summary could not be turned into JSON.
    #[error("can't write the summary as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// Shows the view until `q` or `stop`, or prints it once.
///
/// # Errors
///
/// [`TopError`], whose text says what went wrong and what to try.
pub async fn run(
    args: &TopArgs,
    stop: CancellationToken,
    out: &mut dyn Write,
) -> Result<(), TopError> {
    let token = match &args.admin_token_file {
        Some(path) => Some(token::read(path).map_err(|problem| TopError::Token {
            path: path.clone(),
            problem,
        })?),
        None => None,
    };
    let filter = Filter::read(&args.filter)?;
    let model = Model::new(args.window, args.by, filter);
    let taps = Taps::new(&args.urls, token);
    if args.once {
        return once(args.format, model, taps, out).await;
    }
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Err(TopError::NoTerminal);
    }
    // It restores the terminal if the view panics, too.
    let terminal = ratatui::try_init()?;
    let shown = show(terminal, args.interval, model, taps, stop).await;
    ratatui::try_restore()?;
    shown
}

/// What `--once --format json` prints.
#[derive(Serialize)]
struct Once<'a> {
    taps: &'a [TapAnswer],
    summary: Option<&'a Summary>,
    /// What the engines among them count themselves.
    engine: Option<&'a Counts>,
}

async fn once(
    format: TopFormat,
    mut model: Model,
    mut taps: Taps,
    out: &mut dyn Write,
) -> Result<(), TopError> {
    let answer = taps.ask(&model.query()).await;
    if answer.summary.is_none() && answer.engine.is_none() {
        let problems: Vec<String> = answer
            .taps
            .into_iter()
            .filter_map(|it| it.problem)
            .collect();
        return Err(TopError::NoTap(problems.join("; ")));
    }
    match format {
        TopFormat::Json => {
            let once = Once {
                taps: &answer.taps,
                summary: answer.summary.as_ref(),
                engine: answer.engine.as_ref().map(|engine| &engine.counts),
            };
            serde_json::to_writer_pretty(&mut *out, &once)?;
            writeln!(out)?;
        }
        TopFormat::Text => {
            model.take(answer);
            write!(out, "{}", as_text(&mut model, ONCE_SIZE)?)?;
        }
    }
    Ok(out.flush()?)
}

/// The view as plain text, without blank lines at its end.
///
/// # Errors
///
/// Never in practice: the screen is in memory.
pub fn as_text(model: &mut Model, (width, height): (u16, u16)) -> Result<String, TopError> {
    let backend = ratatui::backend::TestBackend::new(width, height);
    let mut terminal = ratatui::Terminal::new(backend).map_err(io::Error::other)?;
    terminal
        .draw(|frame| view::draw(frame, model, Palette::plain()))
        .map_err(io::Error::other)?;
    let buffer = terminal.backend().buffer();
    let lines = (0..height).map(|row| {
        let cells = (0..width).map(|column| buffer[(column, row)].symbol());
        cells.collect::<String>().trim_end().to_owned()
    });
    let text = Vec::from_iter(lines).join("\n");
    Ok(format!("{}\n", text.trim_end()))
}

/// Draws the model on a screen of any kind.
pub fn draw(frame: &mut Frame<'_>, model: &mut Model, palette: Palette) {
    view::draw(frame, model, palette);
}

async fn show(
    mut terminal: DefaultTerminal,
    interval: Duration,
    mut model: Model,
    taps: Taps,
    stop: CancellationToken,
) -> Result<(), TopError> {
    let palette = Palette::of_environment();
    // Whatever ends the view ends the thread and the task, too.
    let ended = stop.child_token();
    let _end = ended.clone().drop_guard();
    let (questions, asked) = watch::channel(model.query());
    let mut answers = poll(taps, asked, interval, ended.clone());
    let mut keys = read_keys(ended);
    loop {
        terminal.draw(|frame| view::draw(frame, &mut model, palette))?;
        let effect = tokio::select! {
            _ = stop.cancelled() => return Ok(()),
            answer = answers.recv() => {
                if let Some(answer) = answer {
                    model.take(answer);
                }
                Effect::None
            }
            event = keys.recv() => match event {
                Some(Event::Key(key)) if is_pressed(key) => model.press(key),
                // Anything else, a resize above all, is a reason to draw again.
                Some(_) => Effect::None,
                None => Effect::Quit,
            },
        };
        match effect {
            Effect::None => {}
            Effect::Ask => {
                questions.send_replace(model.query());
            }
            Effect::Quit => return Ok(()),
        }
    }
}

fn is_pressed(key: KeyEvent) -> bool {
    key.kind != KeyEventKind::Release
}

/// Asks the taps again and again, at once when the question changes.
fn poll(
    mut taps: Taps,
    mut asked: watch::Receiver<Query>,
    interval: Duration,
    ended: CancellationToken,
) -> mpsc::Receiver<Answer> {
    // An answer that nobody has drawn yet holds the next one back.
    let (send, answers) = mpsc::channel(1);
    tokio::spawn(ended.run_until_cancelled_owned(async move {
        loop {
            let query = asked.borrow_and_update().clone();
            let answer = taps.ask(&query).await;
            // What was asked for meanwhile goes before an answer to the old question.
            if !asked.has_changed().unwrap_or(true) && send.send(answer).await.is_err() {
                return;
            }
            let _elapsed = tokio::time::timeout(interval, asked.changed()).await;
        }
    }));
    answers
}

/// Reads keys on a thread of their own: a terminal can only be waited for.
fn read_keys(ended: CancellationToken) -> mpsc::Receiver<Event> {
    let (send, keys) = mpsc::channel(16);
    thread::spawn(move || {
        while !ended.is_cancelled() {
            match event::poll(KEY_WAIT) {
                Ok(false) => continue,
                Ok(true) => {}
                Err(_) => return,
            }
            let Ok(event) = event::read() else { return };
            if send.blocking_send(event).is_err() {
                return;
            }
        }
    });
    keys
}
