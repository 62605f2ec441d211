//! Single exchanges of a group, kept for distributions and draws: all of them while they are few, a uniform sample beyond.
//!
//! Every exchange has a key that its times and counts decide. When there are too many, those with the largest keys go, so
//! that what stays is a uniform sample, and parts merge to the same sample in any order and grouping.

use std::cmp::Ordering;
use std::sync::Arc;

use serde::Deserialize;

mod bytes;
mod key;
mod row;
mod sample;
mod shape;
mod written;

pub use sample::Sample;

pub(super) use key::key;
pub(super) use row::{Row, write as write_row};
pub(super) use shape::Shape;

use bytes::{Reader, put_count};
use written::Written;

/// Exchanges of one group of which all are kept; with the next one most of them go.
pub const MOST_SAMPLES: usize = 100_000;

/// Bytes of the smallest and of the largest piece. Pieces grow with what is kept: what the last one leaves empty is a small
/// part of all, and none is ever moved, which would leave holes behind.
const SMALLEST_PIECE: usize = 512;
const LARGEST_PIECE: usize = 64 << 10;

/// Bytes that the length of a row takes at most.
const LENGTH: usize = 10;

/// One past the largest key.
const EVERY_KEY: u64 = 1 << 32;

/// Exchanges in no promised order.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(from = "Written")]
pub struct Samples {
    /// Only keys below this one are kept; absent: all.
    below: Option<u32>,
    /// Rows one behind the other, each behind its length. Only the last piece is written; a copy shares all of them.
    pieces: Vec<Arc<Vec<u8>>>,
    len: usize,
    bytes: usize,
}

impl Samples {
    /// Adds an exchange, unless only a part is kept and it is not in it.
    pub(super) fn push(&mut self, key: u32, row: &[u8]) {
        if self.below.is_some_and(|below| key >= below) {
            return;
        }
        let piece = self.piece_with_room(row.len() + LENGTH);
        let before = piece.len();
        put_count(piece, row.len() as u64);
        piece.extend_from_slice(row);
        let grown = piece.len() - before;
        self.len += 1;
        self.bytes += grown;
    }

    fn piece_with_room(&mut self, room: usize) -> &mut Vec<u8> {
        let last = self.pieces.last();
        if last.is_none_or(|last| last.capacity() - last.len() < room) {
            let size = (self.bytes / 8).clamp(SMALLEST_PIECE, LARGEST_PIECE);
            self.pieces
                .push(Arc::new(Vec::with_capacity(size.max(room))));
        }
        let last = self.pieces.len() - 1;
        let last = &mut self.pieces[last];
        if Arc::get_mut(last).is_none() {
            // A copy shares it. Its own copy would have no room.
            let mut own = Vec::with_capacity(last.capacity());
            own.extend_from_slice(last);
            *last = Arc::new(own);
        }
        Arc::make_mut(last)
    }

    /// Adds a row of others.
    pub(super) fn push_row(&mut self, row: &Row<'_>) {
        self.push(row.key, row.bytes);
    }

    /// Adds what another one holds.
    pub(super) fn merge(&mut self, other: &Samples) {
        if self.below == other.below {
            // Shared, not copied.
            self.pieces.extend(other.pieces.iter().cloned());
            self.len += other.len;
            self.bytes += other.bytes;
            return;
        }
        let bound = |below: Option<u32>| below.map_or(EVERY_KEY, u64::from);
        if bound(other.below) < bound(self.below) {
            self.keep_below(other.below);
        }
        other.rows().for_each(|row| self.push_row(&row));
    }

    /// Keeps the `target` exchanges with the smallest keys, or fewer where keys are equal. With that, not all of them are
    /// kept any more, even where they were fewer.
    pub(super) fn thin_to(&mut self, target: usize) {
        let below = if self.len <= target {
            self.below.unwrap_or(u32::MAX)
        } else {
            let mut keys: Vec<u32> = self.written().filter_map(row::key_of).collect();
            let (_, &mut first_to_go, _) = keys.select_nth_unstable(target);
            first_to_go
        };
        self.keep_below(Some(below));
    }

    fn keep_below(&mut self, below: Option<u32>) {
        let kept = std::mem::take(self);
        self.below = below;
        kept.rows().for_each(|row| self.push_row(&row));
    }

    /// How many are kept.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether none is kept.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes that they take.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Those kept.
    pub(super) fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        self.written().filter_map(Row::read)
    }

    fn written(&self) -> impl Iterator<Item = &[u8]> {
        self.pieces.iter().flat_map(|piece| {
            let mut reader = Reader(piece);
            std::iter::from_fn(move || {
                let length = usize::try_from(reader.count()?).ok()?;
                reader.slice(length)
            })
        })
    }

    /// The requests of the `aiperf` view, in no promised order.
    pub fn iter(&self) -> impl Iterator<Item = Sample> {
        let samples = self.rows().filter(|row| row.is_sample);
        samples.map(|row| Sample::of_row(&row))
    }

    /// The first `most` requests of the `aiperf` view in the order of their keys for which `wanted` says so: a uniform sample
    /// of them, the same whatever the order of arrival.
    pub fn first(&self, most: usize, wanted: impl Fn(&Sample) -> bool) -> Vec<Sample> {
        let first = self.first_rows(most, |row| wanted(&Sample::of_row(row)));
        first.iter().map(Sample::of_row).collect()
    }

    /// The rows of the same.
    pub(super) fn first_rows(
        &self,
        most: usize,
        wanted: impl Fn(&Row<'_>) -> bool,
    ) -> Vec<Row<'_>> {
        let mut found: Vec<Row<'_>> = Vec::new();
        // The largest key that can still be among the first.
        let mut limit = u32::MAX;
        for written in self.written() {
            if row::key_of(written).is_none_or(|key| key > limit) {
                continue;
            }
            let row = Row::read(written).filter(|row| row.is_sample && wanted(row));
            found.extend(row);
            if found.len() > most.saturating_mul(2) {
                found.select_nth_unstable_by(most, order);
                found.truncate(most);
                limit = found.iter().map(|row| row.key).max().unwrap_or(limit);
            }
        }
        found.sort_unstable_by(order);
        found.truncate(most);
        found
    }
}

/// The key, then everything else, so that equal keys can't make a difference.
fn order(left: &Row<'_>, right: &Row<'_>) -> Ordering {
    (left.key, left.bytes).cmp(&(right.key, right.bytes))
}

#[cfg(test)]
pub(super) mod tests;
