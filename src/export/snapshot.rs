//! The snapshot: the statistics in machine form, from which every summary, here or elsewhere, is computed.
//!
//! Counts and histograms are whole; a distribution is either all its values (`{"exact":[…]}`) or the bins of a sketch
//! (`{"sketch":{…}}`). Groups are always the finest there are (engine, model, tag, route), so that whoever reads one
//! can group as they like; `by` in the query therefore changes nothing here.

use serde::{Deserialize, Serialize};

use super::query::Query;
use crate::record::EngineName;
use crate::stats::{Group, GroupKey, Period, Statistics};
use crate::store::records::Manifest;

/// Version of the snapshot's form; a reader refuses any other.
pub const VERSION: u32 = 1;

/// The statistics at one moment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Snapshot {
    /// [`VERSION`].
    pub version: u32,
    /// Where the numbers come from: the tap, or each records file.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub manifests: Vec<Manifest>,
    /// From the first start to the last end of what is in it.
    #[serde(flatten)]
    pub period: Period,
    /// What it was narrowed to.
    pub filter: Filter,
    /// The groups in the order of their keys.
    pub groups: Vec<SnapshotGroup>,
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
    /// What they add up to.
    pub figures: Group,
}

/// Takes a snapshot of the groups that the query asks for.
pub fn snapshot(statistics: &Statistics, query: &Query) -> Snapshot {
    let groups: Vec<SnapshotGroup> = statistics
        .groups(|key| query.wants(key))
        .into_iter()
        .map(|(key, figures)| SnapshotGroup { key, figures })
        .collect();
    let mut period = Period::default();
    for group in &groups {
        period.stretch(&group.figures.period);
    }
    Snapshot {
        version: VERSION,
        manifests: Vec::new(),
        period,
        filter: Filter {
            model: query.model.clone(),
            tag: query.tag.clone(),
            engine: query.engine,
        },
        groups,
    }
}
