//! `hop run`: all readings, round by round.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::peers::{Peer, Programs};
use crate::reading::{self, Reading};
use crate::scenario::Scenario;
use crate::stage::Cores;

/// What to measure.
#[derive(Args, Debug)]
pub struct Arguments {
    /// The spectap binary
    #[arg(long, env = "BENCH_SPECTAP", default_value = "target/release/spectap")]
    spectap: PathBuf,
    /// More arguments of `spectap serve`, separated by spaces
    #[arg(
        long,
        env = "BENCH_SPECTAP_ARGUMENTS",
        default_value = "",
        allow_hyphen_values = true
    )]
    spectap_arguments: String,
    /// The envoy binary
    #[arg(long, env = "BENCH_ENVOY")]
    envoy: Option<PathBuf>,
    /// Hops, all by default
    #[arg(long, env = "BENCH_PEERS", value_delimiter = ',')]
    peers: Vec<Peer>,
    /// Scenarios, all by default
    #[arg(long = "scenario", env = "BENCH_ONLY", value_delimiter = ',')]
    scenarios: Vec<Scenario>,
    /// Rounds
    #[arg(long, env = "BENCH_ROUNDS", default_value_t = 5)]
    rounds: u32,
    /// Seconds of each reading, about
    #[arg(long, env = "BENCH_SECONDS", default_value_t = 5.0)]
    seconds: f64,
    /// Folder for settings and logs of the hops
    #[arg(long, default_value = ".work/bench")]
    work: PathBuf,
}

/// Measures.
///
/// # Errors
///
/// A reading failed.
pub fn run(arguments: &Arguments) -> Result<()> {
    let programs = Programs {
        spectap: arguments.spectap.clone(),
        spectap_arguments: arguments
            .spectap_arguments
            .split_whitespace()
            .map(str::to_owned)
            .collect(),
        envoy: arguments.envoy.clone(),
    };
    let peers = some_or_all(&arguments.peers, &Peer::ALL);
    let scenarios = some_or_all(&arguments.scenarios, &Scenario::ALL);
    std::fs::create_dir_all(&arguments.work)?;
    let folder = arguments.work.canonicalize()?;
    let cores = Cores::take()?;
    for round in 1..=arguments.rounds {
        for scenario in &scenarios {
            for peer in &peers {
                let seconds = arguments.seconds;
                let reading = reading::take(&programs, *scenario, *peer, seconds, cores, &folder)?;
                println!("{round} {}", line(&reading));
            }
        }
    }
    Ok(())
}

fn some_or_all<T: Copy>(some: &[T], all: &[T]) -> Vec<T> {
    if some.is_empty() { all } else { some }.to_vec()
}

/// A reading for people.
fn line(reading: &Reading) -> String {
    let mut line = format!(
        "{:<9} {:<8} {:>5.1} s, hop {:>4.0} % busy, foreign {:.2} cores",
        format!("{:?}", reading.scenario).to_lowercase(),
        reading.peer.name(),
        reading.seconds,
        100.0 * reading.cpu / reading.seconds,
        reading.foreign,
    );
    if reading.events > 0 {
        line += &format!(
            ", {:>9.0} events/s, CPU per event {:.2} µs",
            reading.events as f64 / reading.seconds,
            reading.cpu_per_event()
        );
    } else {
        line += &format!(
            ", {:>9.0} requests/s, CPU per request {:.2} µs",
            reading.rate(),
            reading.cpu_per_response()
        );
    }
    if let Some([p50, p90, p99]) = reading.latency {
        line += &format!(", latency {p50:.0} {p90:.0} {p99:.0} µs");
    }
    line
}
