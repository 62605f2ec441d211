//! An exchange as the log keeps it: every member that a statistic reads, in a few dozen bytes.
//!
//! A row gives the observation back, so that what is counted later goes through the same code as what is counted at
//! once. Members that no statistic reads (ids, finish reasons, the engine's own times) are left out.

use std::borrow::Cow;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::time;
use crate::observation::{Acceptance, Facets, Observation, Outcome, Reason, Route, Timing, Usage};
use crate::record::{AcceptanceHistogram, AcceptanceRecord, EngineName, Provenance, Recomputed};

/// The members of an observation that are kept.
#[derive(Serialize, Deserialize)]
struct Row<'a> {
    /// Nanoseconds from start to end.
    duration: i64,
    stream: bool,
    n: u32,
    prompts: u32,
    in_flight: u64,
    status: Option<u16>,
    outcome: Outcome,
    acceptance: Option<Acceptance>,
    reason: Option<Reason>,
    facets: Facets,
    usage: Usage,
    time_to_first_token: Time,
    inter_token_latency: Time,
    inter_chunk_latency: Time,
    request_latency: Time,
    content_chunks: u64,
    records: Vec<RecordRow<'a>>,
}

#[derive(Serialize, Deserialize)]
struct RecordRow<'a> {
    engine: EngineName,
    provenance: Provenance,
    choice_index: Option<u32>,
    length: Sent,
    rate: Sent,
    histogram: Cow<'a, AcceptanceHistogram>,
    accepted: u64,
    drafted: u64,
    steps: Option<u64>,
    k: Option<u64>,
    completion_tokens: Option<u64>,
    per_step_accepted: PerStep<'a>,
    per_step_drafted: PerStep<'a>,
    recomputed: Option<Recomputed>,
    nominal_drafts: bool,
    zero_filled: bool,
}

/// A mean or rate as sent: nearly always the very number that the counts give.
#[derive(Serialize, Deserialize)]
enum Sent {
    Absent,
    Derived,
    Else(f64),
}

/// A time, in as few bytes as it takes.
#[derive(Serialize, Deserialize)]
enum Time {
    Absent,
    Nanoseconds(u64),
    /// The token latency that the other times and the tokens give.
    Derived,
    Milliseconds(f64),
}

/// An array with a number for each step; the drafted ones are often all the same.
#[derive(Serialize, Deserialize)]
enum PerStep<'a> {
    Absent,
    Same { steps: usize, value: u64 },
    Each(Cow<'a, [u64]>),
}

/// Nanoseconds since 1970; times beyond the range stop at its ends.
pub(super) fn nanoseconds(time: SystemTime) -> i64 {
    let clamped = |duration: Duration| i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => clamped(since),
        Err(before) => -clamped(before.duration()),
    }
}

/// The time of so many nanoseconds since 1970.
pub(super) fn time_of(nanoseconds: i64) -> SystemTime {
    let distance = Duration::from_nanos(nanoseconds.unsigned_abs());
    let time = if nanoseconds < 0 {
        UNIX_EPOCH.checked_sub(distance)
    } else {
        UNIX_EPOCH.checked_add(distance)
    };
    time.unwrap_or(UNIX_EPOCH)
}

/// Bytes of most rows.
const USUAL_BYTES: usize = 128;

/// Writes the row of an observation; empty where that fails, which it never should.
pub(super) fn write(observation: &Observation) -> Vec<u8> {
    let started = nanoseconds(observation.started_at);
    let timing = &observation.timing;
    let row = Row {
        duration: nanoseconds(observation.ended_at).saturating_sub(started),
        stream: observation.stream,
        n: observation.n,
        prompts: observation.prompts,
        in_flight: observation.in_flight,
        status: observation.status,
        outcome: observation.outcome,
        acceptance: observation.acceptance,
        reason: observation.reason,
        facets: observation.facets,
        usage: observation.usage,
        time_to_first_token: Time::of(timing.time_to_first_token_ms),
        inter_token_latency: match (timing.inter_token_latency_ms, token_latency(observation)) {
            (Some(sent), Some(derived)) if sent.to_bits() == derived.to_bits() => Time::Derived,
            (sent, _) => Time::of(sent),
        },
        inter_chunk_latency: Time::of(timing.inter_chunk_latency_ms),
        request_latency: Time::of(timing.request_latency_ms),
        content_chunks: observation.content_chunks,
        records: observation
            .spec_decode_acceptance
            .iter()
            .map(RecordRow::of)
            .collect(),
    };
    postcard::to_extend(&row, Vec::with_capacity(USUAL_BYTES)).unwrap_or_default()
}

