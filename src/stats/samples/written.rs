//! Samples as they stand in a snapshot: numbers in a fixed order, since there are many of them. A value that follows from
//! the others is `true`, one that there is not is null.

use serde::{Deserialize, Serialize, Serializer};

use super::Samples;
use super::row::{Head, Row, RowRecord, derived_latency, write_record};
use super::shape::WrittenShape;
use crate::stats::column::{TrafficColumn, Values};
use crate::stats::view::RecordValues;

#[derive(Serialize, Deserialize)]
pub(super) struct Written<Rows = Vec<WrittenRow>> {
    #[serde(skip_serializing_if = "Option::is_none", default)]
    below: Option<u32>,
    rows: Rows,
}

/// Key, whether it is of the `aiperf` view, exchanges in flight, times and lengths, records.
#[derive(Serialize, Deserialize)]
pub(super) struct WrittenRow(
    u32,
    bool,
    u64,
    Option<[WrittenValue; 6]>,
    Vec<WrittenRecord>,
);

/// Length, rate, steps, accepted, drafted, k, shape.
#[derive(Serialize, Deserialize)]
struct WrittenRecord(
    WrittenValue,
    WrittenValue,
    Option<u64>,
    u64,
    u64,
    Option<u64>,
    WrittenShape,
);

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(untagged)]
enum WrittenValue {
    /// Always true.
    Derived(bool),
    Value(f64),
    Absent,
}

impl WrittenValue {
    fn of(value: Option<f64>, derived: Option<f64>) -> Self {
        match value {
            None => Self::Absent,
            Some(value) if derived.map(f64::to_bits) == Some(value.to_bits()) => {
                Self::Derived(true)
            }
            Some(value) => Self::Value(value),
        }
    }

    fn value(self, derived: Option<f64>) -> Option<f64> {
        match self {
            Self::Absent => None,
            Self::Derived(_) => derived,
            Self::Value(value) => Some(value),
        }
    }
}

/// Writes its rows one by one: all of them at once would take a multiple of what they take here.
struct RowsOf<'a>(&'a Samples);

impl Serialize for RowsOf<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.rows().map(WrittenRow::of))
    }
}

impl Serialize for Samples {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let written = Written {
            below: self.below,
            rows: RowsOf(self),
        };
        written.serialize(serializer)
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
        let traffic = |traffic: Values| {
            let mut written = traffic.map(|value| WrittenValue::of(value, None));
            let column = TrafficColumn::InterTokenLatency as usize;
            written[column] = WrittenValue::of(traffic[column], derived_latency(&traffic));
            written
        };
        Self(
            row.key,
            row.is_sample,
            row.in_flight,
            row.traffic.map(traffic),
            row.records.map(WrittenRecord::of).collect(),
        )
    }

    fn write(self, bytes: &mut Vec<u8>) {
        let Self(key, is_sample, in_flight, traffic, records) = self;
        let values = |written: [WrittenValue; 6]| {
            let mut traffic = written.map(|value| value.value(None));
            let column = TrafficColumn::InterTokenLatency as usize;
            traffic[column] = written[column].value(derived_latency(&traffic));
            traffic
        };
        Head {
            key,
            is_sample,
            in_flight,
            traffic: traffic.map(values),
            records: records.len(),
        }
        .write(bytes);
        for WrittenRecord(length, rate, steps, accepted, drafted, k, shape) in records {
            let mut values = RecordValues {
                length: None,
                rate: None,
                steps,
                accepted,
                drafted,
            };
            values.length = length.value(values.derived_length());
            values.rate = rate.value(values.derived_rate());
            write_record(bytes, &values, k);
            shape.write(bytes);
        }
    }
}

impl WrittenRecord {
    fn of(record: RowRecord<'_>) -> Self {
        let values = record.values;
        Self(
            WrittenValue::of(values.length, values.derived_length()),
            WrittenValue::of(values.rate, values.derived_rate()),
            values.steps,
            values.accepted,
            values.drafted,
            record.k,
            WrittenShape::of(record.shape),
        )
    }
}
