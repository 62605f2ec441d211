//! The snapshot: the statistics in machine form, from which every summary, here or elsewhere, is computed.
//!
//! Counts and histograms are whole; of distributions there are either the exchanges one by one (`evidence.samples`) or, once
//! these are a part only, the bins of `sketches`. Groups are always the finest there are (engine, model, tag, route), so that whoever reads one
//! can group as they like. Of `by` in the query only a facet changes something: groups are then told apart by it too.

use serde::{Deserialize, Serialize};

use super::query::Query;
use crate::record::EngineName;
use crate::scrape::{Coverage, Server, ServerFigures, Stretch};
use crate::stats::{
    FacetValue, Finding, Group, GroupKey, MOST_GROUPS, OTHER, Period, Statistics, Window,
};
use crate::store::records::Manifest;

/// Version of the snapshot's form; a reader refuses any other.
pub const VERSION: u32 = 3;

/// The statistics at one moment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Snapshot {
    /// [`VERSION`].
    pub version: u32,
    /// Where the numbers come from: the tap, or each records file.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub manifests: Vec<Manifest>,
    /// Which window it is about.
    #[serde(default)]
    pub window: Window,
    /// Name of the run; null: all.
    #[serde(default)]
    pub run: Option<String>,
    /// The window's edges; without one from the first start to the last end of what is in it.
    #[serde(flatten)]
    pub period: Period,
    /// What it was narrowed to.
    pub filter: Filter,
    /// What only the tap itself can know about these figures.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub findings: Vec<Finding>,
    /// What the engine's own counters say of the same stretch; absent where they are not read.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub server: Option<ServerFigures>,
    /// How much of that the records hold; absent where it can't be told.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub coverage: Option<Coverage>,
    /// The groups in the order of their keys.
    pub groups: Vec<SnapshotGroup>,
}

impl Snapshot {
    /// The same with what the engine's own counters say. Neither tags nor wire shapes are on the engine's page, so a
    /// snapshot that is narrowed to one has none.
    #[must_use]
    pub fn beside(mut self, server: &Server) -> Self {
        let stretch = match (&self.run, self.window, self.period.from) {
            (Some(run), Window::All, _) => Stretch::Run(run.clone()),
            // A run's part of a window is nothing that the counters could tell.
            (Some(_), _, _) => return self,
            (None, Window::All, _) => Stretch::All,
            (None, _, Some(from)) => Stretch::Since(from.0),
            (None, _, None) => return self,
        };
        if self.filter.tag.is_some() || self.filter.engine.is_some() {
            return self;
        }
        self.server = server.figures(&stretch, self.filter.model.as_deref());
        if self.filter.model.is_none() {
            self.coverage = server.coverage(&stretch);
        }
        self
    }
}

/// What a snapshot or a summary was narrowed to; members that narrow nothing are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filter {
    /// Only this model.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub model: Option<String>,
    /// Only this tag.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tag: Option<String>,
    /// Only records of this engine.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub engine: Option<EngineName>,
}

/// One group with what its exchanges have in common.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SnapshotGroup {
    /// What they have in common.
    pub key: GroupKey,
    /// Their value of the facet that was asked for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub facet: Option<FacetValue>,
    /// What they add up to.
    pub figures: Group,
}

/// Takes a snapshot of the groups that the query asks for.
pub fn snapshot(statistics: &Statistics, query: &Query) -> Snapshot {
    let selected = statistics.select(&query.selection(), |key| query.wants(key));
    let mut findings: Vec<Finding> = folded(selected.folded).into_iter().collect();
    // It is about now and about all of a model's requests.
    if query.run.is_none() && query.tag.is_none() && query.engine.is_none() {
        let is_wanted =
            |model: Option<&str>| query.model.is_none() || query.model.as_deref() == model;
        findings.extend(statistics.falls(is_wanted));
    }
    Snapshot {
        version: VERSION,
        manifests: Vec::new(),
        window: query.window,
        run: query.run.clone(),
        period: selected.period,
        filter: Filter {
            model: query.model.clone(),
            tag: query.tag.clone(),
            engine: query.engine,
        },
        findings,
        server: None,
        coverage: None,
        groups: selected
            .groups
            .into_iter()
            .map(|group| SnapshotGroup {
                key: group.key,
                facet: group.facet,
                figures: group.figures,
            })
            .collect(),
    }
}

fn folded(n: u64) -> Option<Finding> {
    (n > 0).then(|| Finding {
        code: "groups_folded".to_owned(),
        n,
        text: format!(
            "There are more groups than the {MOST_GROUPS} that are told apart: {n} exchanges count in groups called {OTHER}."
        ),
    })
}
