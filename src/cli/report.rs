//! Flags of `spectap report`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::export::By;

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

    /// Also one section per group: a comma list of model, engine, tag, route.
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = read_by,
        env = "SPECTAP_REPORT_BY"
    )]
    pub by: Vec<By>,

    /// Also the advice on the draft depth, with the speed-up where drafting one token takes this part of the time of
    /// one verify step (about the drafter's share of the model's size; 0 for n-grams).
    #[arg(long, value_name = "RATIO", value_parser = read_ratio, env = "SPECTAP_REPORT_DRAFT_COST")]
    pub draft_cost: Option<f64>,
}

fn read_ratio(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|ratio: &f64| ratio.is_finite() && *ratio >= 0.0)
        .ok_or_else(|| "should be a number from 0 on, such as 0.05".to_owned())
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
