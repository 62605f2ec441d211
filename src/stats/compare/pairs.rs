//! Pairs: requests of two runs that carried the same prompt, told by what the client sent with them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::observation::{Acceptance, Observation};
use crate::record::AcceptanceHistogram;
use crate::stats::interval::Sample;

/// By what two requests are known to carry the same prompt.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    strum::EnumString,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
pub enum PairBy {
    /// The `X-Request-ID` that the client sent; one that occurs twice in a run pairs nothing.
    #[serde(rename = "x_request_id")]
    #[strum(serialize = "x_request_id")]
    XRequestId,
    /// The tag, and the place in the order in which the requests of that tag arrived.
    #[serde(rename = "tag-index")]
    #[strum(serialize = "tag-index")]
    TagIndex,
}

impl PairBy {
    /// The name in a flag and in JSON.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// How many requests of the `aiperf` view found a partner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pairing {
    /// By what.
    pub by: PairBy,
    /// Pairs.
    pub pairs: u64,
    /// Requests of the base without a partner, or with several.
    pub unpaired_base: u64,
    /// The same of the other run.
    pub unpaired_other: u64,
}

/// The pairs of two runs.
#[derive(Clone, Debug)]
pub struct Pairs {
    /// How many there are and how many are left.
    pub pairing: Pairing,
    pub(super) pairs: Vec<Pair>,
}

/// One prompt on both sides.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    pub(super) base: Request,
    pub(super) other: Request,
}

/// What is needed of a request.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) tag: Option<String>,
    pub(super) sample: Sample,
    pub(super) histogram: AcceptanceHistogram,
    pub(super) k: Option<u64>,
    pub(super) has_nominal_drafts: bool,
}

impl Pairs {
    /// Pairs the requests of two runs.
    pub fn find(by: PairBy, base: &[Observation], other: &[Observation]) -> Self {
        let pairable = |side| match by {
            PairBy::XRequestId => by_request_id(side),
            PairBy::TagIndex => by_place(side),
        };
        let of_other = pairable(other);
        let pairs: Vec<Pair> = pairable(base)
            .into_iter()
            .filter_map(|(mark, base)| {
                Some(Pair {
                    base: Request::of(base),
                    other: Request::of(of_other.get(&mark)?),
                })
            })
            .collect();
        let found = pairs.len() as u64;
        let left = |side: &[Observation]| {
            let all = side.iter().filter(|it| counts(it)).count() as u64;
            all.saturating_sub(found)
        };
        let pairing = Pairing {
            by,
            pairs: found,
            unpaired_base: left(base),
            unpaired_other: left(other),
        };
        Self { pairing, pairs }
    }
}

/// Whether a request is one of those that the figures of a run are made of.
fn counts(observation: &Observation) -> bool {
    observation.is_success() && observation.route.is_observed() && observation.is_in_aiperf_view()
}

/// What two requests have in common that carry the same prompt.
type Mark<'a> = (Option<&'a str>, usize);

fn by_request_id(side: &[Observation]) -> BTreeMap<Mark<'_>, &Observation> {
    let mut found: BTreeMap<Mark<'_>, Vec<&Observation>> = BTreeMap::new();
    for observation in side.iter().filter(|it| counts(it)) {
        if let Some(id) = observation.x_request_id.as_deref() {
            found.entry((Some(id), 0)).or_default().push(observation);
        }
    }
    found
        .into_iter()
        .filter_map(|(mark, with_it)| match with_it.as_slice() {
            [alone] => Some((mark, *alone)),
            _ => None,
        })
        .collect()
}

/// A request that failed keeps its place, or those behind it would all be held against other prompts.
fn by_place(side: &[Observation]) -> BTreeMap<Mark<'_>, &Observation> {
    let mut arrived: Vec<&Observation> = side.iter().collect();
    arrived.sort_by_key(|it| (it.started_at, &it.id));
    let mut places: BTreeMap<Option<&str>, usize> = BTreeMap::new();
    let mut found = BTreeMap::new();
    for observation in arrived {
        let tag = observation.tag.as_deref();
        let place = places.entry(tag).or_default();
        if counts(observation) {
            found.insert((tag, *place), observation);
        }
        *place += 1;
    }
    found
}

impl Request {
    fn of(observation: &Observation) -> Self {
        let record = match (observation.acceptance, &*observation.spec_decode_acceptance) {
            (Some(Acceptance::Recorded | Acceptance::ZeroStep), [record]) => Some(record),
            _ => None,
        };
        let drafting = record.filter(|record| !record.is_zero_step());
        Self {
            tag: observation.tag.clone(),
            sample: Sample::of(observation, record),
            histogram: drafting
                .map(|record| record.acceptance_histogram.clone())
                .unwrap_or_default(),
            k: drafting.and_then(|record| record.num_spec_tokens),
            has_nominal_drafts: drafting.is_some_and(|record| record.nominal_drafts),
        }
    }
}

#[cfg(test)]
mod tests;
