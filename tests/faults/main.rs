//! What goes wrong at either side, and what the other side and the counters show of it: faults, limits, slow peers.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that can not go on fails"
)]

#[allow(dead_code, reason = "each test binary uses its part")]
#[path = "../process/program.rs"]
mod program;
#[allow(dead_code, reason = "each test binary uses its part")]
mod relay;
#[allow(dead_code, reason = "each test binary uses its part")]
#[path = "../wire/support/mod.rs"]
mod support;

mod cell;
mod ends;
mod life_cycle;
mod limits;
mod load;
mod matrix;
mod timeouts;
