//! The benchmark of the hop: spectap beside other proxies, in front of the same engine double and under the same load.
//!
//! `hop-bench run` does all of it. The other commands are the parts that it starts as processes of their own, so that each
//! one's CPU time is known: the [engine] double, and two small [peers], a byte copier and a plain pass-through.

mod accounting;
mod clock;
mod engine;
mod fetch;
mod figure;
mod load;
mod measure;
mod order;
mod page;
mod peers;
mod reading;
mod report;
mod results;
mod run;
mod scenario;
mod shape;
mod stage;
mod targets;
mod watchers;

use std::future::Future;
use std::net::{SocketAddr, TcpListener};
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

#[derive(Debug, Parser)]
#[command(about = "The benchmark of the hop", version)]
enum Command {
    /// Measure
    Run(run::Arguments),
    /// The double of an engine
    Engine {
        /// Where it listens
        listen: SocketAddr,
    },
    /// A hop that copies bytes
    Copier {
        /// Where it listens
        listen: SocketAddr,
        /// The engine
        upstream: SocketAddr,
    },
    /// A hop made of hyper
    Hyper {
        /// Where it listens
        listen: SocketAddr,
        /// The engine
        upstream: SocketAddr,
    },
}

fn main() -> Result<ExitCode> {
    let command = Command::parse();
    // A thousand streams need two thousand sockets in the hop; what is started inherits the limit.
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, most, most)?;
    match command {
        Command::Run(arguments) => return run::run(&arguments),
        Command::Engine { listen } => engine::serve(&TcpListener::bind(listen)?)?,
        Command::Copier { listen, upstream } => block_on(peers::copier::serve(listen, upstream))?,
        Command::Hyper { listen, upstream } => {
            block_on(peers::plain_hyper::serve(listen, upstream))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs a hop on one thread.
fn block_on(hop: impl Future<Output = Result<()>>) -> Result<()> {
    tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?
        .block_on(hop)
}
