//! Flags of `spectap report`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::value::parse_switch;
use crate::export::query::{BY_EXPECTED, read_window};
use crate::export::{By, Query};
use crate::stats::Window;

/// Print how well speculative decoding works on the traffic that a tap has seen: one that runs, or one that kept records.
#[derive(Args, Clone, Debug)]
pub struct ReportArgs {
    /// Records files to read instead of asking a running tap; several are merged.
    #[arg(
        value_name = "FILE",
        env = "SPECTAP_REPORT_FILES",
        value_delimiter = '\n'
    )]
    pub files: Vec<PathBuf>,

    /// Admin address of the tap to ask, where no file is named.
    #[arg(
        long,
        value_name = "URL",
        default_value = "http://127.0.0.1:8091",
        env = "SPECTAP_REPORT_FROM"
    )]
    pub from: String,

    /// File with the tap's admin token, where it asks for one (its own --admin-token-file).
    #[arg(long, value_name = "FILE", env = "SPECTAP_ADMIN_TOKEN_FILE")]
    pub admin_token_file: Option<PathBuf>,

    /// Look at captured response bodies instead: the *.json, *.sse and *.http (head and body) files of this directory.
    #[arg(
        long,
        value_name = "DIR",
        conflicts_with = "files",
        env = "SPECTAP_REPORT_BODIES"
    )]
    pub bodies: Option<PathBuf>,

    /// How to print it.
    #[arg(long, value_enum, default_value_t, env = "SPECTAP_REPORT_FORMAT")]
    pub format: ReportFormat,

    /// Also one section per group: a comma list of model, engine, tag, route, hour (UTC, of the end) and at most one of
    /// context, prompt, cached, temperature, format, reasoning, stream, concurrency. tag prints the matrix of categories as
    /// well. Hours need single exchanges: those of the files, or those that the tap still keeps.
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = read_by,
        env = "SPECTAP_REPORT_BY"
    )]
    pub by: Vec<By>,

    /// Only exchanges of this model, tag or engine, as in model=NAME; may repeat.
    #[arg(
        long,
        value_name = "KEY=VALUE",
        value_delimiter = '\n',
        value_parser = parse_filter,
        env = "SPECTAP_REPORT_FILTER"
    )]
    pub filter: Vec<(String, String)>,

    /// Only exchanges that ended in the last 1m, 5m, 15m or 1h, as the running tap counts them; not for files.
    #[arg(
        long,
        value_name = "WINDOW",
        value_parser = read_window,
        default_value = "all",
        env = "SPECTAP_REPORT_WINDOW"
    )]
    pub window: Window,

    /// Only exchanges whose request arrived in the run of this name.
    #[arg(long, value_name = "NAME", env = "SPECTAP_REPORT_RUN")]
    pub run: Option<String>,

    /// Which numbers: those of the requests that went through the tap, the engine's own counters of the whole server, or both.
    /// With server, --from may also be the address of an engine or of its metrics page: no tap is needed then.
    #[arg(long, value_enum, default_value_t, env = "SPECTAP_REPORT_SOURCE")]
    pub source: ReportSource,

    /// Also the figures that AIPerf has only in its files.
    #[arg(long, value_parser = parse_switch, env = "SPECTAP_REPORT_ALL")]
    pub all: bool,

    /// Join with AIPerf's profile_export.jsonl of the same run, by the X-Request-ID, and print the acceptance matrix of its
    /// categories (source_kind).
    #[arg(long, value_name = "FILE", env = "SPECTAP_REPORT_LABELS")]
    pub labels: Option<PathBuf>,

    /// Also the advice on the draft depth, with the speed-up where drafting one token takes this part of the time of
    /// one verify step (about the drafter's share of the model's size; 0 for n-grams). Without it, it is measured where
    /// requests ran at two depths.
    #[arg(long, value_name = "RATIO", value_parser = read_ratio, env = "SPECTAP_REPORT_DRAFT_COST")]
    pub draft_cost: Option<f64>,
}

fn read_ratio(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|ratio: &f64| ratio.is_finite() && *ratio >= 0.0)
        .ok_or_else(|| "should be a number from 0 on, such as 0.05".to_owned())
}

/// Where the numbers come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ReportSource {
    /// The records of single requests
    #[default]
    Requests,
    /// The engine's own counters
    Server,
    /// One below the other
    Both,
}

/// Forms of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// The tables and the histogram line, as AIPerf prints them
    #[default]
    Table,
    /// The summary, as /api/v1/summary gives it
    Json,
    /// The rows of AIPerf's profile_export_aiperf.csv
    Csv,
    /// The tables for a page
    Markdown,
    /// The exchanges one by one, as a records file
    Jsonl,
    /// The measured acceptance as the knobs with which engines pretend it in benchmarks
    Synthetic,
}

fn parse_filter(text: &str) -> Result<(String, String), String> {
    let (key, value) = text
        .split_once('=')
        .filter(|(key, value)| matches!(*key, "model" | "tag" | "engine") && !value.is_empty())
        .ok_or("write model=NAME, tag=NAME or engine=NAME")?;
    Query::from_pairs([(key, value)]).map_err(|error| error.to_string())?;
    Ok((key.to_owned(), value.to_owned()))
}

fn read_by(name: &str) -> Result<By, String> {
    // The flag's name stands in the message already.
    By::read(name.trim()).map_err(|_| format!("write {BY_EXPECTED}"))
}
