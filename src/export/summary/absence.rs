//! Findings about what is missing: why replies carry no numbers, and how much of the engine's work no record holds.

use std::time::Duration;

use crate::export::table;
use crate::observation::Acceptance;
use crate::scrape::Coverage;
use crate::stats::relation::spearman;
use crate::stats::{Finding, Group};

/// Traffic is watched for so long before anything is said: at the start there may be a few requests of one kind.
const LONG_ENOUGH: Duration = Duration::from_secs(60);

/// Exchanges without numbers for one reason are told from this share on.
const WORTH_TELLING: f64 = 0.01;

/// Requests on either side from which on a connection with the load is looked for.
const FEWEST_ON_A_SIDE: usize = 10;

/// Rank correlation from which on absence is said to rise with the load.
const RISES: f64 = 0.3;

/// The share without numbers must differ by so much between the busier and the less busy half.
const HALVES_APART: f64 = 0.2;

/// Requests that are looked at.
const MOST_SAMPLES: usize = 10_000;

/// What there is to say about a group.
pub(super) fn of(group: &Group) -> Vec<Finding> {
    let lasted = group
        .period
        .from
        .zip(group.period.to)
        .and_then(|(from, to)| to.0.duration_since(from.0).ok());
    if lasted.is_none_or(|lasted| lasted < LONG_ENOUGH) {
        return Vec::new();
    }
    let mut findings = reasons(group);
    findings.extend(rises_with_load(group));
    findings
}

fn reasons(group: &Group) -> Vec<Finding> {
    let all: u64 = group.exchanges.values().sum();
    let missing = [Acceptance::Absent, Acceptance::Unobserved];
    let reasons = missing.iter().filter_map(|kind| group.reasons.get(kind));
    let mut reasons: Vec<_> = reasons
        .flatten()
        .filter(|&(_, &count)| count as f64 >= WORTH_TELLING * all as f64)
        .collect();
    reasons.sort_by_key(|&(reason, count)| (std::cmp::Reverse(count), reason));
    let finding = |(reason, &n): (&crate::observation::Reason, &u64)| Finding {
        code: "numbers_missing".to_owned(),
        n,
        text: format!(
            "{n} of {all} exchanges carried no numbers ({}): {}.",
            reason.as_str(),
            table::advice(*reason)
        ),
    };
    reasons.into_iter().map(finding).collect()
}

/// TensorRT-LLM switches drafting off under load, above `max_concurrency` and by `draft_len_schedule`.
fn rises_with_load(group: &Group) -> Option<Finding> {
    // A request for which speculation never ran has numbers, but no record in the samples.
    if group.exchanges.contains_key(&Acceptance::ZeroStep) {
        return None;
    }
    let samples = group
        .evidence
        .samples
        .first(MOST_SAMPLES, |it| it.in_flight > 0);
    let mut pairs: Vec<(f64, f64)> = samples
        .iter()
        .map(|it| {
            (
                f64::from(it.in_flight),
                f64::from(u8::from(!it.has_record())),
            )
        })
        .collect();
    let missing = pairs.iter().filter(|pair| pair.1 > 0.0).count();
    if missing < FEWEST_ON_A_SIDE || pairs.len() - missing < FEWEST_ON_A_SIDE {
        return None;
    }
    pairs.sort_by(|one, other| one.0.total_cmp(&other.0));
    // Equal load stands on one side.
    let middle = pairs[pairs.len() / 2].0;
    let split = pairs.partition_point(|pair| pair.0 < middle);
    let (calm, busy) = pairs.split_at(split);
    let share = |part: &[(f64, f64)]| {
        let missing = part.iter().filter(|pair| pair.1 > 0.0).count();
        missing as f64 / part.len().max(1) as f64
    };
    let (calm_share, busy_share) = (share(calm), share(busy));
    let rises = spearman(&pairs).is_some_and(|correlation| correlation >= RISES);
    (rises && !calm.is_empty() && busy_share - calm_share >= HALVES_APART).then(|| Finding {
        code: "missing_under_load".to_owned(),
        n: missing as u64,
        text: format!(
            "Numbers are missing the more often the more requests are under way: with {middle:.0} or more {:.0} % of the requests \
             carried none, with fewer {:.0} %. TensorRT-LLM switches drafting off above speculative_config.max_concurrency and \
             above the largest batch of draft_len_schedule, and says nothing of such requests.",
            busy_share * 100.0,
            calm_share * 100.0
        ),
    })
}

/// What there is to say about coverage.
pub(super) fn of_coverage(coverage: &Coverage) -> Option<Finding> {
    let ratio = coverage.ratio()?;
    let share = coverage.steps.or(coverage.accepted)?;
    // Without a settled moment the requests under way count as a gap, which may be all of it.
    (coverage.settled && ratio < table::LOW_COVERAGE).then(|| Finding {
        code: "low_coverage".to_owned(),
        n: share.moved.saturating_sub(share.seen),
        text: table::coverage(coverage),
    })
}

#[cfg(test)]
mod tests;
