//! A sample: what a draw needs of one request.

use super::key::key;
use super::row::Row;
use crate::observation::Observation;
use crate::record::AcceptanceRecord;
use crate::stats::column::TrafficColumn;
use crate::stats::pooled::countable_steps;

/// One request of the `aiperf` view. Without a record, or with a zero-step one, `steps` and `drafted` are both 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Decided by the times and counts of the exchange.
    pub key: u32,
    /// Verify steps; 0 where the engine tells totals alone.
    pub steps: u32,
    /// Accepted drafts.
    pub accepted: u32,
    /// Drafts put before the verifier.
    pub drafted: u32,
    /// k, the most drafts a step may carry; 0 where the engine does not say.
    pub k: u32,
    /// Completion tokens of the usage object; 0 where there are none.
    pub completion_tokens: u32,
    /// Time per output token after the first, in milliseconds; absent where undefined.
    pub inter_token_latency_ms: Option<f64>,
    /// Exchanges in flight when this one arrived, itself included.
    pub in_flight: u32,
}

impl Sample {
    /// The sample of an exchange and its record, if it has one.
    pub fn of(observation: &Observation, record: Option<&AcceptanceRecord>) -> Self {
        let record = record.filter(|record| !record.is_zero_step());
        Self {
            key: key(observation, record),
            steps: bounded(record.and_then(countable_steps)),
            accepted: bounded(record.map(|it| it.num_accepted_draft_tokens)),
            drafted: bounded(record.map(|it| it.num_draft_tokens)),
            k: bounded(record.and_then(|it| it.num_spec_tokens)),
            completion_tokens: bounded(observation.usage.completion_tokens),
            inter_token_latency_ms: observation
                .timing
                .inter_token_latency_ms
                .filter(|value| value.is_finite()),
            in_flight: bounded(Some(observation.in_flight)),
        }
    }

    /// The sample of a row.
    pub(in crate::stats) fn of_row(row: &Row<'_>) -> Self {
        let record = row.records.clone().next();
        let traffic = |column: TrafficColumn| row.traffic.and_then(|it| it[column as usize]);
        Self {
            key: row.key,
            steps: bounded(record.and_then(|it| it.values.steps)),
            accepted: bounded(record.map(|it| it.values.accepted)),
            drafted: bounded(record.map(|it| it.values.drafted)),
            k: bounded(record.and_then(|it| it.k)),
            completion_tokens: bounded(
                traffic(TrafficColumn::OutputSequenceLength).map(|tokens| tokens as u64),
            ),
            inter_token_latency_ms: traffic(TrafficColumn::InterTokenLatency),
            in_flight: bounded(Some(row.in_flight)),
        }
    }

    /// Whether the request has a record that is pooled.
    pub fn has_record(&self) -> bool {
        self.steps > 0 || self.drafted > 0
    }

    /// 1 + accepted / steps; absent without steps.
    pub fn length(&self) -> Option<f64> {
        (self.steps > 0).then(|| 1.0 + f64::from(self.accepted) / f64::from(self.steps))
    }
}

fn bounded(count: Option<u64>) -> u32 {
    count.map_or(0, |count| u32::try_from(count).unwrap_or(u32::MAX))
}
