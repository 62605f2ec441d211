//! `spectap report`: gets numbers from a running tap, from records files or from captured bodies, and prints them.
//!
//! The figures are computed here by the code that the tap itself uses for its summary, so that a tap, the file that it
//! wrote and a report of either show the same.

use std::io::Write;
use std::path::PathBuf;

use crate::cli::report::{ReportArgs, ReportFormat, ReportSource};
use crate::cli::token;
use crate::export::query::facet_in;
use crate::export::{By, Query, QueryError};
use crate::stats::Window;

mod bodies;
pub(crate) mod fetch;
mod gather;
mod labels;
mod render;
mod response;
mod server;

pub use fetch::FetchError;
pub use gather::SourceError;
pub use labels::LabelsError;
pub use server::ServerError;

pub(crate) use gather::{list_of_runs, narrow, wants};

use gather::{Gathered, Wanted};
use labels::Labels;
use render::Report;

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// What is asked for can't be.
    #[error("--{0}")]
    Query(QueryError),
    /// A window of single exchanges.
    #[error(
        "--window asks a running tap for its statistics, which are no single exchanges: it does not go with files, \
         --bodies, --labels, --format jsonl or --by hour"
    )]
    NoStatistics,
    /// The tap could not be asked.
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
    /// A file could not be read, or there is nothing in it.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// There are no counters of an engine.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The labels could not be read.
    #[error(transparent)]
    Labels(#[from] LabelsError),
    /// The filter can't be.
    #[error("--filter {0}")]
    Filter(#[from] QueryError),
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
            _ => None,
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
    let token = match &args.admin_token_file {
        Some(path) => Some(token::read(path).map_err(|problem| ReportError::Token {
            path: path.clone(),
            problem,
        })?),
        None => None,
    };
    let token = token.as_deref();
    let pairs = args
        .filter
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()));
    facet_in(&args.by).map_err(ReportError::Query)?;
    let query = Query {
        by: args.by.clone(),
        window: args.window,
        run: args.run.clone(),
        ..Query::from_pairs(pairs)?
    };
    let labels = args.labels.as_deref().map(Labels::read).transpose()?;
    let needs_exchanges = labels.is_some()
        || args.format == ReportFormat::Jsonl
        || args.by.contains(&By::Hour)
        || !args.files.is_empty()
        || args.bodies.is_some();
    if needs_exchanges && args.window != Window::All {
        return Err(ReportError::NoStatistics);
    }
    if args.source == ReportSource::Server {
        let others = needs_exchanges || !args.by.is_empty();
        if others || !matches!(args.format, ReportFormat::Table | ReportFormat::Json) {
            return Err(ServerError::NoServer.into());
        }
        server::run(args, &query, token, out).await?;
        out.flush()?;
        return Ok(());
    }
    let mut report = if needs_exchanges {
        let wanted = Wanted {
            query: &query,
            by_hour: args.by.contains(&By::Hour),
            labels,
            lines: (args.format == ReportFormat::Jsonl).then_some(&mut *out),
        };
        let mut gathered = Gathered::new(wanted);
        if let Some(directory) = &args.bodies {
            bodies::gather(directory, &mut gathered)?;
        } else if args.files.is_empty() {
            gathered.take_export(&args.from, &fetch::export(&args.from, token).await?)?;
        } else {
            gathered.take_files(&args.files)?;
        }
        let report = gathered.into_report(&args.by)?;
        if args.format == ReportFormat::Jsonl {
            out.flush()?;
            return Ok(());
        }
        report
    } else {
        let mut snapshot = fetch::snapshot(&args.from, &query, token).await?;
        narrow(&mut snapshot, &query);
        let mut report = Report::of_snapshot(snapshot, &args.by);
        if args.format == ReportFormat::Synthetic {
            report.widths = gather::widths(&fetch::recorded(&args.from, token).await?, &query);
        }
        report
    };
    if let Some(cost) = args.draft_cost {
        report.summary = report.summary.with_draft_cost(cost);
    }
    report.print(args, out)?;
    out.flush()?;
    Ok(())
}
