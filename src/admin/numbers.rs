//! `/api/v1/summary` and `/api/v1/snapshot`: the numbers, for people and for machines.

use axum::extract::{Query as Parameters, State};
use axum::response::Response;

use crate::export::summary::of_snapshot;
use crate::export::{Query, Snapshot, snapshot as snapshot_of};
use crate::runs::Alternation;
use crate::stats::Finding;
use crate::store::records::Manifest;

use super::answer::{ApiError, json_of, shown, write};
use super::router::AdminState;

pub(super) async fn summary(
    State(state): State<AdminState>,
    Parameters(parameters): Parameters<Vec<(String, String)>>,
) -> Result<Response, ApiError> {
    let query = parse(&state, &parameters)?;
    json_of(move || write(&of_snapshot(&take(&state, &query), &query.by))).await
}

pub(super) async fn snapshot(
    State(state): State<AdminState>,
    Parameters(parameters): Parameters<Vec<(String, String)>>,
) -> Result<Response, ApiError> {
    let query = parse(&state, &parameters)?;
    json_of(move || write(&take(&state, &query))).await
}

fn take(state: &AdminState, query: &Query) -> Snapshot {
    let mut snapshot = snapshot_of(&state.statistics, query).beside(&state.server);
    snapshot.manifests = vec![Manifest::clone(&state.manifest)];
    let alternations = state.runs.alternations();
    snapshot
        .findings
        .extend(alternations.into_iter().map(alternation));
    snapshot
}

fn alternation(found: Alternation) -> Finding {
    let property: &str = found.property.into();
    let [one, other] = found.values;
    Finding {
        code: "engine_alternates".to_owned(),
        n: found.n,
        text: format!(
            "The engine behind {} changes back and forth between the values {one} and {other} of {property}: \
             several engines behind one address, whose figures are mixed here.",
            found.lane
        ),
    }
}

fn parse(state: &AdminState, parameters: &[(String, String)]) -> Result<Query, ApiError> {
    let pairs = parameters
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    let query =
        Query::from_pairs(pairs).map_err(|error| ApiError::bad_parameter(error.to_string()))?;
    match &query.run {
        Some(run) if !state.runs.has(run) => Err(ApiError::bad_parameter(format!(
            "run={}: there is no such run; GET /api/v1/runs lists them",
            shown(run)
        ))),
        _ => Ok(query),
    }
}
