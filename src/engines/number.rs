//! Numbers as engines send them: which JSON values are a count, a bucket or a ratio.

use super::object::{Json, Object, elements};
use crate::record::{AcceptanceHistogram, LARGEST_EXACT_INTEGER, Violation};

/// Most buckets of a histogram; no engine drafts anywhere near as many tokens per step.
const MOST_BUCKETS: usize = 4096;

/// A count: an integer, or a float with no fraction as some serializers write one; from 0 to 2^53. A string is none,
/// although AIPerf takes it: a server that sends `"60"` is broken, and the next reader may see it otherwise.
pub fn count(value: Json<'_>) -> Option<u64> {
    let count = match value.as_u64() {
        Some(integer) => integer,
        None => {
            let float = value.as_f64()?;
            let is_whole =
                float.fract() == 0.0 && (0.0..=LARGEST_EXACT_INTEGER as f64).contains(&float);
            // Exact: whole and at most 2^53.
            is_whole.then_some(float as u64)?
        }
    };
    (count <= LARGEST_EXACT_INTEGER).then_some(count)
}

/// A finite number, integer or not.
pub fn fraction(value: Json<'_>) -> Option<f64> {
    value.as_f64().filter(|number| number.is_finite())
}

/// A member that is there and not null.
pub(super) fn sent<'a>(payload: &'a dyn Object, name: &str) -> Option<Json<'a>> {
    payload.get(name).filter(|value| !value.is_null())
}

/// The first of several names of one thing that was sent.
pub(super) fn sent_as<'a>(payload: &'a dyn Object, names: &[&str]) -> Option<Json<'a>> {
    names.iter().find_map(|name| sent(payload, name))
}

/// Whether these two counts were sent, and say something: servers that never speculate may fill both with 0.
pub(super) fn are_sent(payload: &dyn Object, names: [&str; 2]) -> bool {
    let values = names.map(|name| sent(payload, name));
    values.iter().all(Option::is_some)
        && values
            .iter()
            .flatten()
            .any(|value| count(*value).is_none_or(|count| count > 0))
}

/// A count that must be there.
pub(super) fn required_count(payload: &dyn Object, name: &str) -> Result<u64, Violation> {
    payload
        .get(name)
        .and_then(count)
        .ok_or(Violation::BadNumber)
}

/// A count that may be missing or null.
pub(super) fn optional_count(payload: &dyn Object, name: &str) -> Result<Option<u64>, Violation> {
    optional_count_as(payload, &[name])
}

/// A count that may be missing or null, under one of several names.
pub(super) fn optional_count_as(
    payload: &dyn Object,
    names: &[&str],
) -> Result<Option<u64>, Violation> {
    sent_as(payload, names)
        .map(|value| count(value).ok_or(Violation::BadNumber))
        .transpose()
}

/// A ratio or a mean that must be there.
pub(super) fn required_fraction(payload: &dyn Object, name: &str) -> Result<f64, Violation> {
    payload
        .get(name)
        .and_then(fraction)
        .ok_or(Violation::BadNumber)
}

/// A ratio or a mean that may be missing or null.
pub(super) fn optional_fraction(
    payload: &dyn Object,
    name: &str,
) -> Result<Option<f64>, Violation> {
    sent(payload, name)
        .map(|value| fraction(value).ok_or(Violation::BadNumber))
        .transpose()
}

/// A list of counts that may be missing or null: one entry per verify step.
pub(super) fn optional_counts(
    payload: &dyn Object,
    name: &str,
) -> Result<Option<Vec<u64>>, Violation> {
    match sent(payload, name) {
        None => Ok(None),
        Some(values @ Json::List(_)) => elements(Some(values))
            .map(|value| count(value).ok_or(Violation::BadNumber))
            .collect::<Result<_, _>>()
            .map(Some),
        Some(_) => Err(Violation::BadNumber),
    }
}

/// The dense histogram: a list of true integers, `k` + 1 long where `k` is given. Zero buckets are dropped.
pub(super) fn dense_histogram(
    value: Option<Json<'_>>,
    k: Option<u64>,
) -> Result<AcceptanceHistogram, Violation> {
    let Some(Json::List(buckets)) = value else {
        return Err(Violation::BadNumber);
    };
    if buckets.length() > MOST_BUCKETS {
        return Err(Violation::HistogramLength);
    }
    let mut histogram = AcceptanceHistogram::new();
    for (accepted, bucket) in (0u32..).zip(elements(value)) {
        add_bucket(&mut histogram, accepted, bucket)?;
    }
    if k.is_some_and(|k| buckets.length() as u64 != k + 1) {
        return Err(Violation::HistogramLength);
    }
    Ok(histogram)
}

/// The sparse histogram: an object whose names are the numbers of accepted drafts, none above `k` where `k` is given.
pub(super) fn sparse_histogram(
    value: Option<Json<'_>>,
    k: Option<u64>,
) -> Result<AcceptanceHistogram, Violation> {
    let Some(Json::Object(buckets)) = value else {
        return Err(Violation::BadNumber);
    };
    if buckets.len() > MOST_BUCKETS {
        return Err(Violation::HistogramLength);
    }
    let mut histogram = AcceptanceHistogram::new();
    let mut result = Ok(());
    buckets.each(&mut |name, bucket| {
        result = result.and_then(|()| add_named_bucket(&mut histogram, name, bucket, k));
    });
    result.map(|()| histogram)
}

fn add_named_bucket(
    histogram: &mut AcceptanceHistogram,
    name: &str,
    bucket: Json<'_>,
    k: Option<u64>,
) -> Result<(), Violation> {
    let is_plain = name.bytes().all(|byte| byte.is_ascii_digit());
    let accepted: u32 = name
        .parse()
        .ok()
        .filter(|_| is_plain)
        .ok_or(Violation::BadNumber)?;
    if k.is_some_and(|k| u64::from(accepted) > k) {
        return Err(Violation::HistogramLength);
    }
    add_bucket(histogram, accepted, bucket)
}

fn add_bucket(
    histogram: &mut AcceptanceHistogram,
    accepted: u32,
    bucket: Json<'_>,
) -> Result<(), Violation> {
    match bucket.as_u64() {
        Some(0) => {}
        // Two names may mean one number: `1` and `01`.
        Some(steps) if steps <= LARGEST_EXACT_INTEGER && !histogram.contains_key(&accepted) => {
            histogram.insert(accepted, steps);
        }
        _ => return Err(Violation::BadNumber),
    }
    Ok(())
}
