//! What a server has counted since it was first read, over its restarts.
//!
//! A counter that is lower than before, or whose start is later, began anew: what it says now has come since then. What
//! the engine counted between the last reading and its end is nowhere to be had; the number of such restarts stands
//! beside every figure.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::counts::{Counts, Source};
use super::page::Page;

/// Counts by source.
pub(super) type BySource = BTreeMap<Source, Counts>;

/// Start times closer than this are one, in seconds: they are written with few digits.
const SAME_START: f64 = 0.5;

/// Sources that are remembered, over all pages; further ones are not read.
const MOST_SOURCES: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Totals {
    /// What the first page said.
    first: BySource,
    last: BySource,
    created: BTreeMap<Source, f64>,
    process_start: Option<f64>,
    moved: Arc<BySource>,
    /// Restarts of the engine, or of one of its copies.
    pub(super) resets: u64,
    is_read: bool,
}

impl Totals {
    /// Takes what a page says.
    pub(super) fn take(&mut self, page: &Page) {
        let mut moved = BySource::clone(&self.moved);
        let mut reset = false;
        for (source, now) in &page.counts {
            let before = self.last.get(source);
            if before.is_none() && self.last.len() >= MOST_SOURCES {
                continue;
            }
            let by = match before {
                None if !self.is_read => {
                    self.first.insert(source.clone(), now.clone());
                    now.since(now)
                }
                // A source that appears later began at 0.
                None => now.clone(),
                Some(before) if self.began_anew(source, now, before, page) => {
                    reset = true;
                    now.clone()
                }
                Some(before) => now.since(before),
            };
            moved.entry(source.clone()).or_default().add(&by);
            self.last.insert(source.clone(), now.clone());
        }
        if reset {
            self.resets += 1;
        }
        if moved != *self.moved {
            self.moved = Arc::new(moved);
        }
        self.created.extend(page.created.clone());
        self.process_start = page.process_start.or(self.process_start);
        self.is_read = true;
    }

    fn began_anew(&self, source: &Source, now: &Counts, before: &Counts, page: &Page) -> bool {
        let later = |then: Option<f64>, now: Option<f64>| {
            then.zip(now)
                .is_some_and(|(then, now)| now > then + SAME_START)
        };
        let created = (
            self.created.get(source).copied(),
            page.created.get(source).copied(),
        );
        now.fell_below(before)
            || later(created.0, created.1)
            || (created.1.is_none() && later(self.process_start, page.process_start))
    }

    /// What came since the first page.
    pub(super) fn moved(&self) -> &Arc<BySource> {
        &self.moved
    }

    /// What the engine's own counters would say, had it never been restarted.
    pub(super) fn whole(&self) -> BySource {
        let mut whole = self.first.clone();
        for (source, moved) in self.moved.iter() {
            whole.entry(source.clone()).or_default().add(moved);
        }
        whole
    }
}

/// What came between two moments.
pub(super) fn between(before: &BySource, after: &BySource) -> BySource {
    let nothing = Counts::default();
    let after = after.iter();
    after
        .map(|(source, counts)| {
            let before = before.get(source).unwrap_or(&nothing);
            (source.clone(), counts.since(before))
        })
        .collect()
}

/// All sources together.
pub(super) fn sum<'a>(counts: impl IntoIterator<Item = &'a Counts>) -> Counts {
    let mut sum = Counts::default();
    counts.into_iter().for_each(|counts| sum.add(counts));
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(lines: &str) -> Page {
        let text = lines.replace("steps", "vllm:spec_decode_num_drafts_total");
        let text = text.replace("created", "vllm:spec_decode_num_drafts_created");
        let text = text.replace("accepted", "vllm:spec_decode_num_accepted_tokens_total");
        Page::read(text.as_bytes())
    }

    fn steps(totals: &Totals) -> Option<u64> {
        sum(totals.moved().values()).steps
    }

    #[test]
    fn what_was_there_before_the_first_page_has_not_moved_but_is_in_the_whole() {
        let mut totals = Totals::default();
        totals.take(&page("steps{engine=\"0\"} 100\n"));
        assert_eq!(steps(&totals), Some(0));
        totals.take(&page("steps{engine=\"0\"} 130\nsteps{engine=\"1\"} 5\n"));
        assert_eq!((steps(&totals), totals.resets), (Some(35), 0));
        assert_eq!(sum(totals.whole().values()).steps, Some(135));
    }

    #[test]
    fn a_counter_that_falls_began_anew_and_nothing_goes_back() {
        let mut totals = Totals::default();
        for (text, moved, resets) in [
            ("steps 100\naccepted 40", 0, 0),
            ("steps 150\naccepted 60", 50, 0),
            ("steps 20\naccepted 9", 70, 1),
            ("steps 21\naccepted 9", 71, 1),
            // Half of it fell: the other half has outgrown what it was.
            ("steps 30\naccepted 1", 101, 2),
        ] {
            totals.take(&page(text));
            assert_eq!(
                (steps(&totals), totals.resets),
                (Some(moved), resets),
                "{text}"
            );
        }
        assert_eq!(sum(totals.whole().values()).steps, Some(201));
    }

    #[test]
    fn a_restart_that_outgrew_the_last_reading_is_seen_by_its_start() {
        for name in ["created", "process_start_time_seconds"] {
            let mut totals = Totals::default();
            totals.take(&page(&format!("steps 100\n{name} 1.7960875825e+09")));
            totals.take(&page(&format!("steps 110\n{name} 1.7960875826e+09")));
            assert_eq!((steps(&totals), totals.resets), (Some(10), 0), "{name}");
            totals.take(&page(&format!("steps 300\n{name} 1.796087700e+09")));
            assert_eq!((steps(&totals), totals.resets), (Some(310), 1), "{name}");
        }
    }

    #[test]
    fn one_rank_alone_may_begin_anew() {
        let mut totals = Totals::default();
        totals.take(&page("steps{engine=\"0\"} 100\nsteps{engine=\"1\"} 100\n"));
        totals.take(&page("steps{engine=\"0\"} 110\nsteps{engine=\"1\"} 3\n"));
        assert_eq!((steps(&totals), totals.resets), (Some(13), 1));
    }
}
