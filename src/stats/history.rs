//! The history of a window: sums over the exchanges that ended in each stretch of it, and in the window before it.
//!
//! It is counted from the newest exchanges themselves, so it costs nothing until somebody asks; kept up to date, it looks
//! only at the buckets that may have changed since.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::gain::Output;
use super::log::Head;
use super::moment::{Moment, Period};
use super::pooled::{Pooled, grow};
use super::prepared::Prepared;
use super::window::{BUCKET, Window};
use super::{GroupKey, Statistics, row};
use crate::observation::Acceptance;
use crate::record::AcceptanceHistogram;

const SECOND: i64 = 1_000_000_000;

/// How far back the history of [`Window::All`] reaches.
const LONGEST: i64 = 24 * 3_600 * SECOND;

/// Stretches that a history of [`Window::All`] has at most.
const MOST_STRETCHES: i64 = 120;

/// What may still be counted in a bucket that is over: an exchange is counted a moment after it ended.
const LATE: i64 = 5 * SECOND;

/// Sums over the exchanges of one stretch; all but `exchanges` and `told` are of the `aiperf` view.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sums {
    /// Exchanges on observed routes with a 2xx status.
    pub exchanges: u64,
    /// Recorded and zero-step ones among them.
    pub told: u64,
    /// Records.
    pub n: u64,
    /// Σ verify steps.
    pub steps: u64,
    /// Σ accepted drafts of the records with steps.
    pub accepted_in_steps: u64,
    /// Σ accepted drafts.
    pub accepted: u64,
    /// Σ drafts.
    pub drafted: u64,
    /// Σ completion tokens of the records that tell them and their steps.
    pub completion_tokens: u64,
    /// Σ accepted drafts of the same records.
    pub accepted_in_output: u64,
    /// Steps by number of accepted drafts; no zero buckets.
    pub histogram: AcceptanceHistogram,
}

/// The history of a window as it is shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shown {
    /// Which window.
    pub window: Window,
    /// The window's edges; for all traffic the last 24 hours at most. The start comes later where exchanges that old
    /// are no longer kept.
    #[serde(flatten)]
    pub period: Period,
    /// Length of a stretch in seconds; stretches begin at multiples of it.
    pub step_seconds: i64,
    /// Sums over the window before; null for all traffic, and where that is no longer kept whole.
    pub before: Option<Sums>,
    /// Sums by stretch, named by the second since 1970 at which it begins; those without exchanges are left out.
    pub stretches: BTreeMap<i64, Sums>,
}

/// A history that can be brought up to date.
#[derive(Debug)]
pub struct History {
    window: Window,
    run: Option<String>,
    /// By the number of the bucket.
    buckets: BTreeMap<i64, Sums>,
    /// When it was last counted.
    counted: Option<i64>,
    /// The window, and before it the one before.
    kept: Range<i64>,
    /// The latest end among the exchanges that were gone before they were counted.
    missed_until: Option<i64>,
}

impl History {
    /// The history of a window and of one run or all, nothing counted yet.
    pub fn new(window: Window, run: Option<String>) -> Self {
        Self {
            window,
            run,
            buckets: BTreeMap::new(),
            counted: None,
            kept: 0..0,
            missed_until: None,
        }
    }

    /// Counts what came since the last time, of the groups for which `wanted` says so.
    pub fn update(&mut self, statistics: &Statistics, wanted: impl Fn(&GroupKey) -> bool) {
        let now = row::nanoseconds(statistics.clock.now());
        let end = end_of_bucket(now);
        let start = end.saturating_sub(match self.length() {
            Some(length) => 2 * length,
            None => LONGEST,
        });
        // A clock that was set back counts everything anew.
        let from = self.counted.filter(|&counted| counted <= now);
        let from = from.map_or(start, |counted| bucket_at(counted - LATE) * BUCKET);
        let from = from.max(start);
        let (rows, keys, run, gone_until) = {
            let state = statistics.shared.state();
            (
                state.log.rows(from..i64::MAX),
                state.keys.clone(),
                self.run.as_ref().map(|name| state.run(name)),
                state.log.gone_until(),
            )
        };
        let _counted_anew = self.buckets.split_off(&bucket_at(from));
        self.buckets = self.buckets.split_off(&bucket_at(start));
        let is_asked = |head: &Head| {
            run.is_none_or(|run| run.is_some() && run == head.run)
                && keys.get(head.group).is_some_and(&wanted)
        };
        rows.each(&keys, is_asked, |head, observation| {
            let sums = self.buckets.entry(bucket_at(head.ended)).or_default();
            sums.add(&Prepared::new(&observation));
        });
        self.counted = Some(now);
        self.kept = start..end;
        // What left the log later was counted while it was there.
        let missed = gone_until.filter(|&gone| gone >= from);
        self.missed_until = missed.or(self.missed_until);
    }

