//! Flags of `spectap top`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::value::{parse_duration, parse_switch};
use crate::export::query::read_window;
use crate::stats::Window;
use crate::top::Grouping;

/// Summaries take a tap some milliseconds.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(200);

const AFTER_HELP: &str = "\
Keys: / filter, s sort, g group, + and - window, up and down select, Enter detail, d mark for difference, p pause,
? help, q quit. Without a terminal, or for a script:
  spectap top --once
  spectap top --once --format json";

/// Watch acceptance live in the terminal, of one tap or of several together.
#[derive(Args, Clone, Debug)]
#[command(after_help = AFTER_HELP)]
pub struct TopArgs {
    /// Admin addresses of the taps to watch; the figures of several are merged exactly. An address may also be that of an
    /// engine or of its metrics page: then its own counters are shown, with no tap before it.
    #[arg(
        value_name = "URL",
        default_value = "http://127.0.0.1:8091",
        value_delimiter = '\n',
        env = "SPECTAP_TOP_URLS"
    )]
    pub urls: Vec<String>,

    /// File with the token that the taps' admin ports ask for.
    #[arg(long, value_name = "FILE", env = "SPECTAP_ADMIN_TOKEN_FILE")]
    pub admin_token_file: Option<PathBuf>,

    /// The figures are about exchanges that ended in the last 1m, 5m, 15m or 1h, or about all.
    #[arg(
        long,
        value_name = "WINDOW",
        value_parser = read_window,
        default_value = "5m",
        env = "SPECTAP_TOP_WINDOW"
    )]
    pub window: Window,

    /// What the category table tells apart.
    #[arg(long, value_enum, default_value_t, env = "SPECTAP_TOP_BY")]
    pub by: Grouping,

    /// Only exchanges that all of these words fit, as after the key /: model=NAME, tag=NAME, engine=NAME; any other word
    /// narrows the table of requests only.
    #[arg(
        long,
        value_name = "WORDS",
        default_value = "",
        hide_default_value = true,
        env = "SPECTAP_TOP_FILTER"
    )]
    pub filter: String,

    /// How often the taps are asked, 200ms at least.
    #[arg(long, value_name = "DURATION", value_parser = read_interval, default_value = "2s", env = "SPECTAP_TOP_INTERVAL")]
    pub interval: Duration,

    /// Print once and end; with a fault if no tap answers.
    #[arg(long, value_parser = parse_switch, env = "SPECTAP_TOP_ONCE")]
    pub once: bool,

    /// How --once prints: the view as text, or what it is drawn from.
    #[arg(
        long,
        value_enum,
        default_value_t,
        requires = "once",
        env = "SPECTAP_TOP_FORMAT"
    )]
    pub format: TopFormat,
}

/// Forms of `spectap top --once`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum TopFormat {
    /// The view, without colour
    #[default]
    Text,
    /// The summary (as /api/v1/summary) and what each tap answered
    Json,
}

fn read_interval(text: &str) -> Result<Duration, String> {
    let interval = parse_duration(text)?;
    if interval < SHORTEST_INTERVAL {
        return Err(
            "asking more often than every 200ms keeps the taps busy with answers".to_owned(),
        );
    }
    Ok(interval)
}
