//! What an engine's own counters moved by, as far as they were read here.

use std::collections::VecDeque;
use std::time::SystemTime;

use super::model::span;
use crate::record::AcceptanceHistogram;
use crate::scrape::Counts;
use crate::stats::Window;

/// Readings that are kept: an hour of them, one every second.
const MOST_READINGS: usize = 3_600;

/// The readings of one engine, oldest first.
#[derive(Debug, Default)]
pub(super) struct Readings(VecDeque<(SystemTime, Counts)>);

/// What counters moved by.
#[derive(Clone, Debug, Default)]
pub struct Movement {
    /// The movement, of all engines together.
    pub counts: Counts,
    /// Since when; none: since the engine began.
    pub since: Option<SystemTime>,
    /// Steps by number of accepted drafts, between one reading and the next, with the time of the latter.
    pub columns: Vec<(SystemTime, AcceptanceHistogram)>,
}

impl Readings {
    /// Takes one more. Counters that fell are those of an engine that began anew.
    pub(super) fn push(&mut self, at: SystemTime, counts: Counts) {
        if self
            .0
            .back()
            .is_some_and(|(_, last)| counts.fell_below(last))
        {
            self.0.clear();
        }
        self.0.push_back((at, counts));
        if self.0.len() > MOST_READINGS {
            self.0.pop_front();
        }
    }

    /// What happened in the window that ends now; of all that was ever counted where nothing older was read.
    pub(super) fn movement(&self, now: SystemTime, window: Window) -> Option<Movement> {
        let (_, last) = self.0.back()?;
        let begins = span(window).and_then(|span| now.checked_sub(span));
        let within = |at: &SystemTime| begins.is_none_or(|begins| *at >= begins);
        let mut readings = self.0.iter().filter(|(at, _)| within(at)).peekable();
        let first = readings.peek().copied();
        let first = first.filter(|(at, _)| begins.is_some() && *at < now);
        let mut before: Option<&Counts> = None;
        let mut columns = Vec::new();
        for (at, counts) in readings {
            if let Some(before) = before.replace(counts)
                && let Some(histogram) = counts.since(before).histogram()
            {
                columns.push((*at, histogram));
            }
        }
        Some(Movement {
            counts: match first {
                Some((_, first)) => last.since(first),
                None => last.clone(),
            },
            since: first.map(|(at, _)| *at),
            columns,
        })
    }
}

impl Movement {
    /// Both together.
    pub(super) fn with(mut self, other: Self) -> Self {
        self.counts.add(&other.counts);
        self.since = self
            .since
            .zip(other.since)
            .map(|(own, others)| own.min(others));
        self.columns.extend(other.columns);
        self
    }
}
