//! Flags of `spectap serve` about the engine's own metrics page.

use std::time::Duration;

use clap::Args;

use super::value::{parse_duration, parse_switch};
use crate::scrape::Target;

/// The engine's own counters: they are of the whole server, and tell how much of it the records hold.
#[derive(Clone, Debug, Args)]
pub struct ScrapeArgs {
    /// Metrics page of the engine, or its address alone; may repeat. Without it the page of each upstream is looked for
    /// once, and read on if it has series of an engine that is known.
    #[arg(long, value_name = "URL", value_parser = Target::parse, env = "SPECTAP_SCRAPE", value_delimiter = ',')]
    pub scrape: Vec<Target>,

    /// Never read the engine's metrics page.
    #[arg(long, value_parser = parse_switch, conflicts_with = "scrape", env = "SPECTAP_NO_SCRAPE")]
    pub no_scrape: bool,

    /// From one reading of the page to the next.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "5s",
          env = "SPECTAP_SCRAPE_INTERVAL")]
    pub scrape_interval: Duration,

    /// How long a reading may take.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "2s",
          env = "SPECTAP_SCRAPE_TIMEOUT")]
    pub scrape_timeout: Duration,

    /// Only read the engine's metrics page: no data port, nothing before the engine, nothing to change on it.
    #[arg(long, value_parser = parse_switch, conflicts_with_all = ["no_scrape", "lane"], env = "SPECTAP_SCRAPE_ONLY")]
    pub scrape_only: bool,
}
