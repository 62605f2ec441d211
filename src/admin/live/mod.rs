//! `/api/v1/stream`: the live feed, as server-sent events.
//!
//! ```text
//! statistics, ring ──► work (one per filter) ──► channel ──► an outbox per subscriber ──► its connection
//! ```
//!
//! What a filter shows is computed once a second for all who watch it, off the runtime's threads, and only while
//! somebody does. Nothing here is called by the data path: the feed looks at what the ring and the statistics hold. A
//! subscriber who does not keep up loses what waits for them and gets the whole state anew.

mod channel;
mod feeds;
mod outbox;
mod patch;
mod work;

use axum::extract::{Query as Parameters, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

pub use feeds::Feeds;

use super::answer::ApiError;
use super::numbers;
use super::router::AdminState;

pub(super) async fn stream(
    State(state): State<AdminState>,
    Parameters(parameters): Parameters<Vec<(String, String)>>,
) -> Result<Response, ApiError> {
    let query = numbers::parse(&state, &parameters)?;
    if state.readiness.is_draining() {
        return Err(ApiError::unavailable(
            "draining",
            "spectap is about to stop; it begins no feed any more",
        ));
    }
    let subscription = state.feeds.clone().subscribe(query, state)?;
    Ok((
        [
            (CONTENT_TYPE.as_str(), "text/event-stream"),
            // nginx would collect the events otherwise.
            ("x-accel-buffering", "no"),
        ],
        axum::body::Body::new(subscription),
    )
        .into_response())
}
