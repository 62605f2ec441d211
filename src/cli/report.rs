//! Flags of `spectap report`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::export::By;
use crate::export::query::read_window;
use crate::stats::Window;

/// Print how well speculative decoding works on the traffic that a running tap has seen.
#[derive(Args, Clone, Debug)]
pub struct ReportArgs {
    /// Admin address of the tap to ask.
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

    /// How to print it.
    #[arg(long, value_enum, default_value_t, env = "SPECTAP_REPORT_FORMAT")]
    pub format: ReportFormat,

    /// Also one section per group: a comma list of model, engine, tag, route and at most one of context, prompt,
    /// cached, temperature, format, reasoning, stream, concurrency.
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = read_by,
        env = "SPECTAP_REPORT_BY"
    )]
    pub by: Vec<By>,

    /// Only exchanges that ended in the last 1m, 5m, 15m or 1h.
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
}

/// Forms of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// The table and the histogram line, as AIPerf prints them.
    #[default]
    Table,
    /// The summary, as `/api/v1/summary` gives it.
    Json,
}

fn read_by(name: &str) -> Result<By, String> {
    // The flag's name stands in the message already.
    By::read(name.trim()).map_err(|_| "write a comma list of model, engine, tag, route".to_owned())
}
