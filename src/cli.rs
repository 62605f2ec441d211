//! The command line: one struct per command, one field per flag, each with an environment variable.

pub mod check;
pub mod compare;
pub mod control;
pub mod demo;
pub mod limits;
pub mod records;
pub mod report;
pub mod scrape;
pub mod serve;
pub mod simulate;
pub mod token;
pub mod top;
pub mod transport;
mod value;
pub mod verify;

use clap::{Parser, Subcommand};

use crate::logs::{DEFAULT_FILTER, LogFormat};

/// Version and commit, as `--version` prints them.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("SPECTAP_COMMIT"), ")");

/// Heading of the flags that every command takes, so that they do not stand among its own.
const LOGGING: &str = "Logging, for every command";

const AFTER_HELP: &str = "\
Try it, without a GPU and without a network:
  spectap demo

In front of a vLLM that was started with --per-request-spec-decode-metrics summary:
  spectap serve --upstream http://127.0.0.1:8000
then point clients at http://127.0.0.1:8090 and look at the numbers:
  spectap top
  spectap report

Exit codes: 0 done, 1 failed, 2 a flag or its value is wrong, 3 streams were cut when the grace was over. check and
verify have codes of their own for what they find: docs/troubleshooting.md and docs/configuration.md.
Every flag can be given by the environment variable that its help names.";

/// Tells how well speculative decoding works on live traffic, which goes through unchanged.
#[derive(Debug, Parser)]
#[command(name = "spectap", version = VERSION, after_help = AFTER_HELP, max_term_width = 110)]
pub struct Cli {
    /// How log lines are written to standard error.
    #[arg(long, global = true, value_enum, default_value_t = LogFormat::Text, value_name = "FORMAT", env = "SPECTAP_LOG_FORMAT",
          help_heading = LOGGING)]
    pub log_format: LogFormat,

    /// Which log lines are written: a level (error, warn, info, debug, trace) or tracing directives. One line per
    /// exchange comes with debug.
    #[arg(long, global = true, value_name = "FILTER", default_value = DEFAULT_FILTER, env = "SPECTAP_LOG",
          help_heading = LOGGING)]
    pub log: String,

    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Stand between clients and an engine, pass everything through, and keep the numbers.
    Serve(Box<serve::ServeArgs>),
    /// Show the whole thing on this machine: a simulated engine, traffic, the tap, and a live table.
    Demo(demo::DemoArgs),
    /// Print the numbers of a running tap, of records files or of captured bodies.
    Report(report::ReportArgs),
    /// Ask an engine why acceptance numbers do not show up, and say what to change.
    Check(check::CheckArgs),
    /// Compare runs with intervals, and say when there is no evidence of a difference.
    Compare(compare::CompareArgs),
    /// Watch acceptance live in the terminal, of one tap or of several together.
    Top(top::TopArgs),
    /// Send the same requests to the engine directly and through spectap, and tell what differs.
    Verify(verify::VerifyArgs),
    /// Ask a running tap whether it is well, and say so by the exit code: for probes of a container without a shell.
    Healthcheck(control::HealthcheckArgs),
    /// Let a running tap finish its streams and end, as SIGTERM does: for preStop of a container without a shell.
    Drain(control::DrainArgs),
    /// Run the simulated engine alone, for tests and benchmarks.
    Simulate(simulate::SimulateArgs),
}
