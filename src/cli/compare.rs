//! Flags of `spectap compare`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Compare runs with intervals and a verdict that says when there is no evidence.
#[derive(Args, Clone, Debug)]
pub struct CompareArgs {
    /// What the others are held against: admin address of a tap (http://HOST:PORT), or a file with a snapshot
    /// (`/api/v1/snapshot`) or with one observation per line. It may be a run without speculation.
    #[arg(value_name = "BASE")]
    pub base: String,

    /// The runs to compare with it.
    #[arg(value_name = "OTHER", required = true)]
    pub others: Vec<String>,

    /// File with the token that the taps' admin ports ask for.
    #[arg(long, value_name = "FILE", env = "SPECTAP_ADMIN_TOKEN_FILE")]
    pub admin_token_file: Option<PathBuf>,

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
    /// Tables for people.
    #[default]
    Table,
    /// For tools.
    Json,
}
