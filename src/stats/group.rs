//! A group: everything that the exchanges of one engine, model, tag and route add up to.
//!
//! While it has few exchanges it keeps them all, and its distributions are exact. Once it has given them up
//! ([`Group::condensed`]) it has sketches of the distributions and a uniform sample of the exchanges.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::column::{RecordColumn, TrafficColumn, Values};
use super::distribution::Distribution;
use super::evidence::Evidence;
use super::moment::{Moment, Period};
use super::pooled::{Pooled, grow};
use super::prepared::Prepared;
use super::samples::{MOST_SAMPLES, Samples};
use super::sketches::Sketches;
use super::view::{View, ViewName};
use crate::observation::{Acceptance, Reason, Route};
use crate::record::EngineName;

/// Exchanges that stay when a group gives them up because there are too many: as many as anything looks at.
pub(super) const THINNED: usize = 10_000;

/// Exchanges that stay in any case.
const FEWEST_KEPT: usize = 64;

/// Bytes that the sketches of one group take, about.
const SKETCHED: usize = 16 << 10;

/// What the exchanges of a group have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GroupKey {
    /// Whose wire shape the records had; absent where there was no record to tell.
    pub engine: Option<EngineName>,
    /// Model name.
    pub model: Option<String>,
    /// The client's own label.
    pub tag: Option<String>,
    /// Which inference route it was.
    pub route: Route,
}

/// What the exchanges of a group add up to.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Group {
    /// From the first start to the last end.
    pub period: Period,
    /// Exchanges by what became of their acceptance numbers.
    pub exchanges: BTreeMap<Acceptance, u64>,
    /// Exchanges by the reason given, where one was.
    pub reasons: BTreeMap<Acceptance, BTreeMap<Reason, u64>>,
    /// Records that contradict themselves; against a sent mean or rate the counts' values are used.
    pub contradictions: u64,
    /// Σ prompt tokens, whatever the outcome.
    pub prompt_tokens: u64,
    /// Σ completion tokens, whatever the outcome.
    pub generation_tokens: u64,
    /// What AIPerf would have counted.
    pub aiperf: View,
    /// The valid records that AIPerf would not have counted. Kept apart so that nothing is kept twice.
    pub rest: View,
    /// What the figures beyond AIPerf's are made of, and the single exchanges.
    #[serde(default)]
    pub evidence: Evidence,
    /// The distributions, once not all exchanges are kept.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) sketches: Option<Box<Sketches>>,
}

/// The exchanges of a group, given up.
#[derive(Debug)]
pub(super) struct Condensed {
    samples: Samples,
    /// Absent where the group has sketches already: those go on growing in their place.
    sketches: Option<Box<Sketches>>,
    /// How many exchanges were kept when it was made.
    of: usize,
}

impl Group {
    /// Adds an exchange with a 2xx status on an observed route.
    pub(super) fn add(&mut self, exchange: &Prepared<'_>) {
        let observation = exchange.observation;
        self.period.stretch(&Period {
            from: Some(Moment(observation.started_at)),
            to: Some(Moment(observation.ended_at)),
        });
        grow(self.exchanges.entry(exchange.acceptance).or_default(), 1);
        if let Some(reason) = observation.reason {
            let reasons = self.reasons.entry(exchange.acceptance).or_default();
            grow(reasons.entry(reason).or_default(), 1);
        }
        let usage = &observation.usage;
        grow(&mut self.prompt_tokens, usage.prompt_tokens.unwrap_or(0));
        grow(
            &mut self.generation_tokens,
            usage.completion_tokens.unwrap_or(0),
        );
        self.add_records(exchange);
        self.evidence.samples.push(exchange.key, &exchange.row);
        if let Some(sketches) = &mut self.sketches {
            for record in &exchange.records {
                sketches.push_record(exchange.is_sample, &record.values.columns());
            }
            if let Some(traffic) = &exchange.traffic {
                sketches.push_traffic(traffic);
            }
        }
    }

    fn add_records(&mut self, exchange: &Prepared<'_>) {
        let view = if exchange.is_sample {
            &mut self.aiperf
        } else {
            &mut self.rest
        };
        grow(&mut view.pooled.zero_step, exchange.zero_step);
        for prepared in &exchange.records {
            let record = prepared.record;
            view.pooled.add(record);
            grow(
                &mut self.contradictions,
                u64::from(record.is_contradictory()),
            );
            if exchange.is_sample {
                self.evidence.add(prepared);
            }
        }
    }

    /// Sums over every valid record, whatever the outcome.
    pub fn all_pooled(&self) -> Pooled {
        let mut all = self.aiperf.pooled.clone();
        all.merge(&self.rest.pooled);
        all
    }

