//! A growing run of values that is cheap to copy: full pieces are shared between the copies, never written again.

use std::sync::Arc;

use serde::{Serialize, Serializer};

const PIECE: usize = 1_024;

/// The values, in no promised order.
#[derive(Clone, Debug, Default)]
pub(super) struct Values {
    full: Vec<Arc<[f64]>>,
    open: Vec<f64>,
}

impl Values {
    /// Adds a value; gives the piece that it completed.
    pub(super) fn push(&mut self, value: f64) -> Option<&[f64]> {
        make_room(&mut self.open);
        self.open.push(value);
        if self.open.len() < PIECE {
            return None;
        }
        self.full.push(std::mem::take(&mut self.open).into());
        self.full.last().map(|piece| &**piece)
    }

    /// Adds the full pieces of other values, by sharing them.
    pub(super) fn share_full(&mut self, other: &Values) {
        self.full.extend(other.full.iter().cloned());
    }

    /// The values that stand in no full piece.
    pub(super) fn open(&self) -> &[f64] {
        &self.open
    }

    pub(super) fn len(&self) -> usize {
        self.full.len() * PIECE + self.open.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = f64> {
        self.full
            .iter()
            .flat_map(|piece| piece.iter())
            .chain(&self.open)
            .copied()
    }

    pub(super) fn sorted(&self) -> Vec<f64> {
        let mut values: Vec<f64> = self.iter().collect();
        values.sort_unstable_by(f64::total_cmp);
        values
    }
}

/// Makes room for one more, by a quarter at a time: what thousands of small vectors leave empty adds up.
pub(super) fn make_room<T>(values: &mut Vec<T>) {
    if values.len() == values.capacity() {
        values.reserve_exact(4 + values.len() / 4);
    }
}

impl Serialize for Values {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}
