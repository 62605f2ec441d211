//! The program as a user runs it: flags, exit codes, signals, logs, and the commands together.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that can not go on fails"
)]

mod commands;
mod control;
mod flags;
#[allow(dead_code, reason = "other test binaries use it, too")]
mod program;
mod records;
mod secrets;
mod signals;
mod tls;
mod top;
mod verify;
