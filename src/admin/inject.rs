//! `/api/v1/inject`: whether requests are altered to make the engine report, moved while running.

use axum::Json;
use axum::extract::{Request, State};
use serde::{Deserialize, Serialize};

use super::answer::ApiError;
use super::body::json_body;
use super::router::AdminState;

/// The position of the switch, as it is sent and answered.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Position {
    enabled: bool,
}

pub(super) async fn show(State(state): State<AdminState>) -> Json<Position> {
    Json(Position {
        enabled: state.inject.is_on(),
    })
}

pub(super) async fn change(
    State(state): State<AdminState>,
    request: Request,
) -> Result<Json<Position>, ApiError> {
    let body = json_body(request).await?;
    let position: Position = serde_json::from_slice(&body).map_err(|error| {
        ApiError::bad_body(format!(
            "the body must be {{\"enabled\":true}} or {{\"enabled\":false}} ({error})"
        ))
    })?;
    if state.inject.is_on() != position.enabled {
        tracing::info!(
            enabled = position.enabled,
            "injection switched over the admin port"
        );
    }
    state.inject.set(position.enabled);
    Ok(Json(position))
}
