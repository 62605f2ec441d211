//! What the engine's counters say about a stretch of time, in the form that a snapshot carries.

use std::collections::BTreeMap;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::counts::{Counts, Source};
use crate::observation::rfc3339;

/// A value that the engine computed itself, over a stretch that only it knows. It can't be pooled with anything.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gauge {
    /// Its name on the engine's page.
    pub name: String,
    /// Whose it is.
    pub engine: String,
    /// The model that it is of; absent where not told.
    pub model: Option<String>,
    /// The rank that it is of; absent where not told.
    pub rank: Option<String>,
    /// The value at the last reading.
    pub value: f64,
    /// What it is of.
    pub about: String,
}

/// What one source counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// Who.
    #[serde(flatten)]
    pub source: Source,
    /// What.
    pub counts: Counts,
}

/// What the engine's counters moved by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerFigures {
    /// The page that is read.
    pub url: String,
    /// Whose series are on it.
    pub engine: Option<String>,
    /// The engine's version, where it tells one.
    pub version: Option<String>,
    /// Most drafts of a step, where the page tells it.
    pub k: Option<u64>,
    /// When the counters were first read; absent where the figures are of all that they ever counted.
    #[serde(with = "maybe")]
    pub from: Option<SystemTime>,
    /// When they were last read.
    #[serde(with = "rfc3339")]
    pub to: SystemTime,
    /// Restarts of the engine in between: what it counted between the last reading and its end is in no figure.
    pub resets: u64,
    /// Why the last try to read the page failed; absent where it did not.
    pub trouble: Option<String>,
    /// Whether the page counts speculation at all; an engine that does not speculate has no such series.
    pub speculates: bool,
    /// What its counters can't tell.
    pub catch: Vec<String>,
    /// The counts by model and rank.
    pub counted: Vec<Counted>,
    /// What the engine computed itself.
    pub gauges: Vec<Gauge>,
}

impl ServerFigures {
    /// All of it together.
    pub fn sum(&self) -> Counts {
        let mut sum = Counts::default();
        self.counted.iter().for_each(|it| sum.add(&it.counts));
        sum
    }

    /// The counts by rank, where there are several.
    pub fn by_rank(&self) -> BTreeMap<&str, Counts> {
        let mut ranks: BTreeMap<&str, Counts> = BTreeMap::new();
        for counted in &self.counted {
            let rank = counted.source.rank.as_deref().unwrap_or_default();
            ranks.entry(rank).or_default().add(&counted.counts);
        }
        if ranks.len() < 2 {
            ranks.clear();
        }
        ranks
    }
}

/// A time that may be absent, as null.
mod maybe {
    use std::time::SystemTime;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::rfc3339;

    #[derive(Serialize, Deserialize)]
    struct Time(#[serde(with = "rfc3339")] SystemTime);

    pub(super) fn serialize<S: Serializer>(
        time: &Option<SystemTime>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        time.map(Time).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<SystemTime>, D::Error> {
        let time: Option<Time> = Option::deserialize(deserializer)?;
        Ok(time.map(|Time(time)| time))
    }
}
