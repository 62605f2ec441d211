//! The engine's own counters: read from every engine, held against the records, and shown under the names that tools look
//! for.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod check;
mod coverage;
mod engines;
mod names;
mod pages;
mod report;
mod support;
