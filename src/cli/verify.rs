//! Flags of `spectap verify`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::value::parse_switch;

/// Send the same requests to the engine directly and through spectap, and compare what comes back: heads, bodies, the order
/// and time of events, and how connections end. Exit code 0: only what is there by design differs; 1: something else
/// does; 2: it could not be told.
#[derive(Args, Clone, Debug)]
pub struct VerifyArgs {
    /// The engine itself, http://HOST:PORT.
    #[arg(long, value_name = "URL", env = "SPECTAP_VERIFY_UPSTREAM")]
    pub upstream: String,

    /// spectap in front of it (its data port), http://HOST:PORT.
    #[arg(long, value_name = "URL", env = "SPECTAP_VERIFY_THROUGH")]
    pub through: String,

    /// Model to ask for. Without it the first that /v1/models lists.
    #[arg(long, value_name = "NAME", env = "SPECTAP_VERIFY_MODEL")]
    pub model: Option<String>,

    /// File with the key that the engine asks for, sent as Authorization: Bearer.
    #[arg(long, value_name = "FILE", env = "SPECTAP_VERIFY_API_KEY_FILE")]
    pub api_key_file: Option<PathBuf>,

    /// Send only these requests: a comma list of their names, as the result and the progress name them.
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        env = "SPECTAP_VERIFY_ONLY"
    )]
    pub only: Vec<String>,

    /// Go on without asking, for scripts: it makes the engine generate.
    #[arg(long, value_parser = parse_switch, env = "SPECTAP_VERIFY_YES")]
    pub yes: bool,

    /// How the result is printed.
    #[arg(long, value_enum, default_value_t, env = "SPECTAP_VERIFY_FORMAT")]
    pub format: VerifyFormat,
}

/// Forms of the result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum VerifyFormat {
    /// For people
    #[default]
    Text,
    /// For tools
    Json,
}
