//! `/api/v1/history`: a window stretch by stretch, and the window before it, so that change over time can be drawn.

use axum::extract::{Query as Parameters, State};
use axum::response::Response;

use crate::stats::history::History;

use super::answer::{ApiError, json_of, write};
use super::numbers;
use super::router::AdminState;

pub(super) async fn show(
    State(state): State<AdminState>,
    Parameters(parameters): Parameters<Vec<(String, String)>>,
) -> Result<Response, ApiError> {
    let query = numbers::parse(&state, &parameters)?;
    json_of(move || {
        let mut history = History::new(query.window, query.run.clone());
        history.update(&state.statistics, |key| query.wants(key));
        write(&history.shown())
    })
    .await
}
