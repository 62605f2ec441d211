//! What engine and tap had counted at moments in the past, so that a window and a run can be told.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::scraper::TapSums;
use super::totals::BySource;

/// How far back the longest window reaches, and a little more.
const KEPT_FOR: Duration = Duration::from_secs(3_600 + 60);

/// Marks closer together than this are thinned out: windows move in steps of it.
const SPACING: Duration = Duration::from_secs(5);

/// Marks that are kept in any case at most.
const MOST_MARKS: usize = 2_000;

/// Runs that are kept, as many as the tap keeps.
const MOST_RUNS: usize = 100;

/// An engine publishes what it counted a little late: its counters must stand still for so long.
const STILL_FOR: Duration = Duration::from_secs(1);

/// Where they don't, since others use the engine too, so long without traffic of its own is enough.
const QUIET_FOR: Duration = Duration::from_secs(5);

/// Which stretch of time is asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stretch {
    /// Since the first reading.
    All,
    /// From then on.
    Since(SystemTime),
    /// A run of the tap, by its name.
    Run(String),
}

/// One moment.
#[derive(Clone, Debug)]
pub(super) struct Mark {
    pub(super) at: SystemTime,
    /// What the engine's counters moved by since they were first read.
    pub(super) moved: Arc<BySource>,
    pub(super) resets: u64,
    pub(super) tap: Arc<TapSums>,
    /// No exchange was under way at the tap, and the engine had published all that came before: what both have counted is
    /// of the same requests.
    pub(super) is_settled: bool,
    /// Since when nothing happened at the tap.
    quiet_since: Option<SystemTime>,
    /// Since when the engine's counters did not move either.
    still_since: Option<SystemTime>,
}

/// The moments, oldest first.
#[derive(Debug, Default)]
pub(super) struct Marks {
    first: Option<Mark>,
    recent: VecDeque<Mark>,
    /// The last moment before each run began.
    runs: VecDeque<(Arc<str>, Mark)>,
}

impl Marks {
    /// Adds a moment. `was_quiet`: nothing was under way at the tap while the page was read.
    pub(super) fn add(
        &mut self,
        at: SystemTime,
        moved: &Arc<BySource>,
        resets: u64,
        tap: TapSums,
        was_quiet: bool,
    ) {
        let last = self.recent.back();
        let was_quiet_before = last.is_some_and(|last| {
            was_quiet && last.quiet_since.is_some() && last.tap.is_same_traffic(&tap)
        });
        let now = was_quiet.then_some(at);
        let quiet_since = last
            .filter(|_| was_quiet_before)
            .map_or(now, |last| last.quiet_since);
        let still_since = last
            .filter(|last| was_quiet_before && last.moved == *moved)
            .map_or(now, |last| last.still_since);
        let lasted = |since: Option<SystemTime>, least: Duration| {
            since.is_some_and(|since| at.duration_since(since).is_ok_and(|it| it >= least))
        };
        // Where nothing has gone through yet, the tap's side is nothing.
        let is_settled = (last.is_none() && was_quiet && tap.ended == 0)
            || lasted(still_since, STILL_FOR)
            || lasted(quiet_since, QUIET_FOR);
        let mark = Mark {
            at,
            moved: Arc::clone(moved),
            resets,
            tap: Arc::new(tap),
            is_settled,
            quiet_since,
            still_since,
        };
        let began = self.runs.back().is_none_or(|(run, _)| *run != mark.tap.run);
        if began {
            let before = self.recent.back().unwrap_or(&mark).clone();
            self.runs.push_back((Arc::clone(&mark.tap.run), before));
            if self.runs.len() > MOST_RUNS {
                self.runs.pop_front();
            }
        }
        self.first.get_or_insert_with(|| mark.clone());
        self.keep(mark);
    }

    fn keep(&mut self, mark: Mark) {
        if let [.., before, last] = self.recent.make_contiguous()
            && last.is_settled == mark.is_settled
            && mark
                .at
                .duration_since(before.at)
                .is_ok_and(|gap| gap < SPACING)
        {
            *last = mark;
        } else {
            self.recent.push_back(mark);
        }
        let newest = self.recent.back().map(|mark| mark.at);
        while self.recent.len() > MOST_MARKS
            || self.recent.front().is_some_and(|oldest| {
                newest
                    .and_then(|newest| newest.duration_since(oldest.at).ok())
                    .is_some_and(|age| age > KEPT_FOR)
            })
        {
            self.recent.pop_front();
        }
    }

    /// Whether the last moment is settled.
    pub(super) fn is_settled(&self) -> bool {
        self.recent.back().is_some_and(|mark| mark.is_settled)
    }

    /// Whether nothing was under way at the tap at the last moment.
    pub(super) fn is_quiet(&self) -> bool {
        let last = self.recent.back();
        last.is_some_and(|mark| mark.quiet_since.is_some())
    }

    /// Where a stretch begins and where it ends; none where nothing is known of it.
    pub(super) fn ends(&self, stretch: &Stretch) -> Option<(&Mark, &Mark)> {
        let (first, last) = (self.first.as_ref()?, self.recent.back()?);
        match stretch {
            Stretch::All => Some((first, last)),
            Stretch::Since(start) => {
                // The last one before it, so that nothing of the stretch is missing.
                let inside = self.recent.partition_point(|mark| mark.at < *start);
                let begin = self.recent.get(inside.saturating_sub(1)).unwrap_or(first);
                Some((begin, last))
            }
            Stretch::Run(name) => {
                let index = self.runs.iter().position(|(run, _)| **run == **name)?;
                let end = self.runs.get(index + 1).map_or(last, |(_, before)| before);
                Some((&self.runs[index].1, end))
            }
        }
    }

    /// The longest part of a stretch whose ends are settled; none where there are no two such moments in it.
    pub(super) fn settled_ends(&self, stretch: &Stretch) -> Option<(&Mark, &Mark)> {
        let (begin, end) = self.ends(stretch)?;
        let inside = || {
            let marks = self.recent.iter().filter(|mark| mark.is_settled);
            marks.filter(|mark| begin.at <= mark.at && mark.at <= end.at)
        };
        let first = if begin.is_settled {
            begin
        } else {
            inside().next()?
        };
        let last = if end.is_settled {
            end
        } else {
            inside().next_back()?
        };
        (first.at < last.at).then_some((first, last))
    }
}
