//! Flags of `spectap compare`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use strum::VariantArray;

use crate::export::query::read_window;
use crate::stats::Window;
use crate::stats::compare::PairBy;

/// Compare runs with intervals and a verdict that says when there is no evidence.
#[derive(Args, Clone, Debug)]
pub struct CompareArgs {
    /// What the others are held against: admin address of a tap (http://HOST:PORT), or a file: its records, or its
    /// snapshot (`/api/v1/snapshot`). A part of either is named behind it: http://HOST:PORT?run=NAME, FILE#run=NAME, and
    /// likewise tag=, model=, engine=, and window= of a tap; ?run=NAME alone is of the tap at http://127.0.0.1:8091. It
    /// may be a run without speculation.
    #[arg(value_name = "BASE")]
    pub base: String,

    /// The runs to compare with it.
    #[arg(value_name = "OTHER", required = true)]
    pub others: Vec<String>,

    /// File with the token that the taps' admin ports ask for.
    #[arg(long, value_name = "FILE", env = "SPECTAP_ADMIN_TOKEN_FILE")]
    pub admin_token_file: Option<PathBuf>,

    /// Of running taps only exchanges that ended in the last 1m, 5m, 15m or 1h; not for files, and not with --pair.
    #[arg(
        long,
        value_name = "WINDOW",
        value_parser = read_window,
        default_value = "all",
        env = "SPECTAP_COMPARE_WINDOW"
    )]
    pub window: Window,

    /// Hold equal prompts against each other, which narrows the intervals: requests with the same X-Request-ID
    /// (x_request_id), or the first of a tag to arrive against the first of that tag, and so on (tag-index). Of a tap
    /// those that it still keeps.
    #[arg(
        long,
        value_name = "x_request_id|tag-index",
        value_parser = read_pair_by,
        env = "SPECTAP_COMPARE_PAIR"
    )]
    pub pair: Option<PairBy>,

    /// How to print it.
    #[arg(long, value_enum, default_value_t, env = "SPECTAP_COMPARE_FORMAT")]
    pub format: CompareFormat,

    /// Seed of the draws: the same seed gives the same intervals.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        env = "SPECTAP_COMPARE_SEED"
    )]
    pub seed: u64,
}

/// Forms of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum CompareFormat {
    /// Tables for people
    #[default]
    Table,
    /// For tools
    Json,
    /// The tables for a page
    Markdown,
}

fn read_pair_by(name: &str) -> Result<PairBy, String> {
    PairBy::from_str(name).map_err(|_| {
        let names: Vec<&str> = PairBy::VARIANTS.iter().map(|by| by.as_str()).collect();
        format!("write {}", names.join(" or "))
    })
}
