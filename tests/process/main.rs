//! The program as a user runs it: flags, exit codes, signals, logs, and the commands together.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that can not go on fails"
)]

mod commands;
mod flags;
mod program;
mod records;
mod signals;
mod tls;
