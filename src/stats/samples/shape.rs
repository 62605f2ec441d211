//! How the steps of one record went, as far as draws at other draft depths need it.

use serde::{Deserialize, Serialize};

use super::bytes::{Reader, put_count};
use crate::record::AcceptanceHistogram;
use crate::stats::advice::{DEEPEST, Stretch};
use crate::stats::prepared::PreparedRecord;

/// How the steps went; its numbers are read when they are wanted.
#[derive(Clone, Copy, Debug)]
pub(in crate::stats) enum Shape<'a> {
    /// Nothing is known, or the steps carried different numbers of drafts.
    Unknown,
    /// Steps by accepted drafts, of a record whose steps all carried k.
    Histogram(Numbers<'a>),
    /// The stretches of ordered steps; k stands first.
    Ordered(Numbers<'a>),
}

/// Counts that stand one behind the other.
#[derive(Clone, Copy, Debug)]
pub(in crate::stats) struct Numbers<'a>(Reader<'a>);

const UNKNOWN: u64 = 0;
const HISTOGRAM: u64 = 1;
const ORDERED: u64 = 2;

impl Iterator for Numbers<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        self.0.count()
    }
}

/// Writes the shape of a record.
pub(super) fn write(bytes: &mut Vec<u8>, record: &PreparedRecord<'_>) {
    if let Some(ordered) = &record.ordered {
        let stretches = ordered.stretches.iter();
        let numbers = stretches.flat_map(|it| [u64::from(it.full), u64::from(it.ending), it.count]);
        put(
            bytes,
            ORDERED,
            [u64::from(ordered.k)].into_iter().chain(numbers),
        );
    } else if has_histogram(record) {
        put(bytes, HISTOGRAM, dense(&record.record.acceptance_histogram));
    } else {
        put(bytes, UNKNOWN, []);
    }
}

/// Writes the numbers behind their length, nearly always one byte, so that a reader can pass over them.
fn put(bytes: &mut Vec<u8>, tag: u64, numbers: impl IntoIterator<Item = u64>) {
    let start = bytes.len();
    for number in numbers {
        put_count(bytes, number);
    }
    let end = bytes.len();
    put_count(bytes, (((end - start) as u64) << 2) | tag);
    let head = bytes.len() - end;
    bytes[start..].rotate_right(head);
}

/// A shape as it stands in a snapshot.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum WrittenShape {
    Unknown,
    Histogram(Vec<u64>),
    Ordered(Vec<u64>),
}

impl WrittenShape {
    pub(super) fn of(shape: Shape<'_>) -> Self {
        match shape {
            Shape::Unknown => Self::Unknown,
            Shape::Histogram(numbers) => Self::Histogram(numbers.collect()),
            Shape::Ordered(numbers) => Self::Ordered(numbers.collect()),
        }
    }

    pub(super) fn write(self, bytes: &mut Vec<u8>) {
        match self {
            Self::Unknown => put(bytes, UNKNOWN, []),
            Self::Histogram(numbers) => put(bytes, HISTOGRAM, numbers),
            Self::Ordered(numbers) => put(bytes, ORDERED, numbers),
        }
    }
}

impl<'a> Shape<'a> {
    pub(super) fn read(reader: &mut Reader<'a>) -> Option<Self> {
        let head = reader.count()?;
        let body = reader.slice(usize::try_from(head >> 2).ok()?)?;
        let numbers = Numbers(Reader(body));
        Some(match head & 3 {
            HISTOGRAM => Shape::Histogram(numbers),
            ORDERED => Shape::Ordered(numbers),
            _ => Shape::Unknown,
        })
    }

    /// The stretches of ordered steps of this k.
    pub(in crate::stats) fn stretches(self, k: u32) -> impl Iterator<Item = Stretch> {
        let mut numbers = match self {
            Shape::Ordered(numbers) => numbers,
            _ => Numbers(Reader(&[])),
        };
        if numbers.next() != Some(u64::from(k)) {
            numbers = Numbers(Reader(&[]));
        }
        std::iter::from_fn(move || {
            let (full, ending) = (numbers.next()?, numbers.next()?);
            Some(Stretch {
                full: u32::try_from(full).ok()?,
                ending: u32::try_from(ending).ok()?,
                count: numbers.next()?,
            })
        })
    }

    /// Steps by accepted drafts, from none on, where all carried the same number.
    pub(in crate::stats) fn histogram(self) -> impl Iterator<Item = u64> {
        match self {
            Shape::Histogram(numbers) => numbers,
            _ => Numbers(Reader(&[])),
        }
    }
}

fn has_histogram(record: &PreparedRecord<'_>) -> bool {
    let deepest = record.record.acceptance_histogram.keys().next_back();
    // A bucket beyond k makes no sense, but an engine may send one.
    record
        .equal_width
        .is_some_and(|k| (1..=DEEPEST).contains(&k))
        && deepest.is_some_and(|&deepest| u64::from(deepest) <= DEEPEST)
}

/// The buckets from none accepted to the deepest.
fn dense(histogram: &AcceptanceHistogram) -> impl Iterator<Item = u64> {
    let deepest = histogram.keys().next_back().copied().unwrap_or(0);
    (0..=deepest).map(|accepted| histogram.get(&accepted).copied().unwrap_or(0))
}
