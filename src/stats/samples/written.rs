//! Samples as they stand in a snapshot: numbers in a fixed order, since there are many of them.

use serde::{Deserialize, Serialize};

use super::Samples;
use super::row::{Head, Row, RowRecord, write_record};
use super::shape::WrittenShape;
use crate::stats::column::Values;
use crate::stats::view::RecordValues;

#[derive(Serialize, Deserialize)]
pub(super) struct Written {
    #[serde(skip_serializing_if = "Option::is_none", default)]
    below: Option<u32>,
    rows: Vec<WrittenRow>,
}

/// Key, whether it is of the `aiperf` view, exchanges in flight, times and lengths, records.
#[derive(Serialize, Deserialize)]
struct WrittenRow(u32, bool, u64, Option<Values>, Vec<WrittenRecord>);

/// Length, rate, steps, accepted, drafted, k, shape.
#[derive(Serialize, Deserialize)]
struct WrittenRecord(
    Option<f64>,
    Option<f64>,
    Option<u64>,
    u64,
    u64,
    Option<u64>,
    WrittenShape,
);

impl From<Samples> for Written {
    fn from(samples: Samples) -> Self {
        Self {
            below: samples.below,
            rows: samples.rows().map(WrittenRow::of).collect(),
        }
    }
}

impl From<Written> for Samples {
    fn from(written: Written) -> Self {
        let mut samples = Samples {
            below: written.below,
            ..Samples::default()
        };
        let mut bytes = Vec::new();
        for row in written.rows {
            bytes.clear();
            let key = row.0;
            row.write(&mut bytes);
            samples.push(key, &bytes);
        }
        samples
    }
}

impl WrittenRow {
    fn of(row: Row<'_>) -> Self {
        Self(
            row.key,
            row.is_sample,
            row.in_flight,
            row.traffic,
            row.records.map(WrittenRecord::of).collect(),
        )
    }

    fn write(self, bytes: &mut Vec<u8>) {
        let Self(key, is_sample, in_flight, traffic, records) = self;
        Head {
            key,
            is_sample,
            in_flight,
            traffic,
            records: records.len(),
        }
        .write(bytes);
        for WrittenRecord(length, rate, steps, accepted, drafted, k, shape) in records {
            let values = RecordValues {
                length,
                rate,
                steps,
                accepted,
                drafted,
            };
            write_record(bytes, &values, k);
            shape.write(bytes);
        }
    }
}

impl WrittenRecord {
    fn of(record: RowRecord<'_>) -> Self {
        let values = record.values;
        Self(
            values.length,
            values.rate,
            values.steps,
            values.accepted,
            values.drafted,
            record.k,
            WrittenShape::of(record.shape),
        )
    }
}
