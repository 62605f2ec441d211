//! What the process holds: files, memory, threads, and what its gauges say of open things.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::support::client::exchange;

/// Files that come and go by themselves: the look at the metrics, a probe, an idle connection.
const ROOM_FOR_FILES: usize = 8;

/// What 20,000 exchanges that are kept for `/api/v1/requests`, and the figures of all, may take.
const ROOM_FOR_NUMBERS: u64 = 100 << 20;

/// What memory may grow by in the second half of a run, once everything that is kept is full.
const ROOM_WHEN_FULL: u64 = 12 << 20;

/// Exchanges after which everything that is kept is full.
const FULL: usize = 40_000;

pub(crate) struct Vitals {
    pid: u32,
    admin: SocketAddr,
    files_at_rest: usize,
    memory: Vec<u64>,
    end: (usize, u64),
}

/// All series of the admin port.
pub(crate) fn metrics(admin: SocketAddr) -> BTreeMap<String, f64> {
    let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let page = String::from_utf8(exchange(admin, request)).unwrap();
    page.lines()
        .filter(|line| line.starts_with("spectap_"))
        .map(|line| line.rsplit_once(' ').unwrap())
        .map(|(series, value)| (series.to_owned(), value.parse().unwrap()))
        .collect()
}

/// The sum over all label sets of one name.
pub(crate) fn sum(metrics: &BTreeMap<String, f64>, name: &str) -> f64 {
    let of_name = metrics.iter().filter(|(series, _)| {
        series
            .strip_prefix(name)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('{'))
    });
    of_name.fold(0.0, |sum, (_, value)| sum + value)
}

impl Vitals {
    pub(crate) fn begin(pid: u32, admin: SocketAddr) -> Self {
        let mut vitals = Self {
            pid,
            admin,
            files_at_rest: 0,
            memory: Vec::new(),
            end: (0, 0),
        };
        vitals.files_at_rest = vitals.files();
        vitals
    }

    fn files(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.pid))
            .unwrap()
            .count()
    }

    fn resident(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.unwrap().split_whitespace().next().unwrap();
        kilobytes.parse::<u64>().unwrap() * 1024
    }

    pub(crate) fn look(&mut self) {
        self.memory.push(self.resident());
    }

    /// Waits until everything is over, and holds what is left against what there was.
    pub(crate) fn settle(&mut self, exchanges: usize) {
        let begun = Instant::now();
        let names = [
            "spectap_requests_in_flight",
            "spectap_upstream_connections",
            "spectap_client_connections",
        ];
        loop {
            let metrics = metrics(self.admin);
            let open: Vec<f64> = names.iter().map(|name| sum(&metrics, name)).collect();
            if open.iter().sum::<f64>() == 0.0
                && self.files() <= self.files_at_rest + ROOM_FOR_FILES
            {
                break;
            }
            assert!(
                begun.elapsed() < Duration::from_secs(30),
                "left open: {names:?} {open:?}, {} files after {}",
                self.files(),
                self.files_at_rest
            );
            std::thread::sleep(Duration::from_millis(100));
        }
        self.end = (self.files(), self.resident());
        let (first, second) = self.memory.split_at(self.memory.len() / 2);
        let most = |part: &[u64]| part.iter().copied().max().unwrap_or_default();
        assert!(most(second) < self.memory[0] + ROOM_FOR_NUMBERS, "{self}");
        if exchanges > 2 * FULL {
            assert!(most(second) < most(first) + ROOM_WHEN_FULL, "{self}");
        }
    }
}

impl fmt::Display for Vitals {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let megabytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let (first, second) = self.memory.split_at(self.memory.len() / 2);
        let most = |part: &[u64]| megabytes(part.iter().copied().max().unwrap_or_default());
        write!(
            out,
            "memory {:.1} MiB at first, at most {:.1} in the first half and {:.1} in the second, {:.1} at the end; {} files at \
             rest, {} at the end",
            megabytes(self.memory.first().copied().unwrap_or_default()),
            most(first),
            most(second),
            megabytes(self.end.1),
            self.files_at_rest,
            self.end.0
        )
    }
}
