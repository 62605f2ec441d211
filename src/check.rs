//! `spectap check`: asks an engine what it is and three short questions, and says why acceptance numbers do or do not come,
//! with the flag to change.
//!
//! [`ask`](self) gathers facts, `verdict` draws the conclusion from them and from nothing else.

use std::io::{BufRead, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use serde::Serialize;

use crate::cli::check::{CheckArgs, CheckFormat};
use crate::cli::token;

mod ask;
mod facts;
mod lines;
mod reply;
mod verdict;

pub use facts::{Facts, PageFact, ReplyFact};
pub use lines::{Line, State};
pub use verdict::{Verdict, verdict};

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// Nobody said that requests may be sent.
    #[error(
        "three short requests would be sent to http://{upstream}, which may cost something; say so with --yes"
    )]
    NotAllowed {
        /// The engine.
        upstream: String,
    },
    /// The key file can't be used.
    #[error("invalid value '{}' for '--api-key-file': {problem}", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what would be right.
        problem: String,
    },
    /// The result could not be written.
    #[error("can't write the result: {0}")]
    Write(#[from] std::io::Error),
    /// The result could not be turned into JSON.
    #[error("can't write the result as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// The whole result.
#[derive(Debug, Serialize)]
struct Checked<'a> {
    upstream: String,
    checks: &'a [Line],
    verdict: &'a Verdict,
}

/// Checks, prints to `out`, and gives the exit code: see [`Verdict::exit_code`].
///
/// # Errors
///
/// [`CheckError`], whose text says what to do.
pub async fn run(args: &CheckArgs, out: &mut dyn Write) -> Result<ExitCode, CheckError> {
    let key = match &args.api_key_file {
        Some(path) => Some(token::read(path).map_err(|problem| CheckError::Key {
            path: path.clone(),
            problem,
        })?),
        None => None,
    };
    let engine = ask::Engine::new(args, key);
    let mut facts = engine.look().await;
    if facts.is_reachable() {
        if !args.yes && !is_allowed(args)? {
            return Err(CheckError::NotAllowed {
                upstream: args.upstream.to_string(),
            });
        }
        engine.send(&mut facts).await;
    }
    let (lines, verdict) = (lines::of(&facts), verdict(&facts));
    let checked = Checked {
        upstream: format!("http://{}", args.upstream),
        checks: &lines,
        verdict: &verdict,
    };
    match args.format {
        CheckFormat::Json => {
            serde_json::to_writer_pretty(&mut *out, &checked)?;
            writeln!(out)?;
        }
        CheckFormat::Text => {
            for line in &lines {
                writeln!(
                    out,
                    "{:>5}  {:<14} {}",
                    line.state.as_str(),
                    line.name,
                    line.text
                )?;
            }
            writeln!(out, "\n{}", verdict.text)?;
            if let Some(change) = &verdict.change {
                writeln!(out, "\n    {change}")?;
            }
        }
    }
    out.flush()?;
    Ok(verdict.exit_code().into())
}

/// Asks the person at the terminal; where there is none, nobody has allowed anything.
fn is_allowed(args: &CheckArgs) -> Result<bool, CheckError> {
    if !std::io::stdin().is_terminal() {
        return Ok(false);
    }
    eprint!(
        "This sends three short requests to http://{}. Go on? [y/N] ",
        args.upstream
    );
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
