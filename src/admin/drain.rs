//! `/api/v1/drain`: begins the drain as SIGTERM does, for a container without a shell, and tells how far it is.

use std::sync::{Arc, OnceLock};

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use serde::Serialize;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::answer::ApiError;
use super::body::json_body;
use super::router::AdminState;

/// The drain of one instance: who asks for it, and how it ended. All clones share it.
#[derive(Clone, Debug, Default)]
pub struct Drain {
    asked: CancellationToken,
    was_cut: Arc<OnceLock<bool>>,
}

impl Drain {
    /// Fires when somebody has asked for the drain over the admin port.
    pub fn asked(&self) -> &CancellationToken {
        &self.asked
    }

    /// Says that every stream is over, and whether some were cut.
    pub fn is_over(&self, was_cut: bool) {
        self.was_cut.get_or_init(|| was_cut);
    }
}

/// How far the drain is.
#[derive(Debug, Serialize)]
pub(super) struct Progress {
    state: &'static str,
    /// Whether streams were cut; unknown before the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    cut: Option<bool>,
}

impl AdminState {
    fn progress(&self) -> Progress {
        let cut = self.drain.was_cut.get().copied();
        let state = match cut {
            Some(_) => "over",
            None if self.readiness.is_draining() => "draining",
            None => "serving",
        };
        Progress { state, cut }
    }
}

pub(super) async fn show(State(state): State<AdminState>) -> Json<Progress> {
    Json(state.progress())
}

pub(super) async fn begin(
    State(state): State<AdminState>,
    request: Request,
) -> Result<(StatusCode, Json<Progress>), ApiError> {
    let body = json_body(request).await?;
    let said = serde_json::from_slice::<Map<String, Value>>(&body);
    if !said.is_ok_and(|said| said.is_empty()) {
        return Err(ApiError::bad_body("the body must be {}"));
    }
    // Before the answer: whoever reads it may ask /readyz at once.
    state.readiness.start_draining();
    state.drain.asked.cancel();
    Ok((StatusCode::ACCEPTED, Json(state.progress())))
}
