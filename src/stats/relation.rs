//! What goes along with acceptance: inter-token latency and concurrency, over the same requests.

use serde::{Deserialize, Serialize};

use super::interval::{Sample, Samples};

/// Requests that are looked at; with more, a uniform sample of so many.
pub const MOST_RELATED: usize = 10_000;

/// Fewer requests than this have no correlation that would say anything.
pub const FEWEST_RELATED: usize = 10;

/// What stands against acceptance length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RelatedTo {
    /// Time per output token.
    InterTokenLatency,
    /// Exchanges in flight when the request arrived.
    Concurrency,
}

/// How acceptance length and another value go along.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Relation {
    /// The other value.
    pub with: RelatedTo,
    /// Spearman's rank correlation with acceptance length, −1 to 1; absent where one of the two never varies.
    pub spearman: Option<f64>,
    /// Requests.
    pub n: u64,
    /// What the bins are made by, and the unit of their bounds.
    pub bins_by: String,
    /// What the medians are of, and their unit.
    pub median_of: String,
    /// The bins in order.
    pub bins: Vec<RelationBin>,
}

/// Requests of one bin.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RelationBin {
    /// Smallest value in the bin.
    pub from: f64,
    /// Largest value in the bin.
    pub to: f64,
    /// Median of the other value.
    pub median: f64,
    /// Requests.
    pub n: u64,
}

/// The relations that enough requests tell about.
pub fn of(samples: &Samples) -> Vec<Relation> {
    let measured = samples.first(MOST_RELATED, |sample| sample.steps > 0);
    [with_latency(&measured), with_concurrency(&measured)]
        .into_iter()
        .flatten()
        .collect()
}

fn with_latency(samples: &[Sample]) -> Option<Relation> {
    let mut pairs: Vec<(f64, f64)> = samples
        .iter()
        .filter_map(|sample| Some((sample.length()?, sample.inter_token_latency_ms?)))
        .collect();
    if pairs.len() < FEWEST_RELATED {
        return None;
    }
    pairs.sort_by(|left, right| left.0.total_cmp(&right.0).then(left.1.total_cmp(&right.1)));
    let spearman = spearman(&pairs);
    let quarter = pairs.len().div_ceil(4);
    Some(Relation {
        with: RelatedTo::InterTokenLatency,
        spearman,
        n: pairs.len() as u64,
        bins_by: "acceptance length (ratio), quarters of the requests".to_owned(),
        median_of: "inter-token latency (ms)".to_owned(),
        bins: pairs.chunks(quarter).filter_map(bin).collect(),
    })
}

fn with_concurrency(samples: &[Sample]) -> Option<Relation> {
    let mut pairs: Vec<(f64, f64)> = samples
        .iter()
        .filter(|sample| sample.in_flight > 0)
        .filter_map(|sample| Some((f64::from(sample.in_flight), sample.length()?)))
        .collect();
    if pairs.len() < FEWEST_RELATED {
        return None;
    }
    pairs.sort_by(|left, right| left.0.total_cmp(&right.0).then(left.1.total_cmp(&right.1)));
    // Values of one power of two stand together.
    let bins = pairs.chunk_by(|left, right| left.0.log2().floor() == right.0.log2().floor());
    Some(Relation {
        with: RelatedTo::Concurrency,
        spearman: spearman(&pairs),
        n: pairs.len() as u64,
        bins_by: "exchanges in flight (count), powers of two".to_owned(),
        median_of: "acceptance length (ratio)".to_owned(),
        bins: bins.filter_map(bin).collect(),
    })
}

/// The bin of pairs that are sorted by their first value.
fn bin(pairs: &[(f64, f64)]) -> Option<RelationBin> {
    let mut values: Vec<f64> = pairs.iter().map(|pair| pair.1).collect();
    values.sort_by(f64::total_cmp);
    let (upper, lower) = (values.len() / 2, values.len().checked_sub(1)? / 2);
    Some(RelationBin {
        from: pairs.first()?.0,
        to: pairs.last()?.0,
        median: (values[lower] + values[upper]) / 2.0,
        n: pairs.len() as u64,
    })
}

/// Pearson's correlation of the ranks, equal values sharing their mean rank; absent where one side never varies.
pub fn spearman(pairs: &[(f64, f64)]) -> Option<f64> {
    let left = ranks(pairs.iter().map(|pair| pair.0));
    let right = ranks(pairs.iter().map(|pair| pair.1));
    // The mean of the ranks 0 to n − 1.
    let mean = (pairs.len() as f64 - 1.0) / 2.0;
    let (mut both, mut squares_left, mut squares_right) = (0.0, 0.0, 0.0);
    for (left, right) in left.iter().zip(&right) {
        let (left, right) = (left - mean, right - mean);
        both += left * right;
        squares_left += left * left;
        squares_right += right * right;
    }
    let spread = (squares_left * squares_right).sqrt();
    (spread > 0.0).then(|| both / spread)
}

fn ranks(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut placed: Vec<(f64, usize)> = values.zip(0..).collect();
    placed.sort_by(|left, right| left.0.total_cmp(&right.0));
    let mut ranks = vec![0.0; placed.len()];
    let mut first = 0;
    for equal in placed.chunk_by(|left, right| left.0 == right.0) {
        let rank = first as f64 + (equal.len() as f64 - 1.0) / 2.0;
        for &(_, place) in equal {
            ranks[place] = rank;
        }
        first += equal.len();
    }
    ranks
}

#[cfg(test)]
mod tests;
