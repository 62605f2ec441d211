//! The distributions of a group once its single exchanges are given up: a sketch for each column.

use serde::{Deserialize, Serialize};

use super::column::{COLUMNS, RecordColumn, TrafficColumn, Values};
use super::distribution::Distribution;
use super::samples::Row;
use super::sketch::Sketch;
use super::view::ViewName;

/// One sketch for each column of one kind.
type Columns = [Sketch; COLUMNS];

/// The sketches of a group.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Sketches {
    aiperf: Columns,
    /// Of the valid records that AIPerf would not have counted; absent while there are none, as it nearly always is.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    rest: Option<Box<Columns>>,
    traffic: Columns,
}

impl Sketches {
    /// Adds the values of one record.
    pub(super) fn push_record(&mut self, is_aiperf: bool, values: &Values) {
        if is_aiperf {
            push(&mut self.aiperf, values);
        } else {
            push(self.rest.get_or_insert_default(), values);
        }
    }

    /// Adds the values of one complete exchange with content.
    pub(super) fn push_traffic(&mut self, values: &Values) {
        push(&mut self.traffic, values);
    }

    /// Adds the values of a row.
    pub(super) fn push_row(&mut self, row: &Row<'_>) {
        for record in row.records {
            self.push_record(row.is_sample, &record.values.columns());
        }
        if let Some(traffic) = &row.traffic {
            self.push_traffic(traffic);
        }
    }

    /// Adds what others hold.
    pub(super) fn merge(&mut self, other: &Sketches) {
        merge(&mut self.aiperf, &other.aiperf);
        if let Some(rest) = &other.rest {
            merge(self.rest.get_or_insert_default(), rest);
        }
        merge(&mut self.traffic, &other.traffic);
    }

    /// The values that the records of a view have in a column.
    pub(super) fn records(&self, view: ViewName, column: RecordColumn) -> Distribution {
        let mut sketch = self.aiperf[column as usize].clone();
        if let (ViewName::All, Some(rest)) = (view, &self.rest) {
            sketch.merge(&rest[column as usize]);
        }
        Distribution::of_sketch(sketch)
    }

    /// The values that the exchanges have in a column.
    pub(super) fn traffic(&self, column: TrafficColumn) -> Distribution {
        Distribution::of_sketch(self.traffic[column as usize].clone())
    }
}

fn push(columns: &mut Columns, values: &Values) {
    for (sketch, value) in columns.iter_mut().zip(values) {
        if let Some(value) = value {
            sketch.push(*value);
        }
    }
}

fn merge(columns: &mut Columns, others: &Columns) {
    for (own, other) in columns.iter_mut().zip(others) {
        own.merge(other);
    }
}
