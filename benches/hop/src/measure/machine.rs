//! What machine it is.

use std::fs;

use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;
use serde::Serialize;

/// The machine.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// The processor's name.
    pub cpu: String,
    /// Cores that may be used.
    pub cores: usize,
    /// Memory in GB.
    pub memory_gb: u64,
    /// The kernel's release.
    pub kernel: String,
}

impl Machine {
    /// Looks; before this process ties itself to a core.
    pub fn look() -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let field = |text: &str, name: &str| {
            let line = text.lines().find(|line| line.starts_with(name));
            let value = line.and_then(|line| line.split_once(':'));
            value.map_or_else(
                || "unknown".to_owned(),
                |(_, value)| value.trim().to_owned(),
            )
        };
        let allowed = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
        let kibibytes = field(&meminfo, "MemTotal");
        let kibibytes = kibibytes
            .split(' ')
            .next()
            .and_then(|word| word.parse().ok());
        Self {
            cpu: field(&cpuinfo, "model name"),
            cores: (0..CpuSet::count())
                .filter(|core| allowed.is_set(*core) == Ok(true))
                .count(),
            memory_gb: kibibytes.unwrap_or(0_u64) * 1024 / 1_000_000_000,
            kernel: kernel.trim().to_owned(),
        }
    }
}
