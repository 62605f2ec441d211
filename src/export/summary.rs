//! The summary: what a person or a tool asks for, in AIPerf's names, with `n` beside every figure.
//!
//! The top level is the `aiperf` view (complete exchanges with content, one sequence, one record), so that its figures
//! equal AIPerf's on the same traffic; `sequences` is every valid record. Both come from a [`Snapshot`] only.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::query::{By, Query};
use super::snapshot::{Filter, Snapshot, SnapshotGroup, snapshot};
use crate::observation::{Acceptance, Reason};
use crate::record::AcceptanceHistogram;
use crate::stats::advice::{self, Advice};
use crate::stats::progress::ReplyPart;
use crate::stats::relation::{self, Relation};
use crate::stats::survival::{self, Survival};
use crate::stats::{FacetValue, Finding, Group, Period, Statistics, Window, findings};
use crate::store::records::Manifest;

pub mod metrics;
mod throughput;

pub use metrics::{Metric, Metrics};

/// Groups that get intervals, survival, gain, advice and findings; with more of them none does, since an interval alone
/// takes a thousand draws.
const MOST_GROUPS_IN_DETAIL: usize = 100;

/// The answer of `/api/v1/summary`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Where the figures come from: the tap, or each records file.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub manifests: Vec<Manifest>,
    /// Which exchanges it is about.
    pub scope: Scope,
    /// Exchanges by what became of their acceptance numbers.
    pub n: Counts,
    /// (recorded + zero-step) / exchanges; null without exchanges.
    pub record_share: Option<f64>,
    /// Exchanges by reason, under what became of their numbers; absent where no reason was given.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub reasons: Reasons,
    /// Figures of the `aiperf` view and of the traffic, by AIPerf's tags.
    pub metrics: Metrics,
    /// Steps by number of accepted drafts, `aiperf` view; no zero buckets.
    pub pooled_spec_decode_acceptance_histogram: AcceptanceHistogram,
    /// The `all` view: one record per sequence, whatever the outcome.
    pub sequences: Sequences,
    /// Share of steps that accepted at least position + 1 drafts, `aiperf` view.
    pub survival: Vec<Survival>,
    /// What drafting bought, `aiperf` view.
    pub gain: Metrics,
    /// The expected length at other depths; null while nothing was recorded.
    pub advice: Option<Advice>,
    /// Acceptance by how far the replies had come; empty without ordered steps.
    pub along_the_reply: Vec<ReplyPart>,
    /// What goes along with acceptance length.
    pub relations: Vec<Relation>,
    /// What the engine's own counters say: null while they are not read.
    pub server: (),
    /// Share of the engine's steps that the records hold: null while the engine's counters are not read.
    pub coverage: (),
    /// What a person should know about these figures.
    pub findings: Vec<Finding>,
    /// The same by what the query groups by; empty without `by`.
    pub groups: Vec<GroupSummary>,
}

/// Exchanges by reason, under what became of their acceptance numbers.
pub type Reasons = BTreeMap<Acceptance, BTreeMap<Reason, u64>>;

/// Which exchanges a summary is about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scope {
    /// `all`: since the tap started.
    pub window: Window,
    /// Name of the run; null: all.
    pub run: Option<String>,
    /// `from` and `to`: the window's edges; for all traffic first start and last end of the exchanges counted, null
    /// without any.
    #[serde(flatten)]
    pub period: Period,
    /// What was asked for.
    pub filter: Filter,
}

/// Exchanges on observed routes with a 2xx status, by what became of their acceptance numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// All of them.
    pub exchanges: u64,
    /// With at least one valid record with steps.
    pub recorded: u64,
    /// With a valid payload, but speculation never ran.
    pub zero_step: u64,
    /// Without payload.
    pub absent: u64,
    /// With a payload that breaks an identity or can't be read.
    pub malformed: u64,
    /// With a payload that can't be told apart, or two for one sequence.
    pub ambiguous: u64,
    /// That could not be looked at.
    pub unobserved: u64,
}

/// The `all` view.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sequences {
    /// Figures by AIPerf's tags.
    pub metrics: Metrics,
    /// Steps by number of accepted drafts; no zero buckets.
    pub pooled_spec_decode_acceptance_histogram: AcceptanceHistogram,
}

/// What AIPerf can't tell of a group, `aiperf` view.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Detail {
    /// Share of steps that accepted at least position + 1 drafts.
    pub survival: Vec<Survival>,
    /// What drafting bought.
    pub gain: Metrics,
    /// The expected length at other depths; null while nothing was recorded.
    pub advice: Option<Advice>,
    /// What a person should know about these figures.
    pub findings: Vec<Finding>,
}

impl Detail {
    fn of(group: &Group) -> Self {
        let (pooled, evidence) = (&group.aiperf.pooled, &group.evidence);
        Self {
            survival: survival::with_intervals(
                survival::curve(&pooled.histogram, &evidence.widths),
                &evidence.positions,
            ),
            gain: metrics::of_gain(group),
            advice: (pooled.records > 0).then(|| advice::of(pooled, evidence)),
            findings: findings::of(group),
        }
    }
}

