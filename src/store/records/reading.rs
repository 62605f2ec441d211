//! Reads records files, of this tap's form or of AIPerf's layout; what can't be read is counted, never guessed.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::observation::Observation;

use super::aiperf::SEQUENCES;
use super::manifest::{FORM, Manifest};

/// One line of a records file.
#[derive(Clone, Debug)]
pub enum Line {
    /// Where the lines behind it come from.
    Head(Head),
    /// One exchange.
    Observation(Box<Observation>),
}

/// The first line of a file, or of the part of one that a later start of the tap added.
#[derive(Clone, Debug, Deserialize)]
pub struct Head {
    /// Where the lines come from.
    pub manifest: Manifest,
    /// Of an export: exchanges that the tap saw and no longer keeps.
    #[serde(default)]
    pub dropped: u64,
    /// Of an export: exchanges that lost their per-step arrays.
    #[serde(default)]
    pub per_step_dropped: u64,
}

/// What became of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRead {
    /// SHA-256 of all its bytes, in hexadecimal digits.
    pub sha256: String,
    /// What could not be read.
    pub skipped: Skipped,
}

/// Lines that could not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// How many.
    pub lines: u64,
    /// Number of the first of them, from 1, and what was wrong with it.
    pub first: Option<(u64, String)>,
}

/// Reads a file line by line.
///
/// # Errors
///
/// When the file can't be read. Lines that can't are in [`Skipped`].
pub fn read(path: &Path, mut take: impl FnMut(Line)) -> io::Result<FileRead> {
    let mut reader = BufReader::new(File::open(path)?);
    let mut skipped = Skipped::default();
    let mut digest = Sha256::new();
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        if reader.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        digest.update(&line);
        if line.trim_ascii().is_empty() {
            continue;
        }
        match read_line(&line) {
            Ok(line) => take(line),
            Err(problem) => {
                skipped.lines += 1;
                skipped.first.get_or_insert((number, problem));
            }
        }
    }
    Ok(FileRead {
        sha256: format!("{:x}", digest.finalize()),
        skipped,
    })
}

/// Reads one line.
///
/// # Errors
///
/// What is wrong with it, in a few words.
pub fn read_line(line: &[u8]) -> Result<Line, String> {
    // Nearly all lines are this.
    if let Ok(observation) = serde_json::from_slice(line) {
        return Ok(Line::Observation(Box::new(observation)));
    }
    let mut value: Value = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let Value::Object(members) = &mut value else {
        return Err("it is no JSON object".to_owned());
    };
    if members.contains_key("manifest") {
        let head: Head = serde_json::from_value(value).map_err(|error| error.to_string())?;
        if head.manifest.form > FORM {
            return Err(format!(
                "records of form {}, this spectap reads up to form {FORM}",
                head.manifest.form
            ));
        }
        return Ok(Line::Head(head));
    }
    let records = match members.remove("spec_decode_acceptance") {
        Some(record @ Value::Object(_)) => Value::Array(vec![record]),
        Some(other) => other,
        None => members
            .remove(SEQUENCES)
            .unwrap_or_else(|| Value::Array(Vec::new())),
    };
    members.insert("spec_decode_acceptance".to_owned(), records);
    serde_json::from_value(value)
        .map(|observation| Line::Observation(Box::new(observation)))
        .map_err(|error| error.to_string())
}
