//! Labels: which category AIPerf gave a request, by the X-Request-ID that spectap saw too.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::observation::cut_name;

/// Why there are no labels.
#[derive(Debug, thiserror::Error)]
pub enum LabelsError {
    /// The file can't be read.
    #[error("can't read {} (--labels): {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// No line has what is needed.
    #[error(
        "{} (--labels): no line has metadata.x_request_id and metadata.source_kind; expected AIPerf's profile_export.jsonl of \
         a run whose data set has categories, such as SPEED-Bench", path.display()
    )]
    None {
        /// The file.
        path: PathBuf,
    },
}

/// Categories by X-Request-ID.
pub(super) struct Labels(HashMap<String, String>);

#[derive(Deserialize)]
struct Line {
    metadata: Metadata,
    #[serde(default)]
    error: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Metadata {
    x_request_id: Option<String>,
    source_kind: Option<String>,
    benchmark_phase: Option<String>,
    phase_kind: Option<String>,
}

impl Labels {
    /// Reads AIPerf's `profile_export.jsonl`. What AIPerf's own report leaves out has no label: requests of the warm-up,
    /// requests that failed, requests without category, and lines that can't be read.
    pub(super) fn read(path: &Path) -> Result<Self, LabelsError> {
        let error = |source| LabelsError::Read {
            path: path.to_owned(),
            source,
        };
        let reader = BufReader::new(File::open(path).map_err(error)?);
        let mut labels = HashMap::new();
        for line in reader.split(b'\n') {
            if let Ok(line) = serde_json::from_slice(&line.map_err(error)?)
                && let Some((id, label)) = label(line)
            {
                labels.insert(id, label);
            }
        }
        if labels.is_empty() {
            return Err(LabelsError::None {
                path: path.to_owned(),
            });
        }
        Ok(Self(labels))
    }

    /// The label of an exchange.
    pub(super) fn of(&self, x_request_id: Option<&str>) -> Option<String> {
        self.0.get(x_request_id?).cloned()
    }
}

fn label(line: Line) -> Option<(String, String)> {
    let Line { metadata, error } = line;
    let is_warmup = |phase: &Option<String>| phase.as_deref() == Some("warmup");
    if error.is_some() || is_warmup(&metadata.benchmark_phase) || is_warmup(&metadata.phase_kind) {
        return None;
    }
    let label = metadata.source_kind.filter(|kind| !kind.is_empty())?;
    // Observations hold ids and tags cut.
    Some((cut_name(&metadata.x_request_id?), cut_name(&label)))
}
