//! A growing run of values that is cheap to copy: full pieces are shared between the copies, never written again.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

const PIECE: usize = 4_096;

/// The values, in no promised order.
#[derive(Clone, Debug, Default)]
pub(super) struct Values {
    full: Vec<Arc<[f64]>>,
    open: Vec<f64>,
}

impl Values {
    pub(super) fn push(&mut self, value: f64) {
        self.open.push(value);
        if self.open.len() == PIECE {
            self.full.push(std::mem::take(&mut self.open).into());
        }
    }

    pub(super) fn extend(&mut self, other: &Values) {
        self.full.extend(other.full.iter().cloned());
        for &value in &other.open {
            self.push(value);
        }
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

impl Serialize for Values {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for Values {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut values = Values::default();
        for value in Vec::<f64>::deserialize(deserializer)? {
            values.push(value);
        }
        Ok(values)
    }
}
