//! What a run found, as it is kept and shown.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::measure::machine::Machine;
use crate::peers::Peer;
use crate::results::Results;
use crate::targets::{TARGETS, Verdict};

/// A run.
#[derive(Clone, Debug)]
pub struct Report {
    /// Where.
    pub machine: Machine,
    /// Versions of the hops; `None` for one that is missing.
    pub peers: BTreeMap<Peer, Option<String>>,
    /// Rounds.
    pub rounds: u32,
    /// Seconds of each reading, about.
    pub seconds: f64,
    /// Cores that others may use before a reading counts as disturbed.
    pub quiet: f64,
    /// The readings.
    pub results: Results,
}

impl Report {
    /// Targets that were missed by more than the noise.
    pub fn missed(&self) -> Vec<&'static str> {
        TARGETS
            .iter()
            .filter(|target| target.judge(&self.results).1 == Verdict::Missed)
            .map(|target| target.what)
            .collect()
    }

    /// Writes all of it as JSON.
    ///
    /// # Errors
    ///
    /// The file can't be written.
    pub fn save(&self, file: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(&self.json())? + "\n";
        std::fs::write(file, text).with_context(|| file.display().to_string())
    }

    fn json(&self) -> Value {
        let targets: Vec<Value> = TARGETS
            .iter()
            .map(|target| {
                let (spread, verdict) = target.judge(&self.results);
                let mut value = json!({"what": target.what, "bound": target.bound,
                    "is_lower_bound": target.is_lower_bound(), "verdict": verdict});
                if let Some(spread) = spread {
                    value["measured"] = json!({"median": spread.median, "low": spread.low, "high": spread.high,
                        "quartile_distance": spread.noise, "rounds": spread.rounds});
                }
                value
            })
            .collect();
        json!({"machine": self.machine, "peers": self.peers, "rounds": self.rounds, "seconds": self.seconds,
            "quiet_cores": self.quiet, "targets": targets, "readings": self.results.0})
    }
}
