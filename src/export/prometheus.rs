//! The statistics as Prometheus series, read from the same [`Statistics`] as the JSON at every scrape, so that the two
//! can't disagree.
//!
//! Suffixes are vLLM's and mean what they mean there. Labels: `backend` (the engine whose wire shape the records had;
//! `unknown` where no record told), `model_name` (at most 100, then `other`), and `tag` on the acceptance counters of
//! tagged exchanges only. Ratios are 0..1, times are seconds. Everything here is the `all` view: every valid record,
//! one per sequence, whatever the outcome.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{IntGauge, Opts, Registry};

use crate::stats::{GroupKey, Statistics};

mod acceptance;
mod series;
mod traffic;

use series::Labels;

/// Value of `backend` and `model_name` where they are not known.
const UNKNOWN: &str = "unknown";

/// Which build this is, for `spectap_build_info`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildInfo {
    /// Version of the package.
    pub version: String,
    /// Commit it was built from; empty where unknown.
    pub commit: String,
}

/// Registers everything that is read from the statistics, and `spectap_build_info`.
///
/// # Errors
///
/// Only if the registry already holds a series of one of these names.
pub fn register(
    registry: &Registry,
    statistics: Arc<Statistics>,
    build: &BuildInfo,
) -> Result<(), prometheus::Error> {
    registry.register(Box::new(StatisticsCollector::new(statistics)?))?;
    let info = IntGauge::with_opts(
        Opts::new(
            "spectap_build_info",
            "Always 1; the labels say which build this is.",
        )
        .const_label("version", &build.version)
        .const_label("commit", &build.commit),
    )?;
    info.set(1);
    registry.register(Box::new(info))
}

struct StatisticsCollector {
    statistics: Arc<Statistics>,
    descriptions: Vec<Desc>,
}

impl StatisticsCollector {
    fn new(statistics: Arc<Statistics>) -> Result<Self, prometheus::Error> {
        let descriptions = acceptance::ALL
            .iter()
            .chain(&traffic::ALL)
            .map(|series| {
                Desc::new(
                    series.name.to_owned(),
                    series.help.to_owned(),
                    Vec::new(),
                    HashMap::new(),
                )
            })
            .collect::<Result<_, _>>()?;
        Ok(Self {
            statistics,
            descriptions,
        })
    }
}

impl Collector for StatisticsCollector {
    fn desc(&self) -> Vec<&Desc> {
        self.descriptions.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let (counted, measured) = self.statistics.look(|groups| {
            let mut counted = BTreeMap::new();
            let mut measured = BTreeMap::new();
            for (key, group) in groups {
                acceptance::count(counted.entry(labels(key, true)).or_default(), group);
                traffic::measure(measured.entry(labels(key, false)).or_default(), group);
            }
            (counted, measured)
        });
        let mut families = acceptance::families(&counted);
        families.extend(traffic::families(&measured));
        families
    }
}

// Routes fold together, and so do tags where no tag is wanted.
fn labels(key: &GroupKey, with_tag: bool) -> Labels {
    Labels {
        backend: key.engine.map_or(UNKNOWN, |engine| engine.as_str()),
        model_name: key.model.clone().unwrap_or_else(|| UNKNOWN.to_owned()),
        tag: key.tag.clone().filter(|_| with_tag),
    }
}
