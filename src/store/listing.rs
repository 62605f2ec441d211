//! Listing what the ring keeps: filters, order, and paging that stays true while new observations arrive.
//!
//! A page ends with the id of its last observation, and the next page begins after that one, so an observation is
//! never listed twice and never skipped, however many arrive in between.

use std::cmp::Ordering;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use crate::observation::{Acceptance, Observation, Outcome};

use super::ring::ObservationRing;

/// The order of a listing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Sort {
    /// The exchange that ended last comes first.
    #[default]
    Newest,
    /// The longest request latency comes first; those without one last.
    Latency,
    /// The shortest acceptance length (1 + accepted / steps over the exchange's records) comes first, since these are
    /// the ones to look at; those without one last.
    Length,
}

/// What to list.
#[derive(Clone, Debug, Default)]
pub struct ListQuery {
    /// Most observations on the page; [`ListQuery::DEFAULT_LIMIT`] when absent, and held within 1 to
    /// [`ListQuery::LARGEST_LIMIT`].
    pub limit: Option<usize>,
    /// Id of the observation after which the page begins.
    pub after: Option<String>,
    /// Only this model.
    pub model: Option<String>,
    /// Only this tag.
    pub tag: Option<String>,
    /// Only this outcome.
    pub outcome: Option<Outcome>,
    /// Only this acceptance.
    pub acceptance: Option<Acceptance>,
    /// The order.
    pub sort: Sort,
}

/// One page of a listing, as `/api/v1/requests` gives it.
#[derive(Clone, Debug, Serialize)]
pub struct Page {
    /// The observations, in the order asked for.
    #[serde(serialize_with = "each")]
    pub requests: Vec<Arc<Observation>>,
    /// What to give as `after` for the next page; null on the last.
    pub next: Option<String>,
    /// Observations that were kept once and are gone.
    pub dropped: u64,
    /// Observations that lost their per-step arrays to the bound on memory.
    pub per_step_dropped: u64,
}

/// The observation that a sorted page should begin after is no longer kept, so its place can't be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the observation named by 'after' is no longer kept; list again without 'after'")]
pub struct StaleCursor;

fn each<S: Serializer>(
    observations: &[Arc<Observation>],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(observations.iter().map(Arc::as_ref))
}

type Placed = (u64, Arc<Observation>);

impl ListQuery {
    /// Observations on a page when no limit is given.
    pub const DEFAULT_LIMIT: usize = 100;
    /// Most observations on a page.
    pub const LARGEST_LIMIT: usize = 1000;

    fn matches(&self, observation: &Observation) -> bool {
        let is = |wanted: &Option<String>, value: &Option<String>| {
            wanted.is_none() || wanted.as_deref() == value.as_deref()
        };
        is(&self.model, &observation.model)
            && is(&self.tag, &observation.tag)
            && self.outcome.is_none_or(|it| it == observation.outcome)
            && self
                .acceptance
                .is_none_or(|it| Some(it) == observation.acceptance)
    }
}

impl ObservationRing {
    /// One page of what is kept.
    ///
    /// # Errors
    ///
    /// [`StaleCursor`] when `after` is gone and the order is not [`Sort::Newest`] (in that order nothing follows an
    /// observation that is gone, and the page is empty).
    pub fn list(&self, query: &ListQuery) -> Result<Page, StaleCursor> {
        let limit = query
            .limit
            .unwrap_or(ListQuery::DEFAULT_LIMIT)
            .clamp(1, ListQuery::LARGEST_LIMIT);
        // One more than the page holds tells whether there is a next one.
        let mut found = match query.sort {
            Sort::Newest => self.newest(query, limit + 1),
            sort => self.sorted(query, sort)?,
        };
        let more = found.len() > limit;
        found.truncate(limit);
        let requests: Vec<_> = found
            .into_iter()
            .map(|(_, observation)| observation)
            .collect();
        Ok(Page {
            next: requests
                .last()
                .filter(|_| more)
                .map(|observation| observation.id.clone()),
            requests,
            dropped: self.dropped(),
            per_step_dropped: self.per_step_dropped(),
        })
    }

    fn newest(&self, query: &ListQuery, most: usize) -> Vec<Placed> {
        // Nothing comes before place 0, and nothing follows an observation that is gone.
        let before = query.after.as_ref().map(|id| self.place(id).unwrap_or(0));
        self.newest_first(before)
            .filter(|(_, observation)| query.matches(observation))
            .take(most)
            .collect()
    }

    fn sorted(&self, query: &ListQuery, sort: Sort) -> Result<Vec<Placed>, StaleCursor> {
        let mut all: Vec<Placed> = self
            .newest_first(None)
            .filter(|(_, observation)| query.matches(observation))
            .collect();
        all.sort_by(|left, right| order(sort, left, right));
        if let Some(id) = &query.after {
            let place = self.place(id).ok_or(StaleCursor)?;
            let cursor = (place, self.get(id).ok_or(StaleCursor)?);
            all.retain(|placed| order(sort, placed, &cursor) == Ordering::Greater);
        }
        Ok(all)
    }

    /// Everything before a place, fetched a chunk at a time.
    fn newest_first(&self, before: Option<u64>) -> impl Iterator<Item = Placed> {
        let mut before = before;
        std::iter::from_fn(move || {
            let chunk = self.chunk_before(before);
            before = Some(chunk.last()?.0);
            Some(chunk)
        })
        .flatten()
    }
}

/// Orders two observations; never equal for two different ones, so that a page has one clear end.
fn order(sort: Sort, left: &Placed, right: &Placed) -> Ordering {
    let latency = |placed: &Placed| placed.1.timing.request_latency_ms;
    let by_value = match sort {
        Sort::Newest => Ordering::Equal,
        Sort::Latency => absent_last(latency(left), latency(right), |left, right| {
            right.total_cmp(&left)
        }),
        Sort::Length => absent_last(length(&left.1), length(&right.1), |left, right| {
            left.total_cmp(&right)
        }),
    };
    by_value.then_with(|| right.0.cmp(&left.0))
}

fn absent_last(
    left: Option<f64>,
    right: Option<f64>,
    order: impl Fn(f64, f64) -> Ordering,
) -> Ordering {
    match (left, right) {
        (Some(left), Some(right)) => order(left, right),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    }
}

/// Acceptance length over the steps of all records of an exchange.
fn length(observation: &Observation) -> Option<f64> {
    let (mut accepted, mut steps) = (0.0, 0.0);
    for record in &observation.spec_decode_acceptance {
        if let Some(n) = record.num_spec_steps {
            accepted += record.num_accepted_draft_tokens as f64;
            steps += n as f64;
        }
    }
    (steps > 0.0).then(|| 1.0 + accepted / steps)
}
