//! Entry of the fuzz target `exposition`; only the feature `fuzzing` opens it, and no release has it.

use super::counts::Counts;
use super::page::Page;
use super::totals::{Totals, between, sum};

/// One page in two readings: cut in the middle, as an engine that is restarted shows it. Nothing panics, what moved never
/// goes back, and positions add up to the accepted drafts wherever a histogram is made of them.
///
/// # Panics
///
/// When that does not hold.
pub fn exposition(data: &[u8]) {
    let Some((&cut, text)) = data.split_first() else {
        return;
    };
    let cut = text.len() * usize::from(cut) / 256;
    let pages = [text, &text[..cut], &text[cut..], text].map(Page::read);
    let mut totals = Totals::default();
    let mut before = totals.moved().clone();
    for page in &pages {
        totals.take(page);
        let after = totals.moved().clone();
        for (source, counts) in before.iter() {
            let now = &after[source];
            assert!(!now.fell_below(counts), "{source:?} went back");
        }
        check(&sum(between(&before, &after).values()));
        page.counts.values().for_each(check);
        before = after;
    }
    totals.whole().values().for_each(check);
}

fn check(counts: &Counts) {
    if let (Some(histogram), Some(steps)) = (counts.histogram(), counts.steps) {
        let told = histogram
            .values()
            .fold(0, |sum: u64, it| sum.saturating_add(*it));
        assert_eq!(told, steps, "{counts:?}");
    }
    assert!(counts.length().is_none_or(f64::is_finite), "{counts:?}");
    assert!(counts.rate().is_none_or(f64::is_finite), "{counts:?}");
}
