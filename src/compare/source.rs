//! Where a run comes from: a running tap, a file with its snapshot, or a file with one observation per line.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::sync::Arc;

use serde_json::Value;

use crate::export::snapshot::{Snapshot, VERSION};
use crate::observation::ObservationSink;
use crate::report::{FetchError, fetch};
use crate::stats::{Group, Statistics};
use crate::store::records::{self, Line};

/// Why a run can't be read.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
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

/// Everything of a run in one group.
pub(super) async fn read(name: &str, token: Option<&str>) -> Result<Group, SourceError> {
    if name.starts_with("http://") || name.starts_with("https://") {
        return Ok(whole(&fetch::snapshot(name, token).await?));
    }
    let failed = |reason| SourceError::File {
        name: name.to_owned(),
        reason,
    };
    let mut lines = BufReader::new(File::open(name).map_err(failed)?);
    let mut first = String::new();
    lines.read_line(&mut first).map_err(failed)?;
    match serde_json::from_str::<Value>(&first) {
        Ok(value) if is_snapshot(&value) => snapshot(name, value),
        Ok(_) => observations(name, &first, lines),
        // A snapshot that was made readable fills many lines.
        Err(error) => {
            let rest = std::io::read_to_string(lines).map_err(failed)?;
            match serde_json::from_str::<Value>(&(first + &rest)) {
                Ok(value) if is_snapshot(&value) => snapshot(name, value),
                _ => Err(content(name, error.to_string())),
            }
        }
    }
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

fn snapshot(name: &str, value: Value) -> Result<Group, SourceError> {
    match value["version"].as_u64() {
        Some(version) if version != u64::from(VERSION) => Err(SourceError::Version {
            name: name.to_owned(),
            version,
        }),
        _ => serde_json::from_value(value)
            .map(|snapshot| whole(&snapshot))
            .map_err(|error| content(name, error.to_string())),
    }
}

/// Lines that are no observation are passed over, as long as there is one that is: a manifest may stand before them,
/// and the last line of a file that is being written may be cut.
fn observations(name: &str, first: &str, lines: impl BufRead) -> Result<Group, SourceError> {
    let statistics = Statistics::new();
    let (mut read, mut reason) = (0_u64, None);
    let mut take = |line: &str| match records::read_line(line.as_bytes()) {
        Ok(Line::Observation(observation)) => {
            read += 1;
            statistics.record(Arc::new(*observation));
        }
        Ok(Line::Head(_)) => {}
        Err(problem) => {
            reason.get_or_insert(problem);
        }
    };
    take(first);
    for line in lines.lines() {
        let line = line.map_err(|reason| SourceError::File {
            name: name.to_owned(),
            reason,
        })?;
        take(&line);
    }
    if read == 0 {
        let reason = reason.unwrap_or_else(|| "there are none".to_owned());
        return Err(content(name, reason));
    }
    let mut whole = Group::default();
    for (_, group) in statistics.groups(|_| true) {
        whole.merge(&group);
    }
    Ok(whole)
}

fn whole(snapshot: &Snapshot) -> Group {
    let mut whole = Group::default();
    for group in &snapshot.groups {
        whole.merge(&group.figures);
    }
    whole
}
