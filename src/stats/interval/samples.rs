//! Single requests, kept for resampling: each one's counts, latency and concurrency, within a bound.
//!
//! Every request has a key that its times and counts decide. When there are too many, those with the largest keys go, so that what
//! stays is a uniform sample, and parts merge to the same sample in any order and grouping.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::observation::Observation;
use crate::record::AcceptanceRecord;
use crate::stats::pooled::countable_steps;

/// Requests that one group keeps; with the next one, half of them go.
pub const MOST_SAMPLES: usize = 100_000;

/// Requests that stay when a group has to make room for others.
pub(in crate::stats) const THINNED_SAMPLES: usize = 250;

const PIECE: usize = 4_096;

/// One past the largest key.
const EVERY_KEY: u64 = 1 << 32;

/// One request of the `aiperf` view. Without a record, or with a zero-step one, `steps` and `drafted` are both 0.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Row", into = "Row")]
pub struct Sample {
    /// Decided by the times and counts of the exchange.
    pub key: u32,
    /// Verify steps; 0 where the engine tells totals alone.
    pub steps: u32,
    /// Accepted drafts.
    pub accepted: u32,
    /// Drafts put before the verifier.
    pub drafted: u32,
    /// Time per output token after the first, in milliseconds; absent where undefined.
    pub inter_token_latency_ms: Option<f32>,
    /// Exchanges in flight when this one arrived, itself included.
    pub in_flight: u32,
}

/// A sample as it stands in a snapshot.
type Row = (u32, u32, u32, u32, Option<f32>, u32);

impl From<Row> for Sample {
    fn from((key, steps, accepted, drafted, latency, in_flight): Row) -> Self {
        Self {
            key,
            steps,
            accepted,
            drafted,
            inter_token_latency_ms: latency.filter(|value| value.is_finite()),
            in_flight,
        }
    }
}

impl From<Sample> for Row {
    fn from(sample: Sample) -> Self {
        (
            sample.key,
            sample.steps,
            sample.accepted,
            sample.drafted,
            sample.inter_token_latency_ms,
            sample.in_flight,
        )
    }
}

impl Sample {
    /// The sample of an exchange and its record, if it has one.
    pub(in crate::stats) fn of(
        observation: &Observation,
        record: Option<&AcceptanceRecord>,
    ) -> Self {
        let bounded = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        let record = record.filter(|record| !record.is_zero_step());
        Self {
            key: key(observation, record),
            steps: bounded(record.and_then(countable_steps).unwrap_or(0)),
            accepted: bounded(record.map_or(0, |it| it.num_accepted_draft_tokens)),
            drafted: bounded(record.map_or(0, |it| it.num_draft_tokens)),
            inter_token_latency_ms: observation
                .timing
                .inter_token_latency_ms
                .map(|milliseconds| milliseconds as f32)
                .filter(|value| value.is_finite()),
            in_flight: bounded(observation.in_flight),
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

    /// What decides the order of samples: the key, then everything else, so that equal keys can't make a difference.
    fn place(&self) -> (u32, u32, u32, u32, Option<u32>, u32) {
        let latency = self.inter_token_latency_ms.map(f32::to_bits);
        (
            self.key,
            self.steps,
            self.accepted,
            self.drafted,
            latency,
            self.in_flight,
        )
    }
}

/// A key that every form of an exchange gives alike, be it live, a row of a log or a line of a file: from its times in
/// microseconds, which no two share as a rule, and its counts.
fn key(observation: &Observation, record: Option<&AcceptanceRecord>) -> u32 {
    let microseconds = |time: SystemTime| {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        since.as_micros() as u64
    };
    let parts = [
        microseconds(observation.started_at),
        microseconds(observation.ended_at),
        observation.in_flight,
        observation.usage.completion_tokens.unwrap_or(0),
        record.map_or(0, |it| it.num_accepted_draft_tokens),
        record.map_or(0, |it| it.num_draft_tokens),
    ];
    // SplitMix64's mixing step: neighbouring times get keys that have nothing to do with each other.
    let hash = parts.into_iter().fold(0_u64, |hash, part| {
        let mut mixed = (hash ^ part).wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    });
    (hash >> 32) as u32
}

/// Requests in no promised order; a uniform sample once there were too many.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct Samples {
    /// Only keys below this one are kept; absent: all.
    below: Option<u32>,
    full: Vec<Arc<[Sample]>>,
    open: Vec<Sample>,
}

#[derive(Serialize, Deserialize)]
struct Written {
    #[serde(skip_serializing_if = "Option::is_none", default)]
    below: Option<u32>,
    rows: Vec<Sample>,
}

impl From<Written> for Samples {
    fn from(written: Written) -> Self {
        Self {
            below: written.below,
            full: Vec::new(),
            open: written.rows,
        }
    }
}

impl From<Samples> for Written {
    fn from(samples: Samples) -> Self {
        Self {
            below: samples.below,
            rows: samples.iter().collect(),
        }
    }
}

impl Samples {
    /// Adds an exchange of the `aiperf` view.
    pub(in crate::stats) fn add(
        &mut self,
        observation: &Observation,
        record: Option<&AcceptanceRecord>,
    ) {
        self.push(Sample::of(observation, record));
        if self.len() > MOST_SAMPLES {
            self.thin_to(MOST_SAMPLES / 2);
        }
    }

