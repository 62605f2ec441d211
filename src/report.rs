//! `spectap report`: fetch a running tap's snapshot and print the Spec Decode section.
//!
//! The numbers are computed here from the snapshot by the code that the tap itself uses for its summary.

use std::io::Write;
use std::path::PathBuf;

use crate::cli::report::{ReportArgs, ReportFormat};
use crate::cli::token;
use crate::export::query::facet_in;
use crate::export::{Query, QueryError, summary, table};

mod fetch;

pub use fetch::FetchError;

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// What is asked for can't be.
    #[error("--{0}")]
    Query(#[from] QueryError),
    /// The snapshot could not be had.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The token file can't be used.
    #[error("invalid value '{}' for '--admin-token-file': {problem}", path.display())]
    Token {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what would be right.
        problem: String,
    },
    /// The report could not be written.
    #[error("can't write the report: {0}")]
    Write(#[from] std::io::Error),
    /// The summary could not be turned into JSON.
    #[error("can't write the report as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

impl ReportError {
    /// Whether the reader of the report went away, like `head` does; nothing is wrong then.
    pub fn is_closed_pipe(&self) -> bool {
        let kind = match self {
            ReportError::Write(error) => Some(error.kind()),
            ReportError::Json(error) => error.io_error_kind(),
            ReportError::Fetch(_) | ReportError::Query(_) | ReportError::Token { .. } => None,
        };
        kind == Some(std::io::ErrorKind::BrokenPipe)
    }
}

/// Prints the report to `out`.
///
/// # Errors
///
/// [`ReportError`], whose text says what went wrong, where, and what to try.
pub async fn run(args: &ReportArgs, out: &mut dyn Write) -> Result<(), ReportError> {
    facet_in(&args.by)?;
    let query = Query {
        by: args.by.clone(),
        window: args.window,
        run: args.run.clone(),
        ..Query::default()
    };
    let token = match &args.admin_token_file {
        Some(path) => Some(token::read(path).map_err(|problem| ReportError::Token {
            path: path.clone(),
            problem,
        })?),
        None => None,
    };
    let snapshot = fetch::snapshot(&args.from, &query, token.as_deref()).await?;
    let summary = summary::of_snapshot(&snapshot, &args.by);
    match args.format {
        ReportFormat::Json => {
            serde_json::to_writer_pretty(&mut *out, &summary)?;
            writeln!(out)?;
        }
        ReportFormat::Table => {
            write!(out, "{}", table::spec_decode(&summary))?;
            for group in &summary.groups {
                write!(out, "\n{}", table::spec_decode_of_group(group))?;
            }
        }
    }
    out.flush()?;
    Ok(())
}
