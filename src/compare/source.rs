//! Where a run comes from: a running tap, a file with its snapshot, or a file with one observation per line.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use super::place::{self, Place};
use crate::export::Query;
use crate::export::compare::Side;
use crate::export::snapshot::{Snapshot, VERSION};
use crate::observation::{Observation, ObservationSink};
use crate::report::{FetchError, fetch, list_of_runs, narrow, wants};
use crate::stats::compare::RunFigures;
use crate::stats::{Statistics, Window};
use crate::store::records::{self, Head, Line, Manifest};

/// Why a run can't be read.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// What is behind the address or the file name can't be.
    #[error("{name}: {problem}")]
    Part {
        /// What was given.
        name: String,
        /// What is wrong with it, and what would be right.
        problem: String,
    },
    /// A window of a file.
    #[error(
        "{name}: a window (--window) is counted back from now by a running tap; a file has none"
    )]
    NoWindow {
        /// What was given.
        name: String,
    },
    /// A window of single exchanges.
    #[error(
        "{name}: a window (--window) asks a running tap for its statistics, which are no single exchanges: it does not go with --pair"
    )]
    NoWindowOfPairs {
        /// What was given.
        name: String,
    },
    /// Pairs of a snapshot.
    #[error(
        "{name}: a snapshot has no single exchanges to pair; name the tap itself, or its records file"
    )]
    NoExchanges {
        /// What was given.
        name: String,
    },
    /// A run that is not there.
    #[error(
        "{name}: there is no exchange of that run; the runs there are: {}",
        list_of_runs(runs)
    )]
    NoRun {
        /// What was given.
        name: String,
        /// The runs that are there.
        runs: BTreeSet<String>,
    },
    /// The tap gave no snapshot.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The file can't be read.
    #[error(
        "can't read {name}: {reason}; should be http://HOST:PORT of a tap's admin port, or a file"
    )]
    File {
        /// What was given.
        name: String,
        /// What the system said.
        reason: std::io::Error,
    },
    /// The file holds neither.
    #[error(
        "{name} holds neither a snapshot (/api/v1/snapshot) nor observations, one in a line: {reason}"
    )]
    Content {
        /// What was given.
        name: String,
        /// What is wrong with its first line.
        reason: String,
    },
    /// A snapshot of another version.
    #[error("{name} is a snapshot of version {version}, this spectap reads version {VERSION}")]
    Version {
        /// What was given.
        name: String,
        /// Its version.
        version: u64,
    },
}

/// How the sides of a comparison are read.
#[derive(Clone, Copy)]
pub(super) struct Reading<'a> {
    /// Of taps that name no window themselves.
    pub(super) window: Window,
    /// Whether single exchanges are needed.
    pub(super) is_paired: bool,
    /// For the admin ports.
    pub(super) token: Option<&'a str>,
}

/// Reads one side.
pub(super) async fn read(name: &str, reading: Reading<'_>) -> Result<Side, SourceError> {
    let (place, query) = place::read(name, reading.window)?;
    match place {
        Place::Tap(_) if reading.is_paired && query.window != Window::All => {
            Err(SourceError::NoWindowOfPairs {
                name: name.to_owned(),
            })
        }
        Place::Tap(from) if reading.is_paired => {
            let export = fetch::export(&from, reading.token).await?;
            let mut exchanges = Exchanges::new(name, &query);
            for line in export.split(|byte| *byte == b'\n') {
                exchanges.take(line);
            }
            exchanges.into_side(true)
        }
        Place::Tap(from) => {
            let snapshot = fetch::snapshot(&from, &query, reading.token).await?;
            Ok(of_snapshot(name, snapshot, &query))
        }
        Place::File(path) => of_file(name, &path, &query, reading.is_paired),
    }
}

