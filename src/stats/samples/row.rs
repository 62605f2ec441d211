//! An exchange as a group keeps it: a few dozen bytes that give back every value that has a distribution, and what a draw
//! needs. A value that follows from the others is not written.

use super::bytes::{Reader, put_count, put_value};
use super::shape::{self, Shape};
use crate::stats::column::{TrafficColumn, Values};
use crate::stats::prepared::Prepared;
use crate::stats::time;
use crate::stats::view::RecordValues;

/// A row of a group.
#[derive(Clone, Copy, Debug)]
pub(in crate::stats) struct Row<'a> {
    /// Decided by the times and counts of the exchange.
    pub(in crate::stats) key: u32,
    /// Whether it is one that AIPerf would count: these are drawn from.
    pub(in crate::stats) is_sample: bool,
    /// Exchanges in flight when this one arrived, itself included.
    pub(in crate::stats) in_flight: u64,
    /// Times and lengths, of a complete exchange with content.
    pub(in crate::stats) traffic: Option<Values>,
    /// Its records, zero-step ones left out.
    pub(in crate::stats) records: Records<'a>,
    /// The row as it stands.
    pub(super) bytes: &'a [u8],
}

/// A record of a row.
#[derive(Clone, Copy, Debug)]
pub(in crate::stats) struct RowRecord<'a> {
    /// The per-record values.
    pub(in crate::stats) values: RecordValues,
    /// k, where the engine says.
    pub(in crate::stats) k: Option<u64>,
    /// How its steps went.
    pub(in crate::stats) shape: Shape<'a>,
}

/// The records of a row, read one by one.
#[derive(Clone, Copy, Debug)]
pub(in crate::stats) struct Records<'a> {
    left: u64,
    reader: Reader<'a>,
}

const IS_SAMPLE: u8 = 1;
const HAS_TRAFFIC: u8 = 2;

/// How a value of the traffic is written, two bits each. As a count: of tokens, or of the nanoseconds of a time.
mod traffic_form {
    pub(super) const ABSENT: u16 = 0;
    pub(super) const COUNT: u16 = 1;
    pub(super) const VALUE: u16 = 2;
    pub(super) const DERIVED: u16 = 3;
}

/// How length and rate are written, two bits each.
mod record_form {
    pub(super) const ABSENT: u8 = 0;
    pub(super) const DERIVED: u8 = 1;
    pub(super) const VALUE: u8 = 2;
}
const HAS_STEPS: u8 = 1 << 4;
const HAS_K: u8 = 1 << 5;

/// Writes the row of an exchange.
pub(in crate::stats) fn write(bytes: &mut Vec<u8>, exchange: &Prepared<'_>) {
    Head {
        key: exchange.key,
        is_sample: exchange.is_sample,
        in_flight: exchange.observation.in_flight,
        traffic: exchange.traffic,
        records: exchange.records.len(),
    }
    .write(bytes);
    for record in &exchange.records {
        write_record(bytes, &record.values, record.record.num_spec_tokens);
        shape::write(bytes, record);
    }
}

/// What stands before the records of a row.
pub(super) struct Head {
    pub(super) key: u32,
    pub(super) is_sample: bool,
    pub(super) in_flight: u64,
    pub(super) traffic: Option<Values>,
    pub(super) records: usize,
}

impl Head {
    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.key.to_le_bytes());
        let mut flags = 0;
        if self.is_sample {
            flags |= IS_SAMPLE;
        }
        if self.traffic.is_some() {
            flags |= HAS_TRAFFIC;
        }
        bytes.push(flags);
        put_count(bytes, self.in_flight);
        if let Some(traffic) = &self.traffic {
            write_traffic(bytes, traffic);
        }
        put_count(bytes, self.records as u64);
    }
}

/// The token latency that the other values give.
pub(super) fn derived_latency(traffic: &Values) -> Option<f64> {
    time::token_latency(
        traffic[TrafficColumn::RequestLatency as usize]?,
        traffic[TrafficColumn::TimeToFirstToken as usize]?,
        traffic[TrafficColumn::OutputSequenceLength as usize]?,
    )
}

fn is_same(left: Option<f64>, right: Option<f64>) -> bool {
    left.map(f64::to_bits) == right.map(f64::to_bits)
}

fn is_time(column: usize) -> bool {
    column < TrafficColumn::OutputSequenceLength as usize
}

/// The count that a value is written as; absent where it would not come back to the last digit.
fn count_of(column: usize, value: f64) -> Option<u64> {
    if is_time(column) {
        time::nanoseconds(value)
    } else {
        time::whole(value)
    }
}

