//! The manifest: where records come from. It is the first line of every records file and stands in every report.

use std::collections::BTreeMap;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::observation::rfc3339;
use crate::record::EngineName;

/// Version of the form of a records file; a reader refuses a newer one.
pub const FORM: u32 = 1;

/// What stands beside every figure of a report whose acceptance was forced.
pub const FORCED_ACCEPTANCE: &str = "forced acceptance";

/// What made some records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`FORM`].
    pub form: u32,
    /// Version of spectap.
    pub version: String,
    /// Commit that it was built from; empty where unknown.
    pub commit: String,
    /// When the tap started.
    #[serde(with = "rfc3339")]
    pub start: SystemTime,
    /// The engine, where the user said it; each record says whose shape it had.
    pub engine: Option<EngineName>,
    /// What the user noted.
    #[serde(default)]
    pub notes: BTreeMap<String, String>,
}

impl Manifest {
    /// The manifest of this build.
    pub fn of_this_build(
        start: SystemTime,
        engine: Option<EngineName>,
        notes: BTreeMap<String, String>,
    ) -> Self {
        Self {
            form: FORM,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: env!("SPECTAP_COMMIT").to_owned(),
            start,
            engine,
            notes,
        }
    }

    /// Whether the user noted `acceptance=synthetic`: the engine was told how much to accept, so that the numbers say
    /// nothing about a drafter.
    pub fn is_forced(&self) -> bool {
        self.notes
            .get("acceptance")
            .is_some_and(|value| value == "synthetic")
    }
}
