//! `spectap healthcheck` and `spectap drain`: what a container's probes and hooks ask of the tap that runs in it. An image
//! without a shell has no other program for them.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use http::StatusCode;
use serde::Deserialize;

use crate::cli::control::{DrainArgs, HealthcheckArgs};
use crate::cli::token;
use crate::report::fetch::{FetchError, ask};

const DRAIN: &str = "/api/v1/drain";

/// Pause between two looks at a drain; the tap stays five times as long after its end.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Why a probe or a drain failed.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The tap could not be asked.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The file with the token.
    #[error("invalid value '{}' for '--admin-token-file': {problem}", path.display())]
    Token {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what would be right.
        problem: String,
    },
    /// The tap says no.
    #[error("{from} is not well ({status}): {reason}")]
    Unwell {
        /// Where.
        from: String,
        /// Its status.
        status: StatusCode,
        /// What it says.
        reason: String,
    },
    /// It does not know the drain.
    #[error("{from}{DRAIN} answers {status}; is this the admin address of `spectap serve`?")]
    NoDrain {
        /// Where.
        from: String,
        /// Its status.
        status: StatusCode,
    },
    /// The time of `--timeout` is over.
    #[error("{from} is still draining after {}", humantime::format_duration(*waited))]
    Draining {
        /// Where.
        from: String,
        /// How long it was waited for.
        waited: Duration,
    },
}

/// How a drain stands when the command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drained {
    /// It has begun.
    Begun,
    /// Every stream came to its end.
    Whole,
    /// Streams were cut when the tap's grace was over.
    Cut,
}

/// Asks whether the tap is well.
///
/// # Errors
///
/// When it is not, or can't be asked.
pub async fn healthcheck(args: &HealthcheckArgs) -> Result<(), ControlError> {
    let from = args.tap.url();
    let path = if args.ready { "/readyz" } else { "/livez" };
    let (status, body) = ask(&from, path, None, None).await?;
    if status == StatusCode::OK {
        return Ok(());
    }
    let reason = String::from_utf8_lossy(&body).trim().to_owned();
    Err(ControlError::Unwell {
        from,
        status,
        reason,
    })
}

/// Begins the drain, and waits for its end where that is wanted.
///
/// # Errors
///
/// When the tap can't be asked, or is not through in time.
pub async fn drain(args: &DrainArgs) -> Result<Drained, ControlError> {
    let from = args.tap.url();
    let token = args.admin_token_file.as_deref().map(read).transpose()?;
    let (status, _) = ask(&from, DRAIN, Some("{}"), token.as_deref()).await?;
    if !status.is_success() {
        return Err(ControlError::NoDrain { from, status });
    }
    if !args.wait {
        return Ok(Drained::Begun);
    }
    let begun = Instant::now();
    while begun.elapsed() < args.timeout {
        match ask(&from, DRAIN, None, token.as_deref()).await {
            Ok((_, body)) => {
                if let Some(drained) = end(&body) {
                    return Ok(drained);
                }
            }
            // It has ended, and with it what could tell how.
            Err(FetchError::Connect { .. } | FetchError::Answer { .. }) => {
                return Ok(Drained::Whole);
            }
            Err(error) => return Err(error.into()),
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    Err(ControlError::Draining {
        from,
        waited: args.timeout,
    })
}

/// How the drain ended, if it has.
fn end(body: &[u8]) -> Option<Drained> {
    #[derive(Deserialize)]
    struct Progress {
        cut: Option<bool>,
    }
    let progress: Progress = serde_json::from_slice(body).ok()?;
    Some(if progress.cut? {
        Drained::Cut
    } else {
        Drained::Whole
    })
}

fn read(path: &Path) -> Result<String, ControlError> {
    token::read(path).map_err(|problem| ControlError::Token {
        path: path.to_owned(),
        problem,
    })
}
