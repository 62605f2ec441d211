//! The hop: takes a client's request, passes it to the one server behind it, and relays the answer byte for byte.
//!
//! This module knows HTTP and nothing of what the bytes mean. It asks [`crate::tap`] three things: whether it should
//! hold the request's body, what to send in its place, and what to do with each byte of the answer on its way.
//!
//! The life of a request is `exchange.rs`, from top to bottom.

mod address;
mod body;
mod client;
mod clients;
mod connection;
mod exchange;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod headers;
mod heard;
mod held_reply;
mod idle;
mod limits;
mod listener;
mod outlet;
mod pool;
mod refusal;
mod reply;
mod request_body;
mod timeouts;
mod tunnel;
mod turn;
mod worker;

pub use address::{UpstreamAddress, UpstreamAddressError};
pub use limits::clients_for;
pub use listener::Stopped;
pub use timeouts::Timeouts;
pub use worker::{Lane, Stop, Workers};
