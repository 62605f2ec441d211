//! The bound on `/metrics`: label sets keep a name of their own as long as the series budget lasts, in the order in
//! which they were first seen; later ones count as `other`, for good, so that no series ever goes back.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use super::series::Labels;
use crate::stats::OTHER;

/// Series beside those of the statistics: the tap's own counters, the process's, and the engine's own counters.
const RESERVED: usize = 550;

/// Series that one model can take: its counters and all its histograms.
const OF_MODEL: usize = 240;

/// Series that one tag of a model can take: its counters and the histogram per step.
const OF_TAG: usize = 80;

/// Series that one value of the facet can take: the counters of a tag.
const OF_FACET: usize = 60;

/// Decides which label sets are shown under their own names.
#[derive(Debug)]
pub(super) struct Budget {
    series: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    spent: usize,
    admitted: BTreeSet<Labels>,
    folded: BTreeSet<Labels>,
}

/// Most folded label sets that are remembered for the count.
const MOST_REMEMBERED: usize = 10_000;

impl Budget {
    /// A budget of `series` for all of `/metrics`.
    pub(super) fn new(series: usize) -> Self {
        Self {
            series: series.saturating_sub(RESERVED),
            state: Mutex::default(),
        }
    }

    /// The label set under which a group is shown: its own, or `other`.
    pub(super) fn admit(&self, labels: Labels) -> Labels {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.admit(labels, self.series)
    }

    /// Label sets that count as `other`.
    pub(super) fn folded(&self) -> usize {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.folded.len()
    }
}

impl State {
    fn admit(&mut self, labels: Labels, series: usize) -> Labels {
        // What has no name to fold is shown in any case; there are as many of them as engines.
        let is_folded =
            labels.model_name == OTHER && labels.facet.is_none_or(|(_, value)| value == OTHER);
        if is_folded || self.admitted.contains(&labels) {
            return labels;
        }
        let cost = match (&labels.facet, &labels.tag) {
            (Some(_), _) => OF_FACET,
            (None, Some(_)) => OF_TAG,
            (None, None) => OF_MODEL,
        };
        if !self.folded.contains(&labels) && self.spent + cost <= series {
            self.spent += cost;
            self.admitted.insert(labels.clone());
            return labels;
        }
        let other = Labels {
            model_name: OTHER.to_owned(),
            tag: labels.tag.as_ref().map(|_| OTHER.to_owned()),
            facet: labels.facet.map(|(name, _)| (name, OTHER)),
            ..labels.clone()
        };
        if self.folded.len() < MOST_REMEMBERED {
            self.folded.insert(labels);
        }
        other
    }
}
