//! Flags of `spectap serve` about how much and how long.

use std::num::NonZeroUsize;
use std::time::Duration;

use clap::Args;

use super::value::parse_duration;

/// More connections than any system gives one process.
const MOST_CONNECTIONS: usize = 1 << 20;

/// Longer limits are none; and the clock ends somewhere.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

/// What clients and the engine may take.
#[derive(Clone, Debug, Args)]
pub struct LimitsArgs {
    /// Most client connections of each listen address at the same time; more wait until one closes. auto: 16384, or less
    /// where the process may not open files enough for them.
    #[arg(long, value_name = "N|auto", value_parser = parse_connections, default_value = "auto",
          env = "SPECTAP_MAX_CONNECTIONS")]
    pub max_connections: MostConnections,

    /// How long a client may take to send a request's head; kept connections without a request are closed after it, too.
    #[arg(long, value_name = "DURATION", value_parser = parse_limit, default_value = "30s", env = "SPECTAP_HEAD_TIMEOUT")]
    pub head_timeout: Duration,

    /// How long a connection to the engine may take to open.
    #[arg(long, value_name = "DURATION", value_parser = parse_limit, default_value = "5s",
          env = "SPECTAP_CONNECT_TIMEOUT")]
    pub connect_timeout: Duration,

    /// How long the engine may take from a request to the head of its response. Off unless given: engines that don't
    /// stream answer only when all is generated.
    #[arg(long, value_name = "DURATION", value_parser = parse_limit, env = "SPECTAP_RESPONSE_HEAD_TIMEOUT")]
    pub response_head_timeout: Option<Duration>,

    /// How long the engine may be silent within a response. Off unless given: a prefill may take minutes.
    #[arg(long, value_name = "DURATION", value_parser = parse_limit, env = "SPECTAP_IDLE_TIMEOUT")]
    pub idle_timeout: Option<Duration>,

    /// How long a whole exchange may take. Off unless given: it cuts long streams.
    #[arg(long, value_name = "DURATION", value_parser = parse_limit, env = "SPECTAP_TOTAL_TIMEOUT")]
    pub total_timeout: Option<Duration>,
}

/// A bound on connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MostConnections {
    /// What the limit of open files allows.
    Auto,
    /// So many.
    Number(NonZeroUsize),
}

fn parse_connections(text: &str) -> Result<MostConnections, String> {
    match (text, text.parse::<NonZeroUsize>()) {
        ("auto", _) => Ok(MostConnections::Auto),
        (_, Ok(number)) if number.get() <= MOST_CONNECTIONS => Ok(MostConnections::Number(number)),
        _ => Err(format!(
            "write auto, or a number from 1 to {MOST_CONNECTIONS}"
        )),
    }
}

fn parse_limit(text: &str) -> Result<Duration, String> {
    match parse_duration(text)? {
        limit if limit.is_zero() || limit > LONGEST => {
            Err("write a duration above zero and of a year at most, like 30s".to_owned())
        }
        limit => Ok(limit),
    }
}
