//! What a model's acceptance length was over the last hour and five minutes, so that a fall against its own past shows.
//!
//! Sums are kept for each step of 5 s in which a window can move, whatever the traffic: the newest exchanges themselves reach
//! back a few minutes only where there are many.

use std::collections::VecDeque;
use std::ops::Range;

use super::interval::{FEW_REQUESTS, Interval};
use super::prepared::Prepared;
use super::window::{BUCKET, Window};

/// The length of the recent window against that of the past: below 1 − this, it has fallen.
pub const FALL: f64 = 0.05;

/// Steps that both sides need.
pub const FEWEST_STEPS: u64 = 1_000;

/// How sure the interval of the difference is. It is looked at all the time and for every model, so that 95 % would be
/// a false alarm every now and then.
pub const LEVEL: f64 = 0.999;

/// The quantile of the normal distribution that goes with [`LEVEL`].
const NORMAL: f64 = 3.290_526_731_491_926;

/// How far the past reaches before the recent window, in nanoseconds.
const PAST: i64 = 3_600 * 1_000_000_000;

/// Buckets of past and recent window, and the one that fills.
const MOST_BUCKETS: usize = 781;

/// Sums over the requests that ended in each bucket.
#[derive(Debug, Default)]
pub(super) struct Past {
    /// By the number of the bucket, oldest first; those without requests are left out.
    buckets: VecDeque<(i64, Sums)>,
}

/// Sums over requests of s steps that accepted a drafts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sums {
    requests: u64,
    steps: u64,
    accepted: u64,
    /// Σ s².
    steps_squared: f64,
    /// Σ a².
    accepted_squared: f64,
    /// Σ a·s.
    both: f64,
}

/// A length that fell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fall {
    /// Length over the recent window, and the requests that it is of.
    pub(super) recent: (f64, u64),
    /// Length over the time before.
    pub(super) past: (f64, u64),
    /// Of recent − past, at [`LEVEL`].
    pub(super) interval: Interval,
}

impl Past {
    /// Adds an exchange; only those count whose length AIPerf would have counted.
    pub(super) fn add(&mut self, exchange: &Prepared<'_>, ended: i64) {
        let [record] = exchange.records.as_slice() else {
            return;
        };
        if let (true, Some(steps)) = (exchange.is_sample, record.values.steps) {
            self.put(ended, steps, record.values.accepted);
        }
    }

    fn put(&mut self, ended: i64, steps: u64, accepted: u64) {
        let bucket = ended.div_euclid(BUCKET);
        // Nearly always the newest.
        let newer = self.buckets.iter().rev();
        let newer = newer.take_while(|(number, _)| *number > bucket).count();
        let place = self.buckets.len() - newer;
        let last = place.checked_sub(1).and_then(|at| self.buckets.get_mut(at));
        match last.filter(|(number, _)| *number == bucket) {
            Some((_, sums)) => sums.put(steps, accepted),
            None => {
                let mut sums = Sums::default();
                sums.put(steps, accepted);
                self.buckets.insert(place, (bucket, sums));
                if self.buckets.len() > MOST_BUCKETS {
                    self.buckets.pop_front();
                }
            }
        }
    }

    /// Whether the length over the last five minutes is below that over the hour before.
    pub(super) fn fall(&self, now: i64) -> Option<Fall> {
        let recent = Window::FiveMinutes.edges(now, None)?;
        let before = recent.start.saturating_sub(PAST)..recent.start;
        let (recent, past) = (self.sums(recent), self.sums(before));
        let is_enough = |sums: &Sums| sums.requests >= FEW_REQUESTS && sums.steps >= FEWEST_STEPS;
        if !is_enough(&recent) || !is_enough(&past) {
            return None;
        }
        let (new, old) = (recent.length(), past.length());
        let difference = new - old;
        let half = NORMAL * (recent.variance() + past.variance()).sqrt();
        let interval = Interval {
            low: difference - half,
            high: difference + half,
            level: LEVEL,
        };
        (new <= old * (1.0 - FALL) && interval.high < 0.0).then_some(Fall {
            recent: (new, recent.requests),
            past: (old, past.requests),
            interval,
        })
    }

    fn sums(&self, ended: Range<i64>) -> Sums {
        // Both ends are multiples of a bucket.
        let inside = ended.start.div_euclid(BUCKET)..ended.end.div_euclid(BUCKET);
        let mut all = Sums::default();
        for (_, sums) in self.buckets.iter().filter(|(it, _)| inside.contains(it)) {
            all.requests = all.requests.saturating_add(sums.requests);
            all.steps = all.steps.saturating_add(sums.steps);
            all.accepted = all.accepted.saturating_add(sums.accepted);
            all.steps_squared += sums.steps_squared;
            all.accepted_squared += sums.accepted_squared;
            all.both += sums.both;
        }
        all
    }
}

impl Sums {
    fn put(&mut self, steps: u64, accepted: u64) {
        self.requests += 1;
        self.steps = self.steps.saturating_add(steps);
        self.accepted = self.accepted.saturating_add(accepted);
        let (steps, accepted) = (steps as f64, accepted as f64);
        self.steps_squared += steps * steps;
        self.accepted_squared += accepted * accepted;
        self.both += accepted * steps;
    }

    fn length(&self) -> f64 {
        1.0 + self.accepted as f64 / self.steps as f64
    }

    /// Of the length, as chance between requests gives it: Σ(a − r·s)² / (Σs)² · n / (n − 1), where r = Σa / Σs.
    fn variance(&self) -> f64 {
        let (n, steps) = (self.requests as f64, self.steps as f64);
        let ratio = self.accepted as f64 / steps;
        let squares =
            self.accepted_squared - 2.0 * ratio * self.both + ratio * ratio * self.steps_squared;
        squares.max(0.0) / (steps * steps) * n / (n - 1.0)
    }
}

#[cfg(test)]
mod tests;
