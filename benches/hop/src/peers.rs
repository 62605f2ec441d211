//! The hops that are compared, and how each is started.

pub mod copier;
pub mod plain_hyper;
pub mod process;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// A hop.
#[derive(
    Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum Peer {
    /// None: the client talks to the engine.
    Direct,
    /// Bytes copied.
    Copier,
    /// Plain pass-through made of hyper.
    Hyper,
    /// nginx.
    Nginx,
    /// HAProxy.
    Haproxy,
    /// Envoy.
    Envoy,
    /// spectap, all defaults on.
    Spectap,
}

impl Peer {
    /// All of them, in the order of the page's columns.
    pub const ALL: [Self; 7] = [
        Self::Direct,
        Self::Copier,
        Self::Hyper,
        Self::Nginx,
        Self::Haproxy,
        Self::Envoy,
        Self::Spectap,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Copier => "copier",
            Self::Hyper => "hyper",
            Self::Nginx => "nginx",
            Self::Haproxy => "haproxy",
            Self::Envoy => "envoy",
            Self::Spectap => "spectap",
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Where the programs are.
#[derive(Clone, Debug)]
pub struct Programs {
    /// The spectap binary.
    pub spectap: PathBuf,
    /// More arguments of `spectap serve`.
    pub spectap_arguments: Vec<String>,
    /// The Envoy binary, which need not be there.
    pub envoy: PathBuf,
}

/// The ports of one hop.
#[derive(Clone, Copy, Debug)]
pub struct Ports {
    /// The engine's.
    pub upstream: u16,
    /// Where the hop listens.
    pub listen: u16,
    /// The admin port; spectap's alone.
    pub admin: u16,
}

impl Programs {
    /// The program of a peer, if the machine has it. `direct` has none.
    pub fn find(&self, peer: Peer) -> Option<PathBuf> {
        match peer {
            Peer::Direct => None,
            Peer::Copier | Peer::Hyper => std::env::current_exe().ok(),
            Peer::Nginx => on_path("nginx"),
            Peer::Haproxy => on_path("haproxy"),
            Peer::Envoy => Some(self.envoy.clone()),
            Peer::Spectap => Some(self.spectap.clone()),
        }
        .filter(|program| program.exists())
    }

    /// What a peer calls its version, in one line.
    pub fn version(&self, peer: Peer) -> Option<String> {
        let argument = match peer {
            Peer::Direct => return None,
            Peer::Copier => return Some(format!("tokio {}", locked_version("tokio")?)),
            Peer::Hyper => return locked_version("hyper").map(str::to_owned),
            Peer::Nginx | Peer::Haproxy => "-v",
            Peer::Envoy | Peer::Spectap => "--version",
        };
        let output = Command::new(self.find(peer)?).arg(argument).output().ok()?;
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        if peer == Peer::Spectap {
            // With its commit.
            return Some(text.trim().into());
        }
        numbers(&text).map(str::to_owned)
    }

    /// The command that runs a peer in the foreground, its files in `folder`.
    ///
    /// # Errors
    ///
    /// It isn't there, or its settings can't be written.
    pub fn command(&self, peer: Peer, ports: Ports, folder: &Path) -> Result<Command> {
        let program = self
            .find(peer)
            .with_context(|| format!("{peer} is not there"))?;
        let mut command = Command::new(program);
        let listen = format!("127.0.0.1:{}", ports.listen);
        let upstream = format!("127.0.0.1:{}", ports.upstream);
        match peer {
            Peer::Direct => {}
            Peer::Copier | Peer::Hyper => {
                command.args([peer.name(), &listen, &upstream]);
            }
            Peer::Nginx => {
                let settings = settings(folder, "nginx.conf", NGINX, ports)?;
                command.arg("-c").arg(settings).arg("-p").arg(folder);
                // Before it has read where else to write, nginx would open a log of its own.
                command.arg("-e").arg(folder.join("nginx.log"));
            }
            Peer::Haproxy => {
                let settings = settings(folder, "haproxy.cfg", HAPROXY, ports)?;
                command.arg("-db").arg("-f").arg(settings);
            }
            Peer::Envoy => {
                let settings = settings(folder, "envoy.yaml", ENVOY, ports)?;
                command.args(["--concurrency", "1", "--disable-hot-restart"]);
                command.args(["--log-level", "error", "-c"]).arg(settings);
            }
            Peer::Spectap => {
                let admin = format!("127.0.0.1:{}", ports.admin);
                let upstream = format!("http://{upstream}");
                command.args(["serve", "--listen", &listen, "--upstream", &upstream]);
                command.args(["--admin-listen", &admin]);
                command.args(&self.spectap_arguments);
            }
        }
        Ok(command)
    }
}

const NGINX: &str = include_str!("../peers/nginx.conf");
const HAPROXY: &str = include_str!("../peers/haproxy.cfg");
const ENVOY: &str = include_str!("../peers/envoy.yaml");

fn settings(folder: &Path, name: &str, template: &str, ports: Ports) -> Result<PathBuf> {
    let text = template
        .replace("@LISTEN@", &ports.listen.to_string())
        .replace("@UPSTREAM@", &ports.upstream.to_string())
        .replace("@DIR@", &folder.to_string_lossy());
    let file = folder.join(name);
    fs::write(&file, text).with_context(|| file.display().to_string())?;
    Ok(file)
}

/// A program on the PATH, or where servers are kept that not everybody has on the PATH.
fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain([PathBuf::from("/usr/sbin")])
        .map(|folder| folder.join(name))
        .find(|program| program.exists())
}

/// The first thing in a text that looks like a version.
fn numbers(text: &str) -> Option<&str> {
    text.split(|character: char| !character.is_ascii_digit() && character != '.')
        .find(|word| word.split('.').filter(|part| !part.is_empty()).count() >= 3)
}

/// The version of a crate that this was built with.
fn locked_version(name: &str) -> Option<&'static str> {
    let lock = include_str!("../Cargo.lock");
    let (_, rest) = lock.split_once(&format!("name = \"{name}\"\nversion = \""))?;
    rest.split('"').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_found_in_what_programs_say() {
        for (text, version) in [
            ("nginx version: nginx/1.22.1\n", "1.22.1"),
            ("HAProxy version 2.6.12-1+deb12u3 2025/10/03 - x", "2.6.12"),
            (
                "envoy  version: 9e5580933739/1.40.0/Clean/RELEASE",
                "1.40.0",
            ),
        ] {
            assert_eq!(numbers(text), Some(version));
        }
        assert!(locked_version("hyper").is_some());
        assert_eq!(locked_version("no such crate"), None);
    }
}
