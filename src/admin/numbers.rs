//! `/api/v1/summary` and `/api/v1/snapshot`: the numbers, for people and for machines.

use axum::extract::{Query as Parameters, State};
use axum::response::Response;

use crate::export::{Query, Snapshot, Summary, snapshot as snapshot_of, summary as summary_of};

use crate::store::records::Manifest;

use super::answer::{ApiError, json_of, write};
use super::router::AdminState;

pub(super) async fn summary(
    State(state): State<AdminState>,
    Parameters(parameters): Parameters<Vec<(String, String)>>,
) -> Result<Response, ApiError> {
    let query = parse(&parameters)?;
    json_of(move || {
        write(&Summary {
            manifests: vec![Manifest::clone(&state.manifest)],
            ..summary_of(&state.statistics, &query)
        })
    })
    .await
}

pub(super) async fn snapshot(
    State(state): State<AdminState>,
    Parameters(parameters): Parameters<Vec<(String, String)>>,
) -> Result<Response, ApiError> {
    let query = parse(&parameters)?;
    json_of(move || {
        write(&Snapshot {
            manifests: vec![Manifest::clone(&state.manifest)],
            ..snapshot_of(&state.statistics, &query)
        })
    })
    .await
}

fn parse(parameters: &[(String, String)]) -> Result<Query, ApiError> {
    let pairs = parameters
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    Query::from_pairs(pairs).map_err(|error| ApiError::bad_parameter(error.to_string()))
}
