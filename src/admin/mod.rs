//! The admin port: everything that spectap says about itself and about the traffic, on a port of its own so that no
//! path of the engine is ever shadowed.
//!
//! It only reads, but for the switch that `POST /api/v1/inject` moves, the runs that `POST /api/v1/runs` begins and the
//! drain that `POST /api/v1/drain` begins. Every request passes the guard; every error is
//! `{"error":{"code":"…","message":"…"}}`.

mod answer;
mod body;
mod compare;
mod drain;
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
mod token;

pub use drain::Drain;
pub use guard::Access;
pub use health::{Reached, Readiness};
pub use live::Feeds;
pub use router::{AdminState, router};
pub use serve::serve;
pub use token::Token;