fn of_file(name: &str, path: &Path, query: &Query, is_paired: bool) -> Result<Side, SourceError> {
    let failed = |reason| SourceError::File {
        name: name.to_owned(),
        reason,
    };
    let mut lines = BufReader::new(File::open(path).map_err(failed)?);
    let mut first = String::new();
    lines.read_line(&mut first).map_err(failed)?;
    let snapshot = match serde_json::from_str::<Value>(&first) {
        Ok(value) if is_snapshot(&value) => value,
        Ok(_) => {
            let mut exchanges = Exchanges::new(name, query);
            exchanges.take(first.as_bytes());
            for line in lines.split(b'\n') {
                exchanges.take(&line.map_err(failed)?);
            }
            return exchanges.into_side(is_paired);
        }
        // A snapshot that was made readable fills many lines.
        Err(error) => {
            let rest = std::io::read_to_string(lines).map_err(failed)?;
            match serde_json::from_str::<Value>(&(first + &rest)) {
                Ok(value) if is_snapshot(&value) => value,
                _ => return Err(content(name, error.to_string())),
            }
        }
    };
    if is_paired {
        return Err(SourceError::NoExchanges {
            name: name.to_owned(),
        });
    }
    let snapshot = readable(name, snapshot)?;
    if query.run.is_some() && query.run != snapshot.run {
        return Err(SourceError::Part {
            name: name.to_owned(),
            problem: "a snapshot does not tell runs apart; take one of that run, /api/v1/snapshot?run=NAME"
                .to_owned(),
        });
    }
    Ok(of_snapshot(name, snapshot, query))
}

fn is_snapshot(value: &Value) -> bool {
    value.get("version").is_some() && value.get("groups").is_some_and(Value::is_array)
}

fn content(name: &str, reason: String) -> SourceError {
    SourceError::Content {
        name: name.to_owned(),
        reason,
    }
}

fn readable(name: &str, value: Value) -> Result<Snapshot, SourceError> {
    match value["version"].as_u64() {
        Some(version) if version != u64::from(VERSION) => Err(SourceError::Version {
            name: name.to_owned(),
            version,
        }),
        _ => serde_json::from_value(value).map_err(|error| content(name, error.to_string())),
    }
}

fn of_snapshot(name: &str, mut snapshot: Snapshot, query: &Query) -> Side {
    narrow(&mut snapshot, query);
    let groups = snapshot.groups.iter();
    Side {
        name: name.to_owned(),
        figures: RunFigures::of(groups.map(|group| (&group.key, &group.figures))),
        exchanges: Vec::new(),
        is_forced: snapshot.manifests.iter().any(Manifest::is_forced),
    }
}

/// The exchanges of a file or an export that are asked for.
struct Exchanges<'a> {
    name: &'a str,
    query: &'a Query,
    wanted: Vec<Observation>,
    /// Lines that were exchanges, asked for or not.
    read: u64,
    runs: BTreeSet<String>,
    is_forced: bool,
    problem: Option<String>,
}

impl<'a> Exchanges<'a> {
    fn new(name: &'a str, query: &'a Query) -> Self {
        Self {
            name,
            query,
            wanted: Vec::new(),
            read: 0,
            runs: BTreeSet::new(),
            is_forced: false,
            problem: None,
        }
    }

    /// A line that is no observation is passed over, as long as there is one that is: the last line of a file that is
    /// being written may be cut.
    fn take(&mut self, line: &[u8]) {
        if line.trim_ascii().is_empty() {
            return;
        }
        match records::read_line(line) {
            Ok(Line::Observation(observation)) => {
                self.read += 1;
                if let Some(run) = observation
                    .run
                    .as_ref()
                    .filter(|run| !self.runs.contains(*run))
                {
                    self.runs.insert(run.clone());
                }
                if wants(self.query, &observation) {
                    self.wanted.push(*observation);
                }
            }
            Ok(Line::Head(Head {
                manifest, dropped, ..
            })) => {
                self.is_forced |= manifest.is_forced();
                if dropped > 0 {
                    tracing::warn!(
                        "{dropped} exchanges are gone from the memory of {}: the comparison is about those that it \
                         still keeps; with --records it would keep all",
                        self.name
                    );
                }
            }
            Err(problem) => {
                self.problem.get_or_insert(problem);
            }
        }
    }

    fn into_side(self, keep_exchanges: bool) -> Result<Side, SourceError> {
        if self.read == 0 {
            let reason = self.problem.unwrap_or_else(|| "there are none".to_owned());
            return Err(content(self.name, reason));
        }
        if self.wanted.is_empty()
            && let Some(run) = &self.query.run
            && !self.runs.contains(run)
        {
            return Err(SourceError::NoRun {
                name: self.name.to_owned(),
                runs: self.runs,
            });
        }
        let statistics = Statistics::new();
        let mut exchanges = Vec::new();
        for observation in self.wanted {
            if keep_exchanges {
                exchanges.push(observation.clone());
            }
            statistics.record(Arc::new(observation));
        }
        let groups = statistics.groups(|_| true);
        Ok(Side {
            name: self.name.to_owned(),
            figures: RunFigures::of(groups.iter().map(|(key, group)| (key, group))),
            exchanges,
            is_forced: self.is_forced,
        })
    }
}
