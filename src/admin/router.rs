//! The paths of the admin port and what they read.

use std::sync::Arc;

use axum::Router;
use axum::http::{Method, Uri};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::get;
use prometheus::Registry;

use crate::counters::TapCounters;
use crate::runs::Runs;
use crate::stats::Statistics;
use crate::store::ObservationRing;
use crate::store::records::Manifest;
use crate::switch::InjectSwitch;

use super::answer::ApiError;
use super::guard::{self, Access};
use super::health::{self, Readiness};
use super::live::Feeds;
use super::{
    answer, compare, export, history, inject, live, metrics, numbers, page, requests, runs,
};

/// What the admin port reads, and the switch that it moves. Cheap to clone: all clones share their values.
#[derive(Clone)]
pub struct AdminState {
    /// The series of `/metrics`.
    pub registry: Registry,
    /// The numbers of `/api/v1/summary` and `/api/v1/snapshot`.
    pub statistics: Arc<Statistics>,
    /// The observations of `/api/v1/requests`.
    pub ring: Arc<ObservationRing>,
    /// The switch of `/api/v1/inject`.
    pub inject: InjectSwitch,
    /// Where the numbers come from, for snapshots, summaries and exports.
    pub manifest: Arc<Manifest>,
    /// The runs of `/api/v1/runs`.
    pub runs: Runs,
    /// What `/readyz` tells.
    pub readiness: Arc<Readiness>,
    /// How many requests are under way, for the live feed.
    pub counters: TapCounters,
    /// Who watches.
    pub feeds: Feeds,
    /// Who may read what.
    pub access: Arc<Access>,
}

/// Builds the admin port's router.
pub fn router(state: AdminState) -> Router {
    let access = state.access.clone();
    Router::new()
        .route("/", get(page::shell))
        .route("/page/{name}", get(page::file))
        .route("/metrics", get(metrics::show))
        .route("/livez", get(health::live))
        .route("/readyz", get(health::ready))
        .route("/api/v1/summary", get(numbers::summary))
        .route("/api/v1/snapshot", get(numbers::snapshot))
        .route("/api/v1/history", get(history::show))
        .route("/api/v1/compare", get(compare::show))
        .route("/api/v1/stream", get(live::stream))
        .route("/api/v1/requests", get(requests::list))
        .route("/api/v1/requests/{id}", get(requests::show))
        .route("/api/v1/export", get(export::show))
        .route("/api/v1/inject", get(inject::show).post(inject::change))
        .route("/api/v1/runs", get(runs::list).post(runs::begin))
        .fallback(unknown_path)
        .method_not_allowed_fallback(wrong_method)
        .with_state(state)
        // The last layer is the outermost: refusals of the guard carry the headers too.
        .layer(from_fn_with_state(access, guard::check))
        .layer(from_fn(answer::with_common_headers))
}

async fn unknown_path(uri: Uri) -> ApiError {
    ApiError::not_found(format!(
        "there is no '{}' here; GET / lists what there is",
        answer::shown(uri.path())
    ))
}

/// The router adds `Allow`.
async fn wrong_method(method: Method, uri: Uri) -> ApiError {
    ApiError::method_not_allowed(format!(
        "'{}' does not take {}; the Allow header names what it takes",
        answer::shown(uri.path()),
        answer::shown(method.as_str())
    ))
}
