//! `/metrics`: what the registry gathers, as classic text or OpenMetrics.

use axum::extract::{Query, State};
use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, CONTENT_TYPE, VARY};
use axum::response::{IntoResponse, Response};
use prometheus::TextEncoder;

use crate::export::{engine_names, openmetrics};

use super::answer::{ApiError, off_thread, shown};
use super::negotiation::{Exposition, preferred};
use super::router::AdminState;

/// Media type of the classic text.
const CLASSIC: &str = "text/plain; version=0.0.4; charset=utf-8";

pub(super) async fn show(
    State(state): State<AdminState>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let accept: Vec<&str> = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .collect();
    let exposition = preferred(&accept.join(","));
    let (media_type, text) = off_thread(move || {
        let families = state.registry.gather();
        Ok(match exposition {
            Exposition::OpenMetrics => (openmetrics::CONTENT_TYPE, openmetrics::render(&families)),
            Exposition::Classic => {
                let text = TextEncoder::new()
                    .encode_to_string(&families)
                    .map_err(|error| {
                        ApiError::internal(format!("the series can't be written: {error}"))
                    })?;
                (CLASSIC, text)
            }
        })
    })
    .await?;
    Ok(([(CONTENT_TYPE, media_type), (VARY, "Accept")], text).into_response())
}

/// The acceptance counters under vLLM's names.
pub(super) async fn engine_names(
    State(state): State<AdminState>,
    Query(parameters): Query<Vec<(String, String)>>,
) -> Result<Response, ApiError> {
    let source = match parameters.as_slice() {
        [] => None,
        [(name, value)] if name == "source" => {
            Some(engine_names::read_source(value).ok_or_else(|| {
                ApiError::bad_parameter(format!(
                    "source={}: should be requests or server",
                    shown(value)
                ))
            })?)
        }
        _ => {
            return Err(ApiError::bad_parameter(
                "there is only the parameter source, requests or server",
            ));
        }
    };
    let text = off_thread(move || Ok(engine_names::page(&state.statistics, &state.server, source)))
        .await?;
    Ok(([(CONTENT_TYPE, CLASSIC)], text).into_response())
}
