//! Findings: sentences about what a person should know, each with its evidence and a threshold.

use serde::{Deserialize, Serialize};

use super::group::Group;
use super::interval::FEW_REQUESTS;
use super::past::Fall;
use super::survival::{self, Survival};
use crate::observation::{Acceptance, Reason};

/// Speculation is said to fire seldom when at least this share of the requests with a payload had no step.
pub const ZERO_STEP_SHARE: f64 = 0.10;

/// A position is said to be hardly accepted below this share of the steps that drafted it.
pub const HARDLY_ACCEPTED: f64 = 0.05;

/// A position is judged by at least so many steps.
pub const FEWEST_STEPS: u64 = 1_000;

/// The share of exchanges with numbers is said to be low below this.
pub const LOW_RECORD_SHARE: f64 = 0.90;

/// Something a person should know about the figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Short fixed name.
    pub code: String,
    /// How many records or exchanges it is about.
    pub n: u64,
    /// One sentence.
    pub text: String,
}

impl Finding {
    fn new(code: &str, n: u64, text: String) -> Self {
        Self {
            code: code.to_owned(),
            n,
            text,
        }
    }
}

/// What there is to say about a group.
pub fn of(group: &Group) -> Vec<Finding> {
    [
        contradictions(group),
        malformed(group),
        low_record_share(group),
        seldom_fires(group),
        deep_position(group),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A model's length that fell.
pub(super) fn of_fall(model: Option<&str>, fall: &Fall) -> Finding {
    let ((recent, n_recent), (past, n_past)) = (fall.recent, fall.past);
    let text = format!(
        "The acceptance length of {} fell: {recent:.2} over the last five minutes (n = {n_recent}) against {past:.2} over the \
         hour before (n = {n_past}), a difference of {:.2} ({:.1} % interval {:.2} to {:.2}).",
        model.unwrap_or("an unknown model"),
        recent - past,
        fall.interval.level * 100.0,
        fall.interval.low,
        fall.interval.high
    );
    Finding::new("length_fell", n_recent, text)
}

fn contradictions(group: &Group) -> Option<Finding> {
    let n = group.contradictions;
    let records = [&group.aiperf, &group.rest].map(|view| view.pooled.records);
    let records = records[0].saturating_add(records[1]);
    (n > 0).then(|| {
        let text = format!(
            "The engine sent a mean length or a rate that contradicts its own counts in {n} of {records} records; \
             the values of the counts are used."
        );
        Finding::new("mean_or_rate", n, text)
    })
}

fn exchanges(group: &Group, acceptance: &[Acceptance]) -> u64 {
    let of = |it| group.exchanges.get(it).copied().unwrap_or(0);
    acceptance
        .iter()
        .fold(0, |sum, it| sum.saturating_add(of(it)))
}

fn all_exchanges(group: &Group) -> u64 {
    let counts = group.exchanges.values();
    counts.fold(0, |sum: u64, &count| sum.saturating_add(count))
}

fn malformed(group: &Group) -> Option<Finding> {
    let kinds = [Acceptance::Malformed, Acceptance::Ambiguous];
    let n = exchanges(group, &kinds);
    if n == 0 {
        return None;
    }
    let mut reasons: Vec<(&Reason, &u64)> = kinds
        .iter()
        .filter_map(|kind| group.reasons.get(kind))
        .flatten()
        .collect();
    reasons.sort_by_key(|&(reason, count)| (std::cmp::Reverse(count), reason));
    let reasons: Vec<String> = reasons
        .iter()
        .map(|(reason, count)| format!("{} {count}", reason.as_str()))
        .collect();
    let text = format!(
        "{n} of {} responses carried numbers that contradict themselves or can't be told apart ({}); they count nowhere.",
        all_exchanges(group),
        reasons.join(", ")
    );
    Some(Finding::new("bad_payload", n, text))
}

fn low_record_share(group: &Group) -> Option<Finding> {
    let all = all_exchanges(group);
    let with_numbers = exchanges(group, &[Acceptance::Recorded, Acceptance::ZeroStep]);
    // Without a single record the table's own sentence says why.
    if all < FEW_REQUESTS || with_numbers == 0 {
        return None;
    }
    let share = with_numbers as f64 / all as f64;
    (share < LOW_RECORD_SHARE).then(|| {
        let without = all - with_numbers.min(all);
        let text = format!(
            "Only {:.1} % of {all} exchanges carried acceptance numbers: the figures are of these.",
            share * 100.0
        );
        Finding::new("low_record_share", without, text)
    })
}

fn seldom_fires(group: &Group) -> Option<Finding> {
    let pooled = &group.aiperf.pooled;
    let (zero_step, all) = (
        pooled.zero_step,
        pooled.records.saturating_add(pooled.zero_step),
    );
    if all < FEW_REQUESTS {
        return None;
    }
    let share = zero_step as f64 / all as f64;
    (share >= ZERO_STEP_SHARE).then(|| {
        let text = format!(
            "Speculation never fired on {:.1} % of {all} requests; they are in no mean.",
            share * 100.0
        );
        Finding::new("seldom_fires", zero_step, text)
    })
}

fn deep_position(group: &Group) -> Option<Finding> {
    let curve = survival::curve(&group.aiperf.pooled.histogram, &group.evidence.widths);
    let hardly = |point: &&Survival| {
        // Of a lower bound a low share proves nothing.
        !point.lower_bound && point.n >= FEWEST_STEPS && point.share < HARDLY_ACCEPTED
    };
    let first = curve.iter().find(hardly)?;
    let text = format!(
        "The draft at position {} (counted from 0) is accepted in only {:.1} % of {} steps that drafted it; \
         drafts so deep are nearly all wasted.",
        first.position,
        first.share * 100.0,
        first.n
    );
    Some(Finding::new("deep_position", first.n, text))
}

#[cfg(test)]
mod tests;