/// One group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupSummary {
    /// What its exchanges have in common; null where unknown.
    pub key: BTreeMap<By, Option<String>>,
    /// Exchanges by what became of their acceptance numbers.
    pub n: Counts,
    /// (recorded + zero-step) / exchanges.
    pub record_share: Option<f64>,
    /// Exchanges by reason.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub reasons: Reasons,
    /// Figures of the `aiperf` view and of the traffic, by AIPerf's tags.
    pub metrics: Metrics,
    /// Steps by number of accepted drafts, `aiperf` view.
    pub pooled_spec_decode_acceptance_histogram: AcceptanceHistogram,
    /// The `all` view.
    pub sequences: Sequences,
    /// What AIPerf can't tell; absent where there are more than 100 groups.
    #[serde(flatten)]
    pub detail: Option<Detail>,
}

impl Summary {
    /// The same with the speed-up of each depth where drafting one token takes `draft_cost` of the time of one verify
    /// step.
    #[must_use]
    pub fn with_draft_cost(mut self, draft_cost: f64) -> Self {
        let weigh = |advice: &mut Option<Advice>| {
            *advice = advice
                .take()
                .map(|advice| advice.with_draft_cost(draft_cost));
        };
        weigh(&mut self.advice);
        for group in &mut self.groups {
            if let Some(detail) = &mut group.detail {
                weigh(&mut detail.advice);
            }
        }
        self
    }
}

/// Summarises what the query asks for.
pub fn summary(statistics: &Statistics, query: &Query) -> Summary {
    of_snapshot(&snapshot(statistics, query), &query.by)
}

/// Summarises a snapshot, with groups by the given properties.
pub fn of_snapshot(snapshot: &Snapshot, by: &[By]) -> Summary {
    let mut whole = Group::default();
    let mut parts: BTreeMap<Vec<Part>, Group> = BTreeMap::new();
    for group in &snapshot.groups {
        whole.merge(&group.figures);
        if !by.is_empty() {
            let key = by.iter().map(|&by| Part::of(by, group)).collect();
            parts.entry(key).or_default().merge(&group.figures);
        }
    }
    let n = counts(&whole);
    let detail = Detail::of(&whole);
    let (metrics, of_all) = metrics::of_group(&whole, true);
    let in_detail = parts.len() <= MOST_GROUPS_IN_DETAIL;
    Summary {
        manifests: snapshot.manifests.clone(),
        scope: Scope {
            window: snapshot.window,
            run: snapshot.run.clone(),
            period: snapshot.period,
            filter: snapshot.filter.clone(),
        },
        n,
        record_share: n.record_share(),
        metrics,
        survival: detail.survival,
        gain: detail.gain,
        advice: detail.advice,
        findings: snapshot
            .findings
            .iter()
            .cloned()
            .chain(detail.findings)
            .collect(),
        along_the_reply: whole.evidence.progress.parts(),
        relations: relation::of(&whole.evidence.samples),
        sequences: sequences(&whole, of_all),
        server: (),
        coverage: (),
        groups: parts
            .into_iter()
            .map(|(parts, group)| {
                let names = parts.into_iter().map(Part::name);
                group_summary(by.iter().copied().zip(names).collect(), group, in_detail)
            })
            .collect(),
        pooled_spec_decode_acceptance_histogram: whole.aiperf.pooled.histogram,
        reasons: whole.reasons,
    }
}

/// One value of a group's key. Facets keep their own order, in which `up_to_256` comes before `up_to_1024`.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Name(Option<String>),
    Facet(Option<FacetValue>),
}

impl Part {
    fn of(by: By, group: &SnapshotGroup) -> Self {
        match by.facet() {
            None => Part::Name(by.value_of(&group.key)),
            Some(facet) => Part::Facet(group.facet.filter(|value| value.facet() == facet)),
        }
    }

    fn name(self) -> Option<String> {
        match self {
            Part::Name(name) => name,
            Part::Facet(value) => value.map(|value| value.as_str().to_owned()),
        }
    }
}

impl Counts {
    /// (recorded + zero-step) / exchanges; absent without exchanges.
    pub fn record_share(&self) -> Option<f64> {
        (self.exchanges > 0)
            .then(|| self.recorded.saturating_add(self.zero_step) as f64 / self.exchanges as f64)
    }
}

fn counts(group: &Group) -> Counts {
    let of = |acceptance| group.exchanges.get(&acceptance).copied().unwrap_or(0);
    Counts {
        exchanges: group
            .exchanges
            .values()
            .fold(0, |sum: u64, &count| sum.saturating_add(count)),
        recorded: of(Acceptance::Recorded),
        zero_step: of(Acceptance::ZeroStep),
        absent: of(Acceptance::Absent),
        malformed: of(Acceptance::Malformed),
        ambiguous: of(Acceptance::Ambiguous),
        unobserved: of(Acceptance::Unobserved),
    }
}

fn sequences(group: &Group, metrics: Metrics) -> Sequences {
    Sequences {
        metrics,
        pooled_spec_decode_acceptance_histogram: group.all_pooled().histogram,
    }
}

fn group_summary(key: BTreeMap<By, Option<String>>, group: Group, in_detail: bool) -> GroupSummary {
    let n = counts(&group);
    let (metrics, of_all) = metrics::of_group(&group, in_detail);
    GroupSummary {
        key,
        n,
        record_share: n.record_share(),
        metrics,
        detail: in_detail.then(|| Detail::of(&group)),
        sequences: sequences(&group, of_all),
        pooled_spec_decode_acceptance_histogram: group.aiperf.pooled.histogram,
        reasons: group.reasons,
    }
}

#[cfg(test)]
mod tests;
