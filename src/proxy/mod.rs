//! The hop: takes a client's request, passes it to the one server behind it, and relays the answer byte for byte.
//!
//! This module knows HTTP and nothing of what the bytes mean. It asks [`crate::tap`] three things: whether it should
//! hold the request's body, what to send in its place, and what to do with each byte of the answer on its way.
//!
//! The life of a request is `exchange.rs`, from top to bottom.

mod address;
mod body;
mod client;
mod client_http1;
mod connection;
mod dial;
mod exchange;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod head_room;
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
mod resolver;
mod socket;
mod streams;
mod timeouts;
mod tls;
mod tunnel;
mod turn;
mod upstream;
mod worker;

pub use address::{UpstreamAddress, UpstreamAddressError};
pub use limits::clients_for;
pub use listener::Stopped;
pub use resolver::Resolver;
pub use timeouts::Timeouts;
pub use tls::{PortTls, TlsFile, TlsFileError, TlsFileProblem, UpstreamTls, UpstreamTlsFiles};
pub use upstream::{Transport, Upstream};
pub use worker::{Lane, Stop, Workers};