fn value_of(column: usize, count: u64) -> f64 {
    if is_time(column) {
        time::milliseconds(count)
    } else {
        count as f64
    }
}

fn write_traffic(bytes: &mut Vec<u8>, traffic: &Values) {
    let derived = derived_latency(traffic);
    let start = bytes.len();
    let mut mask = 0;
    bytes.extend_from_slice(&[0; 2]);
    for (column, value) in traffic.iter().enumerate() {
        let is_token_latency = column == TrafficColumn::InterTokenLatency as usize;
        let form = match *value {
            None => traffic_form::ABSENT,
            Some(_) if is_token_latency && is_same(*value, derived) => traffic_form::DERIVED,
            Some(value) => match count_of(column, value) {
                Some(count) => {
                    put_count(bytes, count);
                    traffic_form::COUNT
                }
                None => {
                    put_value(bytes, value);
                    traffic_form::VALUE
                }
            },
        };
        mask |= form << (2 * column);
    }
    bytes[start..start + 2].copy_from_slice(&mask.to_le_bytes());
}

fn read_traffic(reader: &mut Reader<'_>) -> Option<Values> {
    let mask = u16::from_le_bytes(reader.array()?);
    let form = |column: usize| (mask >> (2 * column)) & 3;
    let mut traffic = Values::default();
    for (column, value) in traffic.iter_mut().enumerate() {
        match form(column) {
            traffic_form::COUNT => *value = Some(value_of(column, reader.count()?)),
            traffic_form::VALUE => *value = Some(reader.value()?),
            _ => {}
        }
    }
    let column = TrafficColumn::InterTokenLatency as usize;
    if form(column) == traffic_form::DERIVED {
        traffic[column] = derived_latency(&traffic);
    }
    Some(traffic)
}

/// Writes a record; its shape follows.
pub(super) fn write_record(bytes: &mut Vec<u8>, values: &RecordValues, k: Option<u64>) {
    let form = |value: Option<f64>, derived: Option<f64>| match value {
        None => record_form::ABSENT,
        Some(_) if is_same(value, derived) => record_form::DERIVED,
        Some(_) => record_form::VALUE,
    };
    let length = form(values.length, values.derived_length());
    let rate = form(values.rate, values.derived_rate());
    let mut mask = length | (rate << 2);
    if values.steps.is_some() {
        mask |= HAS_STEPS;
    }
    if k.is_some() {
        mask |= HAS_K;
    }
    bytes.push(mask);
    put_count(bytes, values.accepted);
    put_count(bytes, values.drafted);
    for count in [values.steps, k].into_iter().flatten() {
        put_count(bytes, count);
    }
    for (form, value) in [(length, values.length), (rate, values.rate)] {
        if let (record_form::VALUE, Some(value)) = (form, value) {
            put_value(bytes, value);
        }
    }
}

fn read_record<'a>(reader: &mut Reader<'a>) -> Option<RowRecord<'a>> {
    let mask = reader.byte()?;
    let (accepted, drafted) = (reader.count()?, reader.count()?);
    let mut count_if = |flag: u8| -> Option<Option<u64>> {
        if mask & flag == 0 {
            return Some(None);
        }
        reader.count().map(Some)
    };
    let (steps, k) = (count_if(HAS_STEPS)?, count_if(HAS_K)?);
    let mut values = RecordValues {
        length: None,
        rate: None,
        steps,
        accepted,
        drafted,
    };
    values.length = match mask & 3 {
        record_form::DERIVED => values.derived_length(),
        record_form::VALUE => Some(reader.value()?),
        _ => None,
    };
    values.rate = match (mask >> 2) & 3 {
        record_form::DERIVED => values.derived_rate(),
        record_form::VALUE => Some(reader.value()?),
        _ => None,
    };
    Some(RowRecord {
        values,
        k,
        shape: Shape::read(reader)?,
    })
}

/// The key of a row.
pub(super) fn key_of(bytes: &[u8]) -> Option<u32> {
    Reader(bytes).array().map(u32::from_le_bytes)
}

impl<'a> Row<'a> {
    /// Reads a row.
    pub(super) fn read(bytes: &'a [u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        let key = u32::from_le_bytes(reader.array()?);
        let flags = reader.byte()?;
        let in_flight = reader.count()?;
        let traffic = if flags & HAS_TRAFFIC == 0 {
            None
        } else {
            Some(read_traffic(&mut reader)?)
        };
        Some(Self {
            key,
            is_sample: flags & IS_SAMPLE != 0,
            in_flight,
            traffic,
            records: Records {
                left: reader.count()?,
                reader,
            },
            bytes,
        })
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = RowRecord<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        read_record(&mut self.reader)
    }
}
