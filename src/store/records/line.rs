//! What the lines of a records file look like.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::observation::Observation;

use super::aiperf;
use super::manifest::Manifest;

/// What a line looks like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum RecordsFormat {
    /// An observation, as /api/v1/requests shows it
    #[default]
    Spectap,
    /// The same, and what AIPerf's readers of profile_export.jsonl look for
    Aiperf,
}

/// Writes the lines of one format.
pub(super) struct Form {
    format: RecordsFormat,
    manifest: Manifest,
    /// Lines so far, AIPerf's `session_num`.
    lines: u64,
}

impl Form {
    pub(super) fn new(format: RecordsFormat, manifest: Manifest) -> Self {
        Self {
            format,
            manifest,
            lines: 0,
        }
    }

    /// The first line of a file.
    pub(super) fn head(&self) -> Vec<u8> {
        let mut head = Map::from_iter([("manifest".to_owned(), json!(self.manifest))]);
        if self.format == RecordsFormat::Aiperf {
            aiperf::add_to_head(&mut head, &self.manifest);
        }
        let mut line = Value::Object(head).to_string().into_bytes();
        line.push(b'\n');
        line
    }

    /// Adds the line of an observation; nothing, if it could not be written as JSON.
    pub(super) fn push(&mut self, observation: &Observation, lines: &mut Vec<u8>) {
        let before = lines.len();
        let written = match self.format {
            RecordsFormat::Spectap => serde_json::to_writer(&mut *lines, observation),
            RecordsFormat::Aiperf => aiperf::line(observation, self.lines)
                .and_then(|line| serde_json::to_writer(&mut *lines, &line)),
        };
        match written {
            Ok(()) => {
                lines.push(b'\n');
                self.lines += 1;
            }
            Err(_) => lines.truncate(before),
        }
    }
}
