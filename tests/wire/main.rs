//! Wire promises: raw bytes over real sockets, through a serving instance.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that can not go on fails"
)]

mod support;

mod bad_input;
mod data_tls;
mod ends;
mod first_request;
mod framing;
mod grpc;
mod head_room;
mod heads;
mod http2;
mod injection;
mod kept_connections;
mod labels;
mod observation;
mod reaching;
mod replay;
mod runs;
mod samples;
mod sglang;
mod strip;
mod switches;
mod upstream_http2;
mod upstream_tls;
mod verify;
mod workers;
