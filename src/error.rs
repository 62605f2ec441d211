//! What ends the program, with the exit code that tells it.

use std::process::ExitCode;

use crate::check::CheckError;
use crate::cli::simulate::SimulateError;
use crate::compare::CompareError;
use crate::config::ConfigError;
use crate::demo::DemoError;
use crate::logs::LogError;
use crate::report::{ReportError, ServerError};
use crate::serve::StartError;

/// Exit code for a wrong flag or value; clap uses it too.
const USAGE: u8 = 2;

/// Exit code when streams were cut.
pub const CUT: u8 = 3;

/// Anything that ends a command early.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The log filter can't be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// Flags that don't go together.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The tap could not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The check failed.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// The report failed.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// The comparison failed.
    #[error(transparent)]
    Compare(#[from] CompareError),
    /// The simulated engine failed.
    #[error(transparent)]
    Simulate(#[from] SimulateError),
    /// The demo failed.
    #[error(transparent)]
    Demo(#[from] DemoError),
    /// The system's part failed.
    #[error("{0}")]
    System(#[from] std::io::Error),
}

impl Error {
    /// The exit code.
    pub fn code(&self) -> ExitCode {
        match self {
            Error::Log(_)
            | Error::Config(_)
            | Error::Check(CheckError::NotAllowed { .. } | CheckError::Key { .. }) => USAGE.into(),
            Error::Simulate(SimulateError::Flag { .. })
            | Error::Report(
                ReportError::Token { .. }
                | ReportError::Query(_)
                | ReportError::NoStatistics
                | ReportError::Server(ServerError::NoServer),
            ) => USAGE.into(),
            _ => ExitCode::FAILURE,
        }
    }
}
