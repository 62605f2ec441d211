//! Exemplars: for each bucket of a histogram the newest exchange that fell into it, so that a graph leads to a request.

use std::time::SystemTime;

use crate::observation::Observation;

/// An exchange that stands for a bucket.
#[derive(Clone, Debug, PartialEq)]
pub struct Exemplar {
    /// Id of the observation.
    pub observation_id: String,
    /// Id of the trace that the client's request belongs to, where it said so.
    pub trace_id: Option<String>,
    /// The value that fell into the bucket.
    pub value: f64,
    /// When the exchange was over.
    pub at: SystemTime,
}

/// One for each bucket that has had a value.
#[derive(Clone, Debug)]
pub struct Exemplars(Vec<Option<Exemplar>>);

impl Exemplars {
    /// None yet, for so many buckets.
    pub(super) fn new(buckets: usize) -> Self {
        Self(vec![None; buckets])
    }

    /// Takes the exchange for its bucket. The texts of the one before give their room.
    pub(super) fn note(&mut self, bucket: usize, value: f64, observation: &Observation) {
        let Some(slot) = self.0.get_mut(bucket) else {
            return;
        };
        let exemplar = slot.get_or_insert_with(|| Exemplar {
            observation_id: String::new(),
            trace_id: None,
            value,
            at: observation.ended_at,
        });
        exemplar.observation_id.clone_from(&observation.id);
        exemplar.trace_id.clone_from(&observation.trace_id);
        (exemplar.value, exemplar.at) = (value, observation.ended_at);
    }

    /// Keeps the newer of each bucket.
    pub(super) fn merge(&mut self, other: &Exemplars) {
        for (own, others) in self.0.iter_mut().zip(&other.0) {
            let is_newer = match (&own, others) {
                (Some(own), Some(other)) => other.at > own.at,
                (None, Some(_)) => true,
                (_, None) => false,
            };
            if is_newer {
                own.clone_from(others);
            }
        }
    }

    /// In the order of the buckets, the infinite one last.
    pub fn iter(&self) -> impl Iterator<Item = Option<&Exemplar>> {
        self.0.iter().map(Option::as_ref)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn exemplars(of: &[(usize, u64)]) -> Exemplars {
        let mut exemplars = Exemplars::new(3);
        for &(bucket, seconds) in of {
            exemplars.0[bucket] = Some(Exemplar {
                observation_id: format!("{bucket}-{seconds}"),
                trace_id: None,
                value: 0.0,
                at: SystemTime::UNIX_EPOCH + Duration::from_secs(seconds),
            });
        }
        exemplars
    }

    #[test]
    fn of_two_groups_the_newer_exchange_stays() {
        let mut merged = exemplars(&[(0, 5), (1, 5)]);
        merged.merge(&exemplars(&[(0, 4), (1, 6), (2, 1)]));
        let ids: Vec<&str> = merged
            .iter()
            .flatten()
            .map(|exemplar| exemplar.observation_id.as_str())
            .collect();
        assert_eq!(ids, ["0-5", "1-6", "2-1"]);
    }
}
