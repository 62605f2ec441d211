//! The engine's own counters: of a tap that reads them, or of an engine that is asked right here.

use std::io::Write;
use std::time::Duration;

use http::Uri;

use super::ReportError;
use super::fetch::{self, FetchError};
use crate::cli::report::{ReportArgs, ReportFormat};
use crate::export::summary::ServerSummary;
use crate::export::table::{self, Look};
use crate::export::{Query, Snapshot};
use crate::scrape::{Coverage, Requester, ServerFigures, Target, find, version};

/// How long an engine may take.
const DEADLINE: Duration = Duration::from_secs(10);

/// Why there are no counters.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The tap reads none.
    #[error(
        "the tap at {from} has no counters of its engine; start it with --scrape URL, or give the engine's own address \
         with --from"
    )]
    NotRead {
        /// Where.
        from: String,
    },
    /// Neither a tap nor an engine.
    #[error("{from} is neither a tap nor an engine whose counters can be read: {reason}")]
    Neither {
        /// Where.
        from: String,
        /// What the engine's page says.
        reason: String,
    },
    /// There are no counters in files.
    #[error(
        "--source server reads a running tap or engine; it goes with --format table and json, and \
             not with files, --bodies, --labels or --by"
    )]
    NoServer,
}

/// Prints the counters of whoever is at `--from`.
pub(super) async fn run(
    args: &ReportArgs,
    query: &Query,
    token: Option<&str>,
    out: &mut dyn Write,
) -> Result<(), ReportError> {
    let from = args.from.trim_end_matches('/');
    let has_page = from
        .parse::<Uri>()
        .is_ok_and(|uri| !matches!(uri.path(), "" | "/"));
    let (figures, coverage) = if has_page {
        (of_engine(from).await?, None)
    } else {
        match fetch::snapshot(from, query, token).await {
            Ok(Snapshot {
                server: Some(figures),
                coverage,
                ..
            }) => (figures, coverage),
            Ok(_) => {
                let from = from.to_owned();
                return Err(ServerError::NotRead { from }.into());
            }
            // Somebody answers who is no tap.
            Err(
                FetchError::Status { .. } | FetchError::NotThat { .. } | FetchError::Answer { .. },
            ) => (of_engine(from).await?, None),
            Err(error) => return Err(error.into()),
        }
    };
    print(
        args.format,
        &ServerSummary::of(&figures),
        coverage.as_ref(),
        out,
    )
}

async fn of_engine(from: &str) -> Result<ServerFigures, ServerError> {
    let neither = |reason: String| ServerError::Neither {
        from: from.to_owned(),
        reason,
    };
    let target = Target::parse(from).map_err(neither)?;
    let requester = Requester::new(DEADLINE);
    let found = find(&requester, &target).await;
    let (url, page) = found.map_err(|error| neither(error.to_string()))?;
    if !page.speaks() {
        return Err(neither(format!(
            "{url} has no series of an engine that is known"
        )));
    }
    let mut figures = ServerFigures::of_page(&page, &url);
    figures.version = version(&requester, &url, page.engine()).await;
    Ok(figures)
}

fn print(
    format: ReportFormat,
    summary: &ServerSummary,
    coverage: Option<&Coverage>,
    out: &mut dyn Write,
) -> Result<(), ReportError> {
    if format == ReportFormat::Json {
        let report = serde_json::json!({"server": summary, "coverage": coverage});
        serde_json::to_writer_pretty(&mut *out, &report)?;
        writeln!(out)?;
        return Ok(());
    }
    write!(out, "{}", table::server(summary, Look::default()))?;
    if let Some(coverage) = coverage {
        writeln!(out, "  {}", table::coverage(coverage))?;
    }
    Ok(())
}
