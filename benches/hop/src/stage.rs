//! Engine double, hop and client in their places: one core for the hop, another for the rest.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use crate::peers::process::{Process, free_port};
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

/// A running engine with a hop in front of it.
#[derive(Debug)]
pub struct Stage {
    /// Where clients go.
    pub target: SocketAddr,
    /// The ports.
    pub ports: Ports,
    /// The engine.
    pub engine: Process,
    /// The hop, unless it is direct.
    pub hop: Option<Process>,
}

impl Stage {
    /// Starts both; files go to `folder`.
    ///
    /// # Errors
    ///
    /// One of them does not start.
    pub fn set(programs: &Programs, peer: Peer, cores: Cores, folder: &Path) -> Result<Self> {
        let ports = Ports {
            upstream: free_port()?,
            listen: free_port()?,
            admin: free_port()?,
        };
        ensure!(
            ports.upstream != ports.listen && ports.listen != ports.admin,
            "the same port twice"
        );
        let upstream = SocketAddr::from(([127, 0, 0, 1], ports.upstream));
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["engine", &upstream.to_string()]);
        let mut engine = Process::start(&command, "engine", cores.load, folder)?;
        engine.wait_for(upstream)?;
        if peer == Peer::Direct {
            return Ok(Self {
                target: upstream,
                ports,
                engine,
                hop: None,
            });
        }
        let target = SocketAddr::from(([127, 0, 0, 1], ports.listen));
        let command = programs.command(peer, ports, folder)?;
        let mut hop = Process::start(&command, peer.name(), cores.hop, folder)?;
        hop.wait_for(target)?;
        Ok(Self {
            target,
            ports,
            engine,
            hop: Some(hop),
        })
    }
}
