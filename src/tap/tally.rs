//! The counters that every exchange moves. Each is looked up by its labels once, when it is first needed, so that none shows
//! before it has something to say.

use std::sync::OnceLock;

use http::StatusCode;
use prometheus::{IntCounter, IntGauge};
use strum::VariantArray;

use crate::counters::TapCounters;
use crate::observation::{Outcome, Route};

/// The counters of one tap, and the handles that were looked up.
#[derive(Debug)]
pub(super) struct Tally {
    counters: TapCounters,
    in_flight: [OnceLock<IntGauge>; Route::VARIANTS.len()],
    /// Of requests answered with 200; other codes are looked up each time.
    ok: [OnceLock<IntCounter>; Route::VARIANTS.len()],
    outcomes: [OnceLock<IntCounter>; Outcome::VARIANTS.len()],
}

impl Tally {
    pub(super) fn new(counters: TapCounters) -> Self {
        Self {
            counters,
            in_flight: Default::default(),
            ok: Default::default(),
            outcomes: Default::default(),
        }
    }

    /// A request has arrived.
    pub(super) fn arrived(&self, route: Route) {
        self.in_flight(route).inc();
    }

    /// It is over, and had a response of this status if any.
    pub(super) fn is_over(&self, route: Route, status: Option<StatusCode>) {
        let counter = |code: &str| {
            let requests = &self.counters.requests;
            requests.with_label_values(&[route.as_str(), code])
        };
        match status {
            Some(StatusCode::OK) => self.ok[route as usize].get_or_init(|| counter("200")).inc(),
            Some(status) => counter(status.as_str()).inc(),
            None => counter("none").inc(),
        }
        self.in_flight(route).dec();
    }

    /// An exchange on an observed route ended so.
    pub(super) fn ended(&self, outcome: Outcome) {
        let outcomes = &self.counters.outcomes;
        self.outcomes[outcome as usize]
            .get_or_init(|| outcomes.with_label_values(&[outcome.as_str()]))
            .inc();
    }

    fn in_flight(&self, route: Route) -> &IntGauge {
        let gauges = &self.counters.requests_in_flight;
        self.in_flight[route as usize].get_or_init(|| gauges.with_label_values(&[route.as_str()]))
    }
}
