//! `spectap compare`: runs side by side, with intervals and a verdict that says "no evidence" when there is none.

use std::io::Write;
use std::path::PathBuf;

use crate::cli::compare::{CompareArgs, CompareFormat};
use crate::cli::token;
use crate::export::compare::{comparison, markdown, text};

mod place;
mod source;

pub use source::SourceError;

use source::Reading;

/// Why there is no comparison.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// The token file can't be used.
    #[error("invalid value '{}' for '--admin-token-file': {problem}", path.display())]
    Token {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what would be right.
        problem: String,
    },
    /// A run could not be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The comparison could not be written.
    #[error("can't write the comparison: {0}")]
    Write(#[from] std::io::Error),
    /// The comparison could not be turned into JSON.
    #[error("can't write the comparison as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

impl CompareError {
    /// Whether the reader went away, like `head` does; nothing is wrong then.
    pub fn is_closed_pipe(&self) -> bool {
        let kind = match self {
            CompareError::Write(error) => Some(error.kind()),
            CompareError::Json(error) => error.io_error_kind(),
            CompareError::Source(_) | CompareError::Token { .. } => None,
        };
        kind == Some(std::io::ErrorKind::BrokenPipe)
    }
}

/// Prints the comparison to `out`.
///
/// # Errors
///
/// [`CompareError`], whose text says what went wrong, where, and what to try.
pub async fn run(args: &CompareArgs, out: &mut dyn Write) -> Result<(), CompareError> {
    let token = match &args.admin_token_file {
        Some(path) => Some(token::read(path).map_err(|problem| CompareError::Token {
            path: path.clone(),
            problem,
        })?),
        None => None,
    };
    let reading = Reading {
        window: args.window,
        is_paired: args.pair.is_some(),
        token: token.as_deref(),
    };
    let base = source::read(&args.base, reading).await?;
    let mut others = Vec::new();
    for other in &args.others {
        others.push(source::read(other, reading).await?);
    }
    let comparison = comparison(&base, &others, args.pair, args.seed);
    match args.format {
        CompareFormat::Json => {
            serde_json::to_writer_pretty(&mut *out, &comparison)?;
            writeln!(out)?;
        }
        CompareFormat::Table => write!(out, "{}", text(&comparison))?,
        CompareFormat::Markdown => write!(out, "{}", markdown(&comparison))?,
    }
    out.flush()?;
    Ok(())
}