/// Reads the row of an exchange on this route that ended at this time. Model, tag and run stand beside the row, by
/// number.
pub(super) fn read(bytes: &[u8], route: Route, ended: i64) -> Option<Observation> {
    let row: Row = postcard::from_bytes(bytes).ok()?;
    let mut observation = Observation {
        id: String::new(),
        request_id: None,
        x_request_id: None,
        trace_id: None,
        started_at: time_of(ended.saturating_sub(row.duration)),
        ended_at: time_of(ended),
        lane: String::new(),
        route,
        model: None,
        tag: None,
        run: None,
        stream: row.stream,
        n: row.n,
        prompts: row.prompts,
        stream_options_asked: None,
        in_flight: row.in_flight,
        status: row.status,
        outcome: row.outcome,
        acceptance: row.acceptance,
        reason: row.reason,
        finish_reasons: Vec::new(),
        facets: row.facets,
        usage: row.usage,
        timing: Timing {
            time_to_first_byte_ms: None,
            time_to_first_token_ms: row.time_to_first_token.value(),
            inter_token_latency_ms: row.inter_token_latency.value(),
            inter_chunk_latency_ms: row.inter_chunk_latency.value(),
            request_latency_ms: row.request_latency.value(),
            upstream_connect_ms: None,
        },
        engine_metrics: Default::default(),
        content_chunks: row.content_chunks,
        spec_decode_acceptance: row.records.into_iter().map(RecordRow::record).collect(),
    };
    if matches!(row.inter_token_latency, Time::Derived) {
        observation.timing.inter_token_latency_ms = token_latency(&observation);
    }
    Some(observation)
}

/// (latency − time to first token) / (tokens − 1), as the tap computes it.
fn token_latency(observation: &Observation) -> Option<f64> {
    let timing = &observation.timing;
    time::token_latency(
        timing.request_latency_ms?,
        timing.time_to_first_token_ms?,
        observation.usage.completion_tokens? as f64,
    )
}

impl Time {
    fn of(milliseconds: Option<f64>) -> Self {
        match milliseconds {
            None => Time::Absent,
            Some(value) => {
                time::nanoseconds(value).map_or(Time::Milliseconds(value), Time::Nanoseconds)
            }
        }
    }

    fn value(&self) -> Option<f64> {
        match self {
            Time::Absent | Time::Derived => None,
            Time::Nanoseconds(nanoseconds) => Some(time::milliseconds(*nanoseconds)),
            Time::Milliseconds(value) => Some(*value),
        }
    }
}

impl<'a> RecordRow<'a> {
    fn of(record: &'a AcceptanceRecord) -> Self {
        Self {
            engine: record.engine,
            provenance: record.provenance,
            choice_index: record.choice_index,
            length: Sent::of(record.mean_acceptance_length, record.derived_length()),
            rate: Sent::of(record.draft_acceptance_rate, record.derived_rate()),
            histogram: Cow::Borrowed(&record.acceptance_histogram),
            accepted: record.num_accepted_draft_tokens,
            drafted: record.num_draft_tokens,
            steps: record.num_spec_steps,
            k: record.num_spec_tokens,
            completion_tokens: record.completion_tokens,
            per_step_accepted: PerStep::of(record.per_step_accepted.as_deref()),
            per_step_drafted: PerStep::of(record.per_step_drafted.as_deref()),
            recomputed: record.recomputed,
            nominal_drafts: record.nominal_drafts,
            zero_filled: record.zero_filled,
        }
    }

    fn record(self) -> AcceptanceRecord {
        let mut record = AcceptanceRecord {
            engine: self.engine,
            provenance: self.provenance,
            choice_index: self.choice_index,
            mean_acceptance_length: None,
            draft_acceptance_rate: None,
            acceptance_histogram: self.histogram.into_owned(),
            num_accepted_draft_tokens: self.accepted,
            num_draft_tokens: self.drafted,
            num_spec_steps: self.steps,
            num_spec_tokens: self.k,
            completion_tokens: self.completion_tokens,
            per_step_accepted: self.per_step_accepted.array(),
            per_step_drafted: self.per_step_drafted.array(),
            recomputed: self.recomputed,
            nominal_drafts: self.nominal_drafts,
            zero_filled: self.zero_filled,
        };
        record.mean_acceptance_length = self.length.value(record.derived_length());
        record.draft_acceptance_rate = self.rate.value(record.derived_rate());
        record
    }
}

impl Sent {
    fn of(sent: Option<f64>, derived: Option<f64>) -> Self {
        match sent {
            None => Sent::Absent,
            Some(value) if derived.map(f64::to_bits) == Some(value.to_bits()) => Sent::Derived,
            Some(value) => Sent::Else(value),
        }
    }

    fn value(self, derived: Option<f64>) -> Option<f64> {
        match self {
            Sent::Absent => None,
            Sent::Derived => derived,
            Sent::Else(value) => Some(value),
        }
    }
}

impl<'a> PerStep<'a> {
    fn of(array: Option<&'a [u64]>) -> Self {
        match array {
            None => PerStep::Absent,
            Some([first, rest @ ..]) if rest.iter().all(|value| value == first) => PerStep::Same {
                steps: 1 + rest.len(),
                value: *first,
            },
            Some(values) => PerStep::Each(Cow::Borrowed(values)),
        }
    }

    fn array(self) -> Option<Vec<u64>> {
        match self {
            PerStep::Absent => None,
            PerStep::Same { steps, value } => Some(vec![value; steps]),
            PerStep::Each(values) => Some(values.into_owned()),
        }
    }
}
