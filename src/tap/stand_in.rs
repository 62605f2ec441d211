//! A tap for unit tests of what drives one: it counts the observations that it makes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use http::Request;
use prometheus::Registry;

use super::{AskSglang, Exchange, ExposeUsage, Tap, TapSettings};
use crate::clock::Clock;
use crate::counters::TapCounters;
use crate::observation::{Observation, ObservationSink};
use crate::runs::Runs;
use crate::switch::InjectSwitch;

/// A tap and the number of its observations.
pub(crate) struct StandIn {
    tap: Tap,
    count: Arc<Count>,
}

#[derive(Default)]
struct Count(AtomicUsize);

impl ObservationSink for Count {
    fn record(&self, _: Arc<Observation>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Default for StandIn {
    fn default() -> Self {
        let count = Arc::<Count>::default();
        let settings = TapSettings {
            lane: String::new(),
            engine: None,
            inject: InjectSwitch::new(false),
            expose_usage: ExposeUsage::default(),
            ask_sglang: AskSglang::default(),
            ask_sglang_unary: false,
            usage_details: false,
            runs: Runs::new(Clock::system()),
            tag: super::TagSource::default(),
        };
        let counters = TapCounters::register(&Registry::new()).unwrap();
        let tap = Tap::new(settings, counters, Arc::clone(&count) as _);
        Self { tap, count }
    }
}

impl StandIn {
    /// A request has arrived.
    pub(crate) fn exchange(&self) -> Exchange {
        let request = Request::post("/v1/chat/completions").body(()).unwrap();
        self.tap.arrive(&request.into_parts().0, Instant::now())
    }

    /// Exchanges that are over.
    pub(crate) fn observations(&self) -> usize {
        self.count.0.load(Ordering::Relaxed)
    }
}
