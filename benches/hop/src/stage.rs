//! Engine double, hop and client in their places: one core for the hop, another for the rest.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use crate::peers::process::{Process, free_ports};
use crate::peers::{Peer, Ports, Programs};

/// The cores that are used.
#[derive(Clone, Copy, Debug)]
pub struct Cores {
    /// The hop's.
    pub hop: usize,
    /// Of engine and client.
    pub load: usize,
}

impl Cores {
    /// Takes the first and the last core that this process may use, and moves itself to the load's.
    ///
    /// # Errors
    ///
    /// There is one core only.
    pub fn take() -> Result<Self> {
        let allowed = sched_getaffinity(Pid::from_raw(0))?;
        let mut allowed = (0..CpuSet::count()).filter(|core| allowed.is_set(*core) == Ok(true));
        let load = allowed.next().context("no core")?;
        let hop = allowed.next_back();
        let hop = hop.context("the hop needs a core for itself, and there is one only")?;
        let mut own = CpuSet::new();
        own.set(load)?;
        sched_setaffinity(Pid::from_raw(0), &own)?;
        Ok(Self { hop, load })
    }
}

/// Where and how hops are put up.
#[derive(Clone, Debug)]
pub struct Place {
    /// The programs.
    pub programs: Programs,
    /// The cores.
    pub cores: Cores,
    /// Folder for settings and logs.
    pub folder: PathBuf,
}

/// A running hop.
#[derive(Debug)]
pub struct Hop {
    /// Its process.
    pub process: Process,
    /// Where it listens.
    pub listen: SocketAddr,
    /// The admin port, where it has one.
    pub admin: Option<SocketAddr>,
}

impl Hop {
    /// Starts a hop in front of an engine; it may not listen yet.
    ///
    /// # Errors
    ///
    /// It can't be started.
    pub fn start(place: &Place, peer: Peer, engine: SocketAddr) -> Result<Self> {
        let [listen, admin] = free_ports()?;
        let ports = Ports {
            upstream: engine.port(),
            listen,
            admin,
        };
        let command = place.programs.command(peer, ports, &place.folder)?;
        let process = Process::start(&command, peer.name(), place.cores.hop, &place.folder)?;
        Ok(Self {
            process,
            listen: local(listen),
            admin: (peer == Peer::Spectap).then(|| local(admin)),
        })
    }
}

/// A running engine with a hop in front of it.
#[derive(Debug)]
pub struct Stage {
    /// The engine.
    pub engine: Process,
    /// Where the engine listens.
    pub engine_address: SocketAddr,
    /// The hop, unless it is direct.
    pub hop: Option<Hop>,
}

impl Stage {
    /// Starts both and waits until they listen.
    ///
    /// # Errors
    ///
    /// One of them does not.
    pub fn set(place: &Place, peer: Peer) -> Result<Self> {
        let (engine, engine_address) = engine(place)?;
        let mut hop = None;
        if peer != Peer::Direct {
            let mut started = Hop::start(place, peer, engine_address)?;
            started.process.wait_for(started.listen)?;
            hop = Some(started);
        }
        Ok(Self {
            engine,
            engine_address,
            hop,
        })
    }

    /// Where clients go.
    pub fn target(&self) -> SocketAddr {
        self.hop
            .as_ref()
            .map_or(self.engine_address, |hop| hop.listen)
    }

    /// The admin port of the hop.
    pub fn admin(&self) -> Option<SocketAddr> {
        self.hop.as_ref()?.admin
    }

    /// The processes of the hop.
    pub fn hop_processes(&self) -> Vec<u32> {
        let hop = self.hop.as_ref();
        hop.map(|hop| hop.process.tree()).unwrap_or_default()
    }
}

/// Starts an engine and waits until it listens.
///
/// # Errors
///
/// It does not.
pub fn engine(place: &Place) -> Result<(Process, SocketAddr)> {
    let [port] = free_ports()?;
    let address = local(port);
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["engine", &address.to_string()]);
    let mut engine = Process::start(&command, "engine", place.cores.load, &place.folder)?;
    engine.wait_for(address)?;
    Ok((engine, address))
}

fn local(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}