    /// The values that the records of a view have in each of these columns. Each takes the room of its values, and all of
    /// them one look at every exchange.
    pub fn records(&self, view: ViewName, columns: &[RecordColumn]) -> Vec<Distribution> {
        if let Some(sketches) = &self.sketches {
            let sketched = columns.iter().map(|&column| sketches.records(view, column));
            return sketched.collect();
        }
        let rows = self.evidence.samples.rows();
        let rows = rows.filter(|row| row.is_sample || view == ViewName::All);
        let records = rows.flat_map(|row| row.records);
        gather(
            records.map(|record| record.values.columns()),
            columns.iter().map(|&column| column as usize),
        )
    }

    /// The same of the complete exchanges with content.
    pub fn traffic(&self, columns: &[TrafficColumn]) -> Vec<Distribution> {
        if let Some(sketches) = &self.sketches {
            let sketched = columns.iter().map(|&column| sketches.traffic(column));
            return sketched.collect();
        }
        gather(
            self.evidence.samples.rows().filter_map(|row| row.traffic),
            columns.iter().map(|&column| column as usize),
        )
    }

    /// Adds what another group holds. The distributions are exact where both are.
    pub fn merge(&mut self, other: &Group) {
        self.period.stretch(&other.period);
        for (&acceptance, &count) in &other.exchanges {
            grow(self.exchanges.entry(acceptance).or_default(), count);
        }
        for (&acceptance, reasons) in &other.reasons {
            let own = self.reasons.entry(acceptance).or_default();
            for (&reason, &count) in reasons {
                grow(own.entry(reason).or_default(), count);
            }
        }
        grow(&mut self.contradictions, other.contradictions);
        grow(&mut self.prompt_tokens, other.prompt_tokens);
        grow(&mut self.generation_tokens, other.generation_tokens);
        self.aiperf.pooled.merge(&other.aiperf.pooled);
        self.rest.pooled.merge(&other.rest.pooled);
        self.merge_sketches(other);
        self.evidence.merge(&other.evidence);
    }

    fn merge_sketches(&mut self, other: &Group) {
        if self.sketches.is_none() && other.sketches.is_none() {
            return;
        }
        let samples = &self.evidence.samples;
        let own = self.sketches.get_or_insert_with(|| sketched(samples));
        match &other.sketches {
            Some(others) => own.merge(others),
            None => {
                let rows = other.evidence.samples.rows();
                rows.for_each(|row| own.push_row(&row));
            }
        }
    }

    /// Bytes that it takes beside its counts, about.
    pub(super) fn bytes(&self) -> usize {
        let sketches = self.sketches.as_ref().map_or(0, |_| SKETCHED);
        self.evidence.samples.bytes() + sketches
    }

    fn kept(&self) -> usize {
        self.evidence.samples.len()
    }

    /// How many exchanges it would keep where room is short, and its bytes then; absent where that would win none.
    pub(super) fn would_keep(&self) -> Option<(usize, usize)> {
        let (has, bytes) = (self.kept(), self.evidence.samples.bytes());
        let part = if self.sketches.is_some() { 2 } else { 8 };
        let keeps = (has / part).clamp(FEWEST_KEPT, THINNED);
        let after = SKETCHED + (bytes / has.max(1)).saturating_mul(keeps);
        // Not worth the while for less.
        (after + after / 8 < self.bytes()).then_some((keeps, after))
    }

    /// Whether it has to give up exchanges, whatever the room.
    pub(super) fn is_overfull(&self) -> bool {
        self.kept() > MOST_SAMPLES
    }

    /// What it would be with so many single exchanges. It takes a while: made from a copy of a group, see
    /// [`Group::take_over`].
    pub(super) fn condensed(&self, kept: usize) -> Condensed {
        let mut samples = self.evidence.samples.clone();
        let sketches = self.sketches.is_none().then(|| sketched(&samples));
        samples.thin_to(kept);
        Condensed {
            samples,
            sketches,
            of: self.kept(),
        }
    }

    /// Puts what was made from a copy in the place of what it was made from; exchanges that came since then are added.
    pub(super) fn take_over(&mut self, condensed: Condensed) {
        let Condensed {
            mut samples,
            mut sketches,
            of,
        } = condensed;
        for row in self.evidence.samples.rows().skip(of) {
            if let Some(sketches) = &mut sketches {
                sketches.push_row(&row);
            }
            samples.push_row(&row);
        }
        self.evidence.samples = samples;
        self.sketches = sketches.or(self.sketches.take());
    }
}

/// The columns of these values.
fn gather(
    values: impl Iterator<Item = Values>,
    columns: impl Iterator<Item = usize>,
) -> Vec<Distribution> {
    let mut gathered: Vec<(usize, Vec<f64>)> = columns.map(|it| (it, Vec::new())).collect();
    for values in values {
        for (column, gathered) in &mut gathered {
            gathered.extend(values[*column]);
        }
    }
    let gathered = gathered.into_iter();
    gathered
        .map(|(_, values)| Distribution::of(values))
        .collect()
}

fn sketched(samples: &Samples) -> Box<Sketches> {
    let mut sketches = Box::<Sketches>::default();
    samples.rows().for_each(|row| sketches.push_row(&row));
    sketches
}

#[cfg(test)]
mod tests;