    /// What was counted.
    pub fn shown(&self) -> Shown {
        let Range { start, end } = self.kept;
        let middle = self.length().map_or(start, |length| end - length);
        // Within the buckets from here on nothing is missing.
        let whole_from = self.missed_until.map_or(i64::MIN, end_of_bucket);
        let before = (self.window != Window::All && whole_from <= start).then(|| {
            let mut sums = Sums::default();
            let buckets = bucket_at(start)..bucket_at(middle);
            let buckets = self.buckets.range(buckets);
            buckets.for_each(|(_, bucket)| sums.merge(bucket));
            sums
        });
        let from = middle.max(whole_from).min(end);
        let first = self.buckets.range(bucket_at(from)..).next();
        let first = first.map_or(end, |(bucket, _)| bucket * BUCKET);
        let step = self.step(end - first);
        let mut stretches = BTreeMap::<i64, Sums>::new();
        for (bucket, sums) in self.buckets.range(bucket_at(from)..) {
            let begins = (bucket * BUCKET / SECOND).div_euclid(step) * step;
            stretches.entry(begins).or_default().merge(sums);
        }
        let moment = |time| Some(Moment(row::time_of(time)));
        Shown {
            window: self.window,
            period: Period {
                from: moment(if self.window == Window::All {
                    first
                } else {
                    from
                }),
                to: moment(end),
            },
            step_seconds: step,
            before,
            stretches,
        }
    }

    /// Nanoseconds of the window.
    fn length(&self) -> Option<i64> {
        let edges = self.window.edges(0, None)?;
        Some(edges.end - edges.start)
    }

    /// Seconds of a stretch, so that there are few enough to be looked at.
    fn step(&self, length: i64) -> i64 {
        match self.window {
            Window::Minute | Window::FiveMinutes => 5,
            Window::Quarter => 15,
            Window::Hour => 60,
            Window::All => [5, 15, 60, 300, 900]
                .into_iter()
                .find(|step| length <= step * SECOND * MOST_STRETCHES)
                .unwrap_or(900),
        }
    }
}

impl Sums {
    fn add(&mut self, exchange: &Prepared<'_>) {
        grow(&mut self.exchanges, 1);
        let is_told = matches!(
            exchange.acceptance,
            Acceptance::Recorded | Acceptance::ZeroStep
        );
        grow(&mut self.told, u64::from(is_told));
        if !exchange.is_sample {
            return;
        }
        let (mut pooled, mut output) = (Pooled::default(), Output::default());
        for prepared in &exchange.records {
            pooled.add(prepared.record);
            output.add(prepared.record);
        }
        self.merge(&Self {
            exchanges: 0,
            told: 0,
            n: pooled.records,
            steps: pooled.steps,
            accepted_in_steps: pooled.accepted_in_steps,
            accepted: pooled.accepted,
            drafted: pooled.drafted,
            completion_tokens: output.completion_tokens,
            accepted_in_output: output.accepted,
            histogram: pooled.histogram,
        });
    }

    fn merge(&mut self, other: &Sums) {
        grow(&mut self.exchanges, other.exchanges);
        grow(&mut self.told, other.told);
        grow(&mut self.n, other.n);
        grow(&mut self.steps, other.steps);
        grow(&mut self.accepted_in_steps, other.accepted_in_steps);
        grow(&mut self.accepted, other.accepted);
        grow(&mut self.drafted, other.drafted);
        grow(&mut self.completion_tokens, other.completion_tokens);
        grow(&mut self.accepted_in_output, other.accepted_in_output);
        for (&accepted, &steps) in &other.histogram {
            grow(self.histogram.entry(accepted).or_default(), steps);
        }
    }
}

fn bucket_at(time: i64) -> i64 {
    time.div_euclid(BUCKET)
}

fn end_of_bucket(time: i64) -> i64 {
    bucket_at(time).saturating_add(1).saturating_mul(BUCKET)
}

#[cfg(test)]
mod tests;
