//! The statistics as Prometheus series, read from the same [`Statistics`] as the JSON at every scrape, so that the two
//! can't disagree.
//!
//! Suffixes are vLLM's and mean what they mean there. Labels: `backend` (the engine whose wire shape the records had;
//! `unknown` where no record told), `model_name` (at most 100, then `other`), and `tag` on the acceptance counters of
//! tagged exchanges only; those counters also carry a facet, where the statistics keep counts by one. Ratios are 0..1, times are seconds. Everything here is the `all` view: every valid record,
//! one per sequence, whatever the outcome.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{IntGauge, Opts, Registry};

use crate::record::EngineName;
use crate::stats::{Counts, GroupKey, Statistics};

mod acceptance;
mod budget;
mod series;
mod server;
mod traffic;

pub use server::register as register_server;

use budget::Budget;
use series::{Labels, Series};

/// Value of `backend` and `model_name` where they are not known.
const UNKNOWN: &str = "unknown";

const FOLDED: Series = Series {
    name: "spectap_folded_label_sets",
    help: "Label sets beyond the series budget; they count under model_name other.",
};

/// Which build this is, for `spectap_build_info`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildInfo {
    /// Version of the package.
    pub version: String,
    /// Commit it was built from; empty where unknown.
    pub commit: String,
}

/// Registers everything that is read from the statistics, and `spectap_build_info`. `most_series`: the bound on all of
/// `/metrics`, see `budget.rs`.
///
/// # Errors
///
/// Only if the registry already holds a series of one of these names.
pub fn register(
    registry: &Registry,
    statistics: Arc<Statistics>,
    build: &BuildInfo,
    most_series: usize,
) -> Result<(), prometheus::Error> {
    registry.register(Box::new(StatisticsCollector::new(statistics, most_series)?))?;
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
    budget: Budget,
    descriptions: Vec<Desc>,
}

impl StatisticsCollector {
    fn new(statistics: Arc<Statistics>, most_series: usize) -> Result<Self, prometheus::Error> {
        let descriptions = acceptance::ALL
            .iter()
            .chain(&traffic::ALL)
            .chain([&FOLDED])
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
            budget: Budget::new(most_series),
            descriptions,
        })
    }
}

impl Collector for StatisticsCollector {
    fn desc(&self) -> Vec<&Desc> {
        self.descriptions.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let mut counted: BTreeMap<Labels, Counts> = BTreeMap::new();
        let mut measured = BTreeMap::new();
        for (key, group) in self.statistics.shared_groups() {
            let of_tag = self.budget.admit(labels(&key, true));
            let of_model = self.budget.admit(labels(&key, false));
            counted.entry(of_tag).or_default().add(&group);
            traffic::count_tokens(measured.entry(of_model).or_default(), &group);
        }
        for ((engine, model), histograms) in self.statistics.histograms() {
            let of_model = self.budget.admit(Labels::of(engine, model));
            traffic::measure(measured.entry(of_model).or_default(), &histograms);
        }
        let by_facet = self.statistics.facet_counts().map(|by_facet| {
            let mut counted: BTreeMap<Labels, Counts> = BTreeMap::new();
            for ((key, value), counts) in &by_facet {
                let of_facet = self.budget.admit(Labels {
                    facet: Some((value.facet().as_str(), value.as_str())),
                    ..labels(key, true)
                });
                counted.entry(of_facet).or_default().merge(counts);
            }
            counted
        });
        let mut families = acceptance::counters(by_facet.as_ref().unwrap_or(&counted));
        families.push(acceptance::per_step(&counted));
        families.extend(traffic::families(&measured));
        families.push(series::gauge(&FOLDED, self.budget.folded() as f64));
        families
    }
}

// Routes fold together, and so do tags where no tag is wanted.
fn labels(key: &GroupKey, with_tag: bool) -> Labels {
    Labels {
        tag: key.tag.clone().filter(|_| with_tag),
        ..Labels::of(key.engine, key.model.clone())
    }
}

impl Labels {
    fn of(engine: Option<EngineName>, model: Option<String>) -> Self {
        Self {
            backend: engine.map_or(UNKNOWN, |engine| engine.as_str()),
            model_name: model.unwrap_or_else(|| UNKNOWN.to_owned()),
            tag: None,
            facet: None,
        }
    }
}
