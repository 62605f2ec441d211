//! Counts by a facet, for the counters that carry one as a label: kept from the start, since a counter never goes back.

use std::collections::BTreeMap;

use super::facet::{Facet, FacetValue};
use super::pooled::{Pooled, grow};
use super::prepared::Prepared;
use super::{Group, GroupKey, MOST_GROUPS, OTHER};
use crate::observation::{Acceptance, Reason};

type Reasons = BTreeMap<Acceptance, BTreeMap<Reason, u64>>;

/// What exchanges add up to, without anything of which there is one per exchange.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Sums over every valid record, whatever the outcome.
    pub pooled: Pooled,
    /// Exchanges by what became of their acceptance numbers.
    pub exchanges: BTreeMap<Acceptance, u64>,
    /// Exchanges by the reason given, where one was.
    pub reasons: Reasons,
    /// Records that contradict themselves.
    pub contradictions: u64,
}

impl Counts {
    /// Adds what a group counted.
    pub fn add(&mut self, group: &Group) {
        self.pooled.merge(&group.aiperf.pooled);
        self.pooled.merge(&group.rest.pooled);
        self.add_exchanges(&group.exchanges, &group.reasons);
        grow(&mut self.contradictions, group.contradictions);
    }

    /// Adds other counts.
    pub fn merge(&mut self, other: &Counts) {
        self.pooled.merge(&other.pooled);
        self.add_exchanges(&other.exchanges, &other.reasons);
        grow(&mut self.contradictions, other.contradictions);
    }

    fn add_exchanges(&mut self, exchanges: &BTreeMap<Acceptance, u64>, reasons: &Reasons) {
        for (&acceptance, &exchanges) in exchanges {
            grow(self.exchanges.entry(acceptance).or_default(), exchanges);
        }
        for (&acceptance, reasons) in reasons {
            let own = self.reasons.entry(acceptance).or_default();
            for (&reason, &exchanges) in reasons {
                grow(own.entry(reason).or_default(), exchanges);
            }
        }
    }
}

/// The counts by one facet.
#[derive(Debug)]
pub(super) struct ByFacet {
    facet: Facet,
    counts: FacetCounts,
}

/// Counts by group and facet's value.
pub type FacetCounts = BTreeMap<(GroupKey, FacetValue), Counts>;

impl ByFacet {
    pub(super) fn new(facet: Facet) -> Self {
        Self {
            facet,
            counts: FacetCounts::new(),
        }
    }

    /// Adds an exchange of the group of this key.
    pub(super) fn add(&mut self, key: &GroupKey, exchange: &Prepared<'_>) {
        // By way of a group, so that the same counts as everywhere else.
        let mut alone = Group::default();
        alone.add(exchange);
        let value = self.facet.of(exchange.observation);
        let mut place = (key.clone(), value);
        if self.counts.len() >= MOST_GROUPS && !self.counts.contains_key(&place) {
            let key = &mut place.0;
            key.model = Some(OTHER.to_owned());
            key.tag = key.tag.take().map(|_| OTHER.to_owned());
        }
        self.counts.entry(place).or_default().add(&alone);
    }

    pub(super) fn counts(&self) -> &FacetCounts {
        &self.counts
    }
}