    pub(super) fn push(&mut self, sample: Sample) {
        if self.below.is_some_and(|below| sample.key >= below) {
            return;
        }
        self.open.push(sample);
        if self.open.len() >= PIECE {
            self.full.push(std::mem::take(&mut self.open).into());
        }
    }

    /// Adds what another one holds.
    pub(in crate::stats) fn merge(&mut self, other: &Samples) {
        if self.below == other.below {
            // Full pieces are shared, not copied.
            self.full.extend(other.full.iter().cloned());
            other.open.iter().for_each(|&sample| self.push(sample));
        } else {
            let bound = |below: Option<u32>| below.map_or(EVERY_KEY, u64::from);
            if bound(other.below) < bound(self.below) {
                self.keep_below(other.below);
            }
            other.iter().for_each(|sample| self.push(sample));
        }
    }

    /// Keeps the `target` samples with the smallest keys, or fewer where keys are equal.
    pub(in crate::stats) fn thin_to(&mut self, target: usize) {
        if self.len() <= target {
            return;
        }
        let mut keys: Vec<u32> = self.iter().map(|sample| sample.key).collect();
        let (_, &mut first_to_go, _) = keys.select_nth_unstable(target);
        self.keep_below(Some(first_to_go));
    }

    fn keep_below(&mut self, below: Option<u32>) {
        let kept: Vec<Sample> = self.iter().collect();
        *self = Self {
            below,
            ..Self::default()
        };
        kept.into_iter().for_each(|sample| self.push(sample));
    }

    /// How many are kept.
    pub fn len(&self) -> usize {
        self.full.iter().map(|piece| piece.len()).sum::<usize>() + self.open.len()
    }

    /// Whether none is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Those kept, in no promised order.
    pub fn iter(&self) -> impl Iterator<Item = Sample> {
        self.full
            .iter()
            .flat_map(|piece| piece.iter())
            .chain(&self.open)
            .copied()
    }

    /// The first `most` in the order of their keys for which `wanted` says so: a uniform sample of them, the same
    /// whatever the order of arrival.
    pub fn first(&self, most: usize, wanted: impl Fn(&Sample) -> bool) -> Vec<Sample> {
        let mut found: Vec<Sample> = self.iter().filter(wanted).collect();
        if found.len() > most {
            // Cheaper than sorting what is left out.
            found.select_nth_unstable_by_key(most, Sample::place);
            found.truncate(most);
        }
        found.sort_unstable_by_key(Sample::place);
        found
    }
}
