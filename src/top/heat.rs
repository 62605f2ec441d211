//! Accepted drafts per step over time: one histogram per column, added up from the requests that ended in it.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::observation::Observation;
use crate::record::AcceptanceHistogram;
use crate::stats::steps_in;

/// Times that a column may stand for, in seconds.
const WIDTHS: [u64; 12] = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1_800, 3_600];

/// The columns, oldest first.
#[derive(Debug, Default)]
pub(super) struct Heat {
    /// Steps by number of accepted drafts.
    pub(super) columns: Vec<AcceptanceHistogram>,
    /// What one column stands for.
    pub(super) width: Duration,
}

impl Heat {
    /// `most` columns at most, up to `now`, as far back as `span` or, without it, as the exchanges reach.
    pub(super) fn of<'a>(
        exchanges: impl Iterator<Item = &'a Arc<Observation>> + Clone,
        engine: &[(SystemTime, AcceptanceHistogram)],
        now: SystemTime,
        span: Option<Duration>,
        most: usize,
    ) -> Self {
        let oldest = || {
            let ends = exchanges.clone().map(|exchange| exchange.ended_at);
            let ends = ends.chain(engine.iter().map(|(at, _)| *at));
            ends.min()
                .and_then(|oldest| now.duration_since(oldest).ok())
        };
        let most = most.max(1) as u64;
        let seconds = span.or_else(oldest).unwrap_or_default().as_secs().max(1);
        let fits = |width: &&u64| seconds.div_ceil(**width) <= most;
        let width = WIDTHS.iter().find(fits).copied();
        let width = width.unwrap_or_else(|| seconds.div_ceil(most));
        // Columns begin at multiples of their width, so that a column keeps its steps while time goes on.
        let last = seconds_of(now) / width;
        let first = (last + 1).saturating_sub(seconds.div_ceil(width).min(most));
        let mut columns = vec![AcceptanceHistogram::new(); (last + 1 - first) as usize];
        let mut add = |at: SystemTime, histogram: &AcceptanceHistogram| {
            let column = (seconds_of(at) / width).checked_sub(first);
            let column = column.and_then(|column| columns.get_mut(column as usize));
            let Some(column) = column else { return };
            for (&accepted, &steps) in histogram {
                let sum = column.entry(accepted).or_default();
                *sum = sum.saturating_add(steps);
            }
        };
        for exchange in exchanges {
            for record in &exchange.spec_decode_acceptance {
                add(exchange.ended_at, &record.acceptance_histogram);
            }
        }
        for (at, histogram) in engine {
            add(*at, histogram);
        }
        Self {
            columns,
            width: Duration::from_secs(width),
        }
    }

    /// The most drafts that a step accepted anywhere.
    pub(super) fn deepest(&self) -> Option<u32> {
        let deepest = self
            .columns
            .iter()
            .filter_map(|column| column.keys().next_back());
        deepest.max().copied()
    }

    /// The share of a column's steps that accepted from `low` to `high` drafts; none: nothing ended in it.
    pub(super) fn share(&self, column: usize, low: u32, high: u32) -> Option<f64> {
        let histogram = self.columns.get(column)?;
        let all = steps_in(histogram, ..);
        (all > 0).then(|| steps_in(histogram, low..=high) as f64 / all as f64)
    }
}

fn seconds_of(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
