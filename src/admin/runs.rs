//! `/api/v1/runs`: the runs that are kept, and the beginning of a new one.

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::runs::{Run, RunError};
use crate::stats::Moment;

use super::answer::ApiError;
use super::body::json_body;
use super::router::AdminState;

/// A run as it is shown.
#[derive(Debug, Serialize)]
pub(super) struct ShownRun {
    name: String,
    start: Moment,
    /// Null while it lasts.
    end: Option<Moment>,
    why: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<String>,
    n: u64,
}

/// The runs, newest first.
#[derive(Debug, Serialize)]
pub(super) struct ShownRuns {
    runs: Vec<ShownRun>,
}

/// What the body of a POST says.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    #[serde(default)]
    name: Option<String>,
}

impl From<Run> for ShownRun {
    fn from(run: Run) -> Self {
        Self {
            name: run.name.to_string(),
            start: Moment(run.started_at),
            end: run.ended_at.map(Moment),
            why: run.why.into(),
            change: run.change,
            n: run.n,
        }
    }
}

pub(super) async fn list(State(state): State<AdminState>) -> Json<ShownRuns> {
    let runs = state.runs.list().into_iter().map(ShownRun::from).collect();
    Json(ShownRuns { runs })
}

pub(super) async fn begin(
    State(state): State<AdminState>,
    request: Request,
) -> Result<(StatusCode, Json<ShownRun>), ApiError> {
    let body = json_body(request).await?;
    // By way of an object, since a list would do for the members as well.
    let wanted: Wanted = serde_json::from_slice(&body)
        .map(Value::Object)
        .and_then(serde_json::from_value)
        .map_err(|error| {
            ApiError::bad_body(format!(
                "the body must be {{\"name\":\"…\"}}, or {{}} for the time as its name ({error})"
            ))
        })?;
    // What the engine has counted so far belongs to the run that ends.
    state.server.read_now().await;
    let run = state.runs.begin(wanted.name.as_deref())?;
    tracing::info!(
        run = &*run.name,
        "a run begins, asked for over the admin port"
    );
    Ok((StatusCode::CREATED, Json(run.into())))
}

impl From<RunError> for ApiError {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Name => ApiError::bad_body(error.to_string()),
            RunError::Taken => ApiError::conflict(error.to_string()),
        }
    }
}
