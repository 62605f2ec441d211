//! An exchange made ready to be counted: what several groups need of it is computed once, and before any lock is held.

use super::advice::Ordered;
use super::column::Values;
use super::pooled::countable_steps;
use super::progress::PartOfRecord;
use super::samples::{self, key};
use super::survival::{StepsOfWidth, equal_width, steps_by_width};
use super::view::RecordValues;
use crate::observation::{Acceptance, Observation, Outcome};
use crate::record::AcceptanceRecord;

/// An exchange with what is counted of it.
#[derive(Debug)]
pub(super) struct Prepared<'a> {
    pub(super) observation: &'a Observation,
    /// What became of its numbers.
    pub(super) acceptance: Acceptance,
    /// Decides whether it stays where only a part is kept.
    pub(super) key: u32,
    /// Whether AIPerf would have counted it: complete, with content, one sequence and not several records.
    pub(super) is_sample: bool,
    /// Times and lengths, of a complete exchange with content.
    pub(super) traffic: Option<Values>,
    /// Its valid records that have steps or drafts.
    pub(super) records: Vec<PreparedRecord<'a>>,
    /// Its valid records that have neither.
    pub(super) zero_step: u64,
    /// How a group keeps it.
    pub(super) row: Vec<u8>,
}

/// A record with what is counted of it.
#[derive(Debug)]
pub(super) struct PreparedRecord<'a> {
    pub(super) record: &'a AcceptanceRecord,
    pub(super) values: RecordValues,
    /// The width of all its steps, where they have one.
    pub(super) equal_width: Option<u64>,
    /// The rest is of samples only: steps of known width.
    pub(super) widths: Vec<StepsOfWidth>,
    /// Ordered steps.
    pub(super) ordered: Option<Ordered>,
    /// Ordered steps by how far the reply had come.
    pub(super) progress: Vec<PartOfRecord>,
}

/// Bytes of most rows.
const USUAL_ROW: usize = 96;

impl<'a> Prepared<'a> {
    /// Prepares an exchange with a 2xx status on an observed route.
    pub(super) fn new(observation: &'a Observation) -> Self {
        // Every observation with a 2xx status says what became of its numbers; one that doesn't was not looked at.
        let acceptance = observation.acceptance.unwrap_or(Acceptance::Unobserved);
        let valid = match acceptance {
            Acceptance::Recorded | Acceptance::ZeroStep => {
                observation.spec_decode_acceptance.as_slice()
            }
            _ => &[],
        };
        let has_numbers = matches!(acceptance, Acceptance::Recorded | Acceptance::ZeroStep);
        // Without a record it still has a latency that another run can be held against.
        let is_sample = observation.is_in_aiperf_view() && (!has_numbers || valid.len() == 1);
        let with_steps = valid.iter().filter(|record| !record.is_zero_step());
        let records: Vec<_> = with_steps
            .map(|record| PreparedRecord::new(record, is_sample))
            .collect();
        let is_whole = observation.outcome == Outcome::Complete && observation.content_chunks > 0;
        let mut prepared = Self {
            observation,
            acceptance,
            key: key(observation, records.first().map(|first| first.record)),
            is_sample,
            traffic: is_whole.then(|| traffic_values(observation)),
            zero_step: (valid.len() - records.len()) as u64,
            records,
            row: Vec::with_capacity(USUAL_ROW),
        };
        let mut row = std::mem::take(&mut prepared.row);
        samples::write_row(&mut row, &prepared);
        prepared.row = row;
        prepared
    }
}

/// Values in the order of [`super::TrafficColumn`].
fn traffic_values(observation: &Observation) -> Values {
    let (timing, usage) = (&observation.timing, &observation.usage);
    let tokens = |count: Option<u64>| count.map(|count| count as f64);
    [
        timing.time_to_first_token_ms,
        timing.inter_token_latency_ms,
        timing.inter_chunk_latency_ms,
        timing.request_latency_ms,
        tokens(usage.completion_tokens),
        tokens(usage.prompt_tokens),
    ]
    .map(|value| value.filter(|value| value.is_finite()))
}

impl<'a> PreparedRecord<'a> {
    fn new(record: &'a AcceptanceRecord, is_sample: bool) -> Self {
        let equal_width = equal_width(record).filter(|_| countable_steps(record).is_some());
        let mut prepared = Self {
            record,
            values: RecordValues::of(record),
            equal_width,
            widths: Vec::new(),
            ordered: None,
            progress: Vec::new(),
        };
        if is_sample && countable_steps(record).is_some() {
            prepared.widths = steps_by_width(record, equal_width);
            prepared.ordered = Ordered::of(record, equal_width);
            prepared.progress = PartOfRecord::all_of(record);
        }
        prepared
    }
}
