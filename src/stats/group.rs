//! A group: everything that the exchanges of one engine, model, tag and route add up to.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::buckets::Histograms;
use super::evidence::Evidence;
use super::interval::THINNED_SAMPLES;
use super::moment::{Moment, Period};
use super::pooled::grow;
use super::traffic::Traffic;
use super::view::{RecordValues, View};
use crate::observation::{Acceptance, Observation, Outcome, Reason, Route};
use crate::record::EngineName;

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
    /// Every valid record.
    pub all: View,
    /// Times and lengths of the complete exchanges with content.
    pub traffic: Traffic,
    /// What the figures beyond AIPerf's are made of.
    #[serde(default)]
    pub evidence: Evidence,
    /// The same values in fixed buckets, for Prometheus; not part of a snapshot.
    #[serde(skip)]
    pub histograms: Histograms,
}

impl Group {
    /// Adds an exchange with a 2xx status on an observed route.
    pub(super) fn add(&mut self, observation: &Observation) {
        self.period.stretch(&Period {
            from: Some(Moment(observation.started_at)),
            to: Some(Moment(observation.ended_at)),
        });
        // Every observation with a 2xx status says what became of its numbers; one that doesn't was not looked at.
        let acceptance = observation.acceptance.unwrap_or(Acceptance::Unobserved);
        grow(self.exchanges.entry(acceptance).or_default(), 1);
        if let Some(reason) = observation.reason {
            let reasons = self.reasons.entry(acceptance).or_default();
            grow(reasons.entry(reason).or_default(), 1);
        }
        let usage = &observation.usage;
        grow(&mut self.prompt_tokens, usage.prompt_tokens.unwrap_or(0));
        grow(
            &mut self.generation_tokens,
            usage.completion_tokens.unwrap_or(0),
        );
        if observation.outcome == Outcome::Complete && observation.content_chunks > 0 {
            self.traffic.add(observation);
            self.histograms.add_timing(&observation.timing);
        }
        if matches!(acceptance, Acceptance::Recorded | Acceptance::ZeroStep) {
            self.add_records(observation);
        } else if observation.is_in_aiperf_view() {
            // Without a record it still has a latency that another run can be held against.
            self.evidence.add_without_record(observation);
        }
    }

    fn add_records(&mut self, observation: &Observation) {
        for record in &observation.spec_decode_acceptance {
            self.all.add(record);
            if !record.is_zero_step() {
                self.histograms.add_record(&RecordValues::of(record));
                grow(
                    &mut self.contradictions,
                    u64::from(record.is_contradictory()),
                );
            }
        }
        if let [record] = observation.spec_decode_acceptance.as_slice()
            && observation.is_in_aiperf_view()
        {
            self.aiperf.add(record);
            self.evidence.add(observation, record);
        }
    }

    /// Adds what another group holds.
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
        self.aiperf.merge(&other.aiperf);
        self.all.merge(&other.all);
        self.traffic.merge(&other.traffic);
        self.evidence.merge(&other.evidence);
        self.histograms.merge(&other.histograms);
    }

    /// Values that the group keeps exactly.
    pub(super) fn exact_values(&self) -> usize {
        let views = self
            .aiperf
            .distributions()
            .into_iter()
            .chain(self.all.distributions());
        views
            .chain(self.traffic.distributions())
            .map(|distribution| distribution.exact_values())
            .sum::<usize>()
            // A sample takes the room of four values.
            + 4 * self.evidence.samples.len()
    }

    /// Turns every distribution into a sketch, and keeps few samples.
    pub(super) fn condense(&mut self) {
        let views = self
            .aiperf
            .distributions_mut()
            .into_iter()
            .chain(self.all.distributions_mut());
        for distribution in views.chain(self.traffic.distributions_mut()) {
            distribution.condense();
        }
        self.evidence.samples.thin_to(THINNED_SAMPLES);
    }
}
