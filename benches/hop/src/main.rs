//! The benchmark of the hop: spectap beside other proxies, in front of the same engine double and under the same load.
//!
//! `hop run` does all of it. The other commands are the parts that it starts as processes of their own, so that each
//! one's CPU time is known: the [engine] double, and two small [peers], a byte copier and a plain pass-through.

mod clock;
mod engine;
mod load;
mod measure;
mod order;
mod peers;
mod reading;
mod run;
mod scenario;
mod shape;
mod stage;

use std::future::Future;
use std::net::{SocketAddr, TcpListener};

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

fn main() -> Result<()> {
    let command = Command::parse();
    // A thousand streams need two thousand sockets in the hop; what is started inherits the limit.
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, most, most)?;
    match command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Engine { listen } => engine::serve(&TcpListener::bind(listen)?),
        Command::Copier { listen, upstream } => block_on(peers::copier::serve(listen, upstream)),
        Command::Hyper { listen, upstream } => {
            block_on(peers::plain_hyper::serve(listen, upstream))
        }
    }
}

/// Runs a hop on one thread.
fn block_on(hop: impl Future<Output = Result<()>>) -> Result<()> {
    tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?
        .block_on(hop)
}
