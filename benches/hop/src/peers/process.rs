//! A program that is started on given cores, and ended when it is dropped.

use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// How long a program may take to listen.
const START: Duration = Duration::from_secs(20);

/// A running program.
#[derive(Debug)]
pub struct Process {
    child: Child,
    name: String,
}

impl Process {
    /// Starts it on one core; what it prints goes to `NAME.log` in `folder`.
    ///
    /// # Errors
    ///
    /// It can't be started.
    pub fn start(command: &Command, name: &str, core: usize, folder: &Path) -> Result<Self> {
        let log = folder.join(format!("{name}.log"));
        let log = File::create(&log).with_context(|| log.display().to_string())?;
        // Both replace themselves by what they start, so the process id is the program's. setpriv sees to it that the
        // program ends even if this one is killed.
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "TERM", "taskset", "-c", &core.to_string()])
            .arg(command.get_program())
            .args(command.get_args())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("can't start {name}"))?;
        Ok(Self {
            child,
            name: name.to_owned(),
        })
    }

    /// Waits until somebody listens at the address.
    ///
    /// # Errors
    ///
    /// The program ended, or nobody listens after 20 s.
    pub fn wait_for(&mut self, address: SocketAddr) -> Result<()> {
        let started = Instant::now();
        while TcpStream::connect(address).is_err() {
            if let Some(status) = self.child.try_wait()? {
                bail!("{} ended with {status} before it listened", self.name);
            }
            if started.elapsed() > START {
                bail!("{} does not listen at {address}", self.name);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    /// Its process id and those of all its children.
    pub fn tree(&self) -> Vec<u32> {
        let mut tree = vec![self.child.id()];
        let mut at = 0;
        while let Some(id) = tree.get(at).copied() {
            tree.extend(children(id));
            at += 1;
        }
        tree
    }
}

fn children(id: u32) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{id}/task")) else {
        return Vec::new();
    };
    threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok())
        .flat_map(|text| {
            text.split_whitespace()
                .filter_map(|word| word.parse().ok())
                .collect::<Vec<_>>()
        })
        .collect()
}

impl Drop for Process {
    fn drop(&mut self) {
        // nginx's master takes its workers along on SIGTERM, others have no children.
        let _ = kill(Pid::from_raw(self.child.id() as i32), Signal::SIGTERM);
        let asked = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) {
            if asked.elapsed() > Duration::from_secs(2) {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Ports that nobody uses at the moment.
///
/// # Errors
///
/// There are none.
pub fn free_ports<const N: usize>() -> Result<[u16; N]> {
    let mut ports = [0; N];
    // All are held until the last one is found, so that none comes twice.
    let mut held = Vec::new();
    for port in &mut ports {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        *port = listener.local_addr()?.port();
        held.push(listener);
    }
    Ok(ports)
}
