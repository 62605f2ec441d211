//! Where the lengths come from: which of the observed depths, and whether its steps are known in order.

use super::draws::Draws;
use super::recut::recut;
use super::{
    Advice, Basis, DEEPEST, Depth, FEWEST_STEPS, LEAST_OF_ONE_WIDTH, Obstacle, Range,
    StretchesOfWidth,
};
use crate::record::AcceptanceHistogram;
use crate::stats::evidence::Evidence;
use crate::stats::interval::FEW_REQUESTS;
use crate::stats::pooled::{Pooled, steps_in};

/// The steps that an advice is made from.
pub(super) struct Source<'a> {
    k: u32,
    n: u64,
    steps: u64,
    histogram: AcceptanceHistogram,
    ordered: Option<&'a StretchesOfWidth>,
    /// Requests that ran at other depths.
    others: u64,
}

impl<'a> Source<'a> {
    /// The steps at the deepest depth that has enough of them.
    pub(super) fn of(pooled: &Pooled, evidence: &'a Evidence) -> Result<Self, Obstacle> {
        if pooled.steps == 0 || pooled.histogram.is_empty() {
            return Err(Obstacle::NoSteps);
        }
        if evidence.tree_records > 0 {
            return Err(Obstacle::Tree);
        }
        if pooled.records_with_steps < FEW_REQUESTS || pooled.steps < FEWEST_STEPS {
            return Err(Obstacle::TooFew);
        }
        // Steps that carried fewer drafts than their record's k, or nobody knows how many.
        let narrow = evidence.stretches.by_k.values().map(|it| it.narrow);
        let unknown = pooled.steps.saturating_sub(evidence.widths.known());
        let uneven = narrow.fold(unknown, u64::saturating_add);
        if uneven as f64 > (1.0 - LEAST_OF_ONE_WIDTH) * pooled.steps as f64 {
            return Err(Obstacle::Widths);
        }
        let widths = evidence.widths.steps.iter().rev();
        let mut too_deep = false;
        for (&k, histogram) in widths {
            let steps = steps_in(histogram, ..);
            if records_at(evidence, k) < FEW_REQUESTS || steps < FEWEST_STEPS {
                continue;
            }
            match k {
                0 | 1 => return Err(Obstacle::NoSmallerDepth),
                _ if u64::from(k) > DEEPEST => too_deep = true,
                _ => return Ok(Self::at(k, histogram, pooled, evidence)),
            }
        }
        Err(if too_deep {
            Obstacle::TooDeep
        } else {
            Obstacle::Widths
        })
    }

    fn at(
        k: u32,
        histogram: &AcceptanceHistogram,
        pooled: &Pooled,
        evidence: &'a Evidence,
    ) -> Self {
        let records = records_at(evidence, k);
        let others = pooled.records_with_steps.saturating_sub(records);
        let ordered = evidence.stretches.by_k.get(&k).filter(|stretches| {
            let wide = stretches.steps.saturating_sub(stretches.narrow) as f64;
            stretches.records >= FEW_REQUESTS
                && stretches.steps >= FEWEST_STEPS
                && wide >= LEAST_OF_ONE_WIDTH * stretches.steps as f64
        });
        match ordered {
            Some(stretches) => Self {
                k,
                n: stretches.records,
                steps: stretches.steps,
                histogram: stretches.histogram(k),
                ordered,
                others,
            },
            None => Self {
                k,
                n: records,
                steps: steps_in(histogram, ..),
                histogram: histogram.clone(),
                ordered,
                others,
            },
        }
    }

    /// The advice without any cost of the drafts.
    pub(super) fn advice(&self, evidence: &Evidence) -> Advice {
        let (k, steps, n) = (self.k, self.steps, self.n);
        let (basis, mut text) = if self.ordered.is_some() {
            (
                Basis::OrderedSteps,
                format!(
                    "Estimate from {steps} ordered steps of {n} requests at k = {k}: from the truncated histogram, which \
                     reads low, to the steps re-cut at the smaller depth."
                ),
            )
        } else {
            (
                Basis::Histogram,
                format!(
                    "Estimate from the histogram of {steps} steps of {n} requests at k = {k}, likely pessimistic at smaller \
                     depths: the order of the steps is unknown (vLLM sends it with --per-request-spec-decode-metrics \
                     detailed)."
                ),
            )
        };
        if self.others > 0 {
            text.push_str(&format!(
                " {} requests that ran at other depths are left out.",
                self.others
            ));
        }
        Advice {
            basis: Some(basis),
            k: Some(k),
            n,
            steps,
            depths: (1..=k).map(|depth| self.depth(depth)).collect(),
            draws: Draws::of(&evidence.samples, k, self.ordered, n),
            text,
            ..Advice::default()
        }
    }

    fn depth(&self, depth: u32) -> Depth {
        let truncated = truncated_length(&self.histogram, depth);
        let observed = depth == self.k;
        let length = match self.ordered {
            _ if observed => Range::between(truncated, truncated),
            Some(stretches) => Range::between(truncated, recut(self.k, stretches, depth).length()),
            None => Range {
                low: truncated,
                high: None,
            },
        };
        let drafts = f64::from(depth);
        Depth {
            depth,
            length,
            drafted_per_token: length.map(|length| drafts / length),
            wasted_per_token: length.map(|length| (drafts + 1.0 - length) / length),
            speed_up: None,
            estimate: !observed,
        }
    }
}

/// Records at a depth, by what they say or by the widest of their steps.
fn records_at(evidence: &Evidence, k: u32) -> u64 {
    let by_k = evidence.records_by_k.get(&u64::from(k)).copied();
    let ordered = evidence.stretches.by_k.get(&k).map(|it| it.records);
    by_k.unwrap_or(0).max(ordered.unwrap_or(0))
}

/// 1 + the mean of min(accepted, depth).
fn truncated_length(histogram: &AcceptanceHistogram, depth: u32) -> f64 {
    let (mut steps, mut accepted) = (0.0, 0.0);
    for (&bucket, &count) in histogram {
        steps += count as f64;
        accepted += f64::from(bucket.min(depth)) * count as f64;
    }
    1.0 + accepted / steps
}
