//! The counters that every exchange moves. Each is looked up by its labels once, when it is first needed, so that none shows
//! before it has something to say.

use std::sync::{Mutex, OnceLock, PoisonError};

use http::StatusCode;
use prometheus::{IntCounter, IntGauge};
use strum::VariantArray;

use crate::counters::TapCounters;
use crate::observation::{Outcome, Route};

/// Status codes that are told apart; one engine sends ten. An engine may make up nine hundred, and each is a series for every
/// route.
const MOST_CODES: usize = 24;

/// The counters of one tap, and the handles that were looked up.
#[derive(Debug)]
pub(super) struct Tally {
    counters: TapCounters,
    in_flight: [OnceLock<IntGauge>; Route::VARIANTS.len()],
    /// Of requests answered with 200; other codes are looked up each time.
    ok: [OnceLock<IntCounter>; Route::VARIANTS.len()],
    outcomes: [OnceLock<IntCounter>; Outcome::VARIANTS.len()],
    codes: Mutex<Vec<StatusCode>>,
}

impl Tally {
    pub(super) fn new(counters: TapCounters) -> Self {
        Self {
            counters,
            in_flight: Default::default(),
            ok: Default::default(),
            outcomes: Default::default(),
            codes: Mutex::default(),
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
            Some(status) if self.is_told_apart(status) => counter(status.as_str()).inc(),
            Some(status) => counter(class(status)).inc(),
            None => counter("none").inc(),
        }
        self.in_flight(route).dec();
    }

    /// Whether a status code is among the first ones.
    fn is_told_apart(&self, status: StatusCode) -> bool {
        let mut codes = self.codes.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = codes.contains(&status);
        if !is_known && codes.len() < MOST_CODES {
            codes.push(status);
            return true;
        }
        is_known
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

/// The class that a status code counts under where it has no series of its own.
fn class(status: StatusCode) -> &'static str {
    match status.as_u16() {
        100..200 => "1xx",
        200..300 => "2xx",
        300..400 => "3xx",
        400..500 => "4xx",
        500..600 => "5xx",
        _ => "other",
    }
}
