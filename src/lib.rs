//! spectap: a transparent HTTP sidecar that tells how well speculative decoding works on live traffic.
//!
//! The way of the data, one direction only:
//!
//! ```text
//! client ── listener ──► proxy ──► upstream pool ──► engine
//!                         │  request: tap::inject (byte splice, only where needed)
//! client ◄── listener ◄── proxy ◄── tap ◄─────────── engine
//!                         │  response bytes pass by; the tap looks at them
//!                         ▼
//!          tap (sse | json) ──► engines (signature → record) ──► observation
//!                                                                    │ once per exchange
//!                         ┌──────────────────────────────────────────┘
//!                         ▼
//!          stats (pooled, distributions, groups) + store (recent observations)
//!                         ▼
//!          export: Prometheus, JSON, console table ──► admin listener with its page, report, top
//! ```
//!
//! [`proxy`] knows HTTP and no LLM word. [`tap`] knows where to look. [`engines`] knows each wire shape, and nothing
//! else does. [`runs`] tells the tap which run a request belongs to. [`stats`] knows records only. [`scrape`] reads what
//! the engine counts itself, beside all that. [`export`] and [`admin`] only read. `tests/architecture.rs` guards the arrows.
//!
//! [`serve`] puts the parts together. [`report`], [`compare`] and [`top`] ask a running tap, or read what one kept;
//! [`check`] and [`verify`] ask the engine; [`control`] is for probes. [`simulate`] is an engine to try it all on, and [`demo`]
//! does.

pub mod admin;
pub mod check;
pub mod cli;
pub mod clock;
pub mod compare;
pub mod config;
pub mod control;
pub mod counters;
pub mod demo;
pub mod engines;
pub mod error;
pub mod export;
pub mod logs;
pub mod observation;
pub mod proxy;
pub mod record;
pub mod report;
pub mod run;
pub mod runs;
pub mod scrape;
pub mod serve;
pub mod simulate;
pub mod stats;
pub mod store;
pub mod switch;
pub mod tap;
pub mod top;
pub mod verify;
