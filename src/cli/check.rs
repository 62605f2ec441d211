//! Flags of `spectap check`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::value::{parse_duration, parse_switch};
use crate::proxy::UpstreamAddress;

/// Ask an engine why acceptance numbers do not show up, and say what to change.
#[derive(Args, Clone, Debug)]
pub struct CheckArgs {
    /// The engine, host and port only.
    #[arg(long, value_name = "URL", value_parser = UpstreamAddress::parse, env = "SPECTAP_UPSTREAM")]
    pub upstream: UpstreamAddress,

    /// Send the three short requests without asking first.
    #[arg(long, value_parser = parse_switch, env = "SPECTAP_CHECK_YES")]
    pub yes: bool,

    /// Model to ask; without it the first that the engine lists.
    #[arg(long, value_name = "NAME", env = "SPECTAP_CHECK_MODEL")]
    pub model: Option<String>,

    /// File with the key that the engine asks for.
    #[arg(long, value_name = "FILE", env = "SPECTAP_CHECK_API_KEY_FILE")]
    pub api_key_file: Option<PathBuf>,

    /// How long each answer may take.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "60s",
          env = "SPECTAP_CHECK_TIMEOUT")]
    pub timeout: Duration,

    /// How to print it.
    #[arg(long, value_enum, default_value_t, env = "SPECTAP_CHECK_FORMAT")]
    pub format: CheckFormat,
}

/// Forms of a check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum CheckFormat {
    /// Lines for people
    #[default]
    Text,
    /// For scripts
    Json,
}
