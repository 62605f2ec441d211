//! The admin port: everything that spectap says about itself and about the traffic, on a port of its own so that no
//! path of the engine is ever shadowed.
//!
//! It only reads, but for the switch that `POST /api/v1/inject` moves and the runs that `POST /api/v1/runs` begins. Every request passes the guard; every
//! error is `{"error":{"code":"…","message":"…"}}`.

mod answer;
mod body;
mod compare;
mod export;
mod guard;
mod health;
mod history;
mod index;
mod inject;
mod live;
mod metrics;
mod negotiation;
mod numbers;
mod page;
mod requests;
mod router;
mod runs;
mod serve;

pub use guard::Access;
pub use health::Readiness;
pub use live::Feeds;
pub use router::{AdminState, router};
pub use serve::serve;
