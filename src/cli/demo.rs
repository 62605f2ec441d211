//! Flags of `spectap demo`.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;

/// Show the whole thing on this machine: a simulated engine, traffic, the tap, and a live table.
#[derive(Clone, Debug, Args)]
pub struct DemoArgs {
    /// Stop after this time; without it, Ctrl-C stops.
    #[arg(long = "for", value_name = "DURATION", value_parser = super::value::parse_duration, env = "SPECTAP_DEMO_FOR")]
    pub duration: Option<Duration>,

    /// Stop after this many requests.
    #[arg(long, value_name = "N", env = "SPECTAP_DEMO_REQUESTS")]
    pub requests: Option<u64>,

    /// Requests under way at once.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=1000),
          env = "SPECTAP_DEMO_CONCURRENCY")]
    pub concurrency: u16,

    /// Seed of the simulated engine and its traffic: the same seed gives the same acceptance.
    #[arg(long, value_name = "N", default_value_t = 1, env = "SPECTAP_DEMO_SEED")]
    pub seed: u64,

    /// Where the demo's tap listens for clients; port 0 takes a free one.
    #[arg(
        long,
        value_name = "ADDRESS",
        value_parser = super::value::parse_address,
        default_value = "127.0.0.1:8090",
        env = "SPECTAP_DEMO_LISTEN"
    )]
    pub listen: SocketAddr,

    /// Where the demo's own endpoints are.
    #[arg(
        long,
        value_name = "ADDRESS",
        value_parser = super::value::parse_address,
        default_value = "127.0.0.1:8091",
        env = "SPECTAP_DEMO_ADMIN_LISTEN"
    )]
    pub admin_listen: SocketAddr,
}
