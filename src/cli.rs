//! The command line: one struct per command, one field per flag, each with an environment variable.

pub mod demo;
pub mod report;
pub mod serve;
pub mod simulate;
