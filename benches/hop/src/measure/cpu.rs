//! CPU time of processes and of the whole machine.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use nix::sys::time::TimeSpec;
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;

/// CPU time that a process used, all threads, in user and kernel.
///
/// The same sum as `utime` and `stime` of `/proc/PID/stat`, but in nanoseconds instead of hundredths of a second.
///
/// # Errors
///
/// There is no such process.
pub fn of_process(id: u32) -> Result<Duration> {
    let clock = clock_getcpuclockid(Pid::from_raw(id as i32))
        .with_context(|| format!("process {id} is gone"))?;
    Ok(clock_gettime(clock).map(TimeSpec::into)?)
}

/// CPU time of several processes.
///
/// # Errors
///
/// One of them is gone.
pub fn of_processes(ids: &[u32]) -> Result<Duration> {
    ids.iter().map(|id| of_process(*id)).sum()
}

/// The machine's CPU time at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    at: Instant,
    idle: Duration,
    stolen: Duration,
    cores: u32,
}

impl Machine {
    /// Reads `/proc/stat`.
    ///
    /// # Errors
    ///
    /// It has another form.
    pub fn now() -> Result<Self> {
        let text = fs::read_to_string("/proc/stat")?;
        let at = Instant::now();
        let first = text.lines().next().unwrap_or_default();
        let ticks: Vec<u64> = first
            .split_whitespace()
            .skip(1)
            .map_while(|word| word.parse().ok())
            .collect();
        let tick = |number: usize| {
            ticks
                .get(number)
                .map(|ticks| Duration::from_millis(ticks * 10))
        };
        let form = "/proc/stat has another form";
        let cores = text
            .lines()
            .skip(1)
            .take_while(|line| line.starts_with("cpu"))
            .count();
        Ok(Self {
            at,
            // user nice system idle iowait irq softirq steal
            idle: tick(3).context(form)? + tick(4).context(form)?,
            stolen: tick(7).context(form)?,
            cores: cores as u32,
        })
    }

    /// What was used since `earlier` and is not in `ours`, in cores: other programs, and what the host took away.
    ///
    /// Idle time is what the kernel measures best, so the use is what is left of the time that passed.
    pub fn foreign_cores(&self, earlier: &Self, ours: Duration) -> f64 {
        let passed = (self.at - earlier.at).as_secs_f64();
        let idle = self.idle.saturating_sub(earlier.idle).as_secs_f64();
        let stolen = self.stolen.saturating_sub(earlier.stolen).as_secs_f64();
        let busy = passed * f64::from(self.cores) - idle - ours.as_secs_f64();
        // Stolen time is no idle time, so it is in there already; it is never less than that.
        busy.max(stolen) / passed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_work_is_seen_and_is_not_foreign() {
        let id = std::process::id();
        let (machine, before) = (Machine::now().unwrap(), of_process(id).unwrap());
        let mut number = 1_u64;
        while of_process(id).unwrap() - before < Duration::from_millis(50) {
            number = std::hint::black_box(number.wrapping_mul(3));
        }
        let used = of_process(id).unwrap() - before;
        let now = Machine::now().unwrap();
        assert!(used >= Duration::from_millis(50));
        let cores = f64::from(now.cores);
        assert!((0.0..=cores).contains(&now.foreign_cores(&machine, used)));
        let all = now.foreign_cores(&machine, Duration::ZERO);
        assert!(all > now.foreign_cores(&machine, used), "{all}");
    }
}
