//! Where to look: decides what a request needs, watches the response go by, and makes one observation of each exchange.
//!
//! [`Tap`] is one lane's view of its engine; [`Exchange`] one request and its response. The proxy calls them in the order
//! in which a request lives: `arrive`, `body_held`, `connected`, `head`, `see` …, `finish`. Nothing here can fail a
//! request: what can't be read is counted, and a panic ends the observation and not the stream.

mod absence;
mod arrival;
mod conclusion;
pub mod decoding;
mod details;
mod event;
mod exchange;
#[cfg(feature = "fault-injection")]
pub mod fault;
mod filter;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod identity;
mod inject;
mod injection;
pub mod json;
mod learned;
pub mod likeness;
mod members;
pub mod needle;
pub mod reply;
mod request;
mod route;
mod skip;
pub mod sse;
#[cfg(test)]
pub(crate) mod stand_in;
pub mod tag;
mod tally;
mod timing;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

pub use exchange::{BodyPasses, End, Exchange};
pub use filter::{Content, Filter, Pushed};
pub use inject::ExposeUsage;
pub use injection::AskSglang;
pub use learned::ConnectionMemory;
pub use tag::TagSource;

use crate::counters::TapCounters;
use crate::observation::ObservationSink;
use crate::record::EngineName;
use crate::runs::Runs;
use crate::switch::InjectSwitch;

/// How a tap is set.
#[derive(Clone)]
pub struct TapSettings {
    /// Listen address of the lane, for the observation.
    pub lane: String,
    /// The engine, where the user said it.
    pub engine: Option<EngineName>,
    /// Whether requests may be altered.
    pub inject: InjectSwitch,
    /// What clients that did not ask for usage get to see of it.
    pub expose_usage: ExposeUsage,
    /// When SGLang is asked for its per-request numbers.
    pub ask_sglang: AskSglang,
    /// Whether it is asked for them on requests that are not streamed, whose replies are then held.
    pub ask_sglang_unary: bool,
    /// Whether the prediction fields of `usage.completion_tokens_details` are read as acceptance. OpenAI uses the same
    /// fields for Predicted Outputs.
    pub usage_details: bool,
    /// Where a request's tag comes from.
    pub tag: TagSource,
    /// The runs: a request belongs to the one in which it arrives.
    pub runs: Runs,
}

/// One lane's view of its engine. Cheap to clone.
#[derive(Clone)]
pub struct Tap(Arc<Shared>);

struct Shared {
    settings: TapSettings,
    tally: tally::Tally,
    counters: TapCounters,
    sink: Arc<dyn ObservationSink>,
    learned: learned::Learned,
    in_flight: AtomicU64,
}

impl Tap {
    /// A tap that counts in `counters` and hands its observations to `sink`.
    pub fn new(
        settings: TapSettings,
        counters: TapCounters,
        sink: Arc<dyn ObservationSink>,
    ) -> Self {
        let (learned, in_flight) = Default::default();
        Self(Arc::new(Shared {
            settings,
            tally: tally::Tally::new(counters.clone()),
            counters,
            sink,
            learned,
            in_flight,
        }))
    }
}

impl Shared {
    /// The engine that the user named, else the one that responses showed.
    fn engine(&self) -> Option<EngineName> {
        self.settings.engine.or_else(|| self.learned.engine())
    }
}
