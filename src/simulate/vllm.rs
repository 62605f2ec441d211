//! Behaves like a vLLM 0.32.0 server: routes, heads, bodies and streams byte for byte as captured from a real one.

mod errors;
mod prometheus;
mod report;
mod single;
mod stream;

use std::io;
use std::sync::Arc;

use serde_json::Value;

use self::errors::Refusal;
use self::report::Report;
use super::http::Request;
use super::play::Play;
use super::request::Route;
use super::response::{Extra, Responder};
use super::settings::{Model, Settings};
use super::state::State;

const JSON: Option<&str> = Some("application/json");

/// Answers one request.
pub(super) async fn answer(
    state: &Arc<State>,
    request: Request,
    responder: &mut Responder,
) -> io::Result<()> {
    let settings = &state.settings;
    if locked(&request.path) && !has_key(settings, &request) {
        return responder
            .reply(
                "401 Unauthorized",
                JSON,
                &Extra::default(),
                r#"{"error":"Unauthorized"}"#,
            )
            .await;
    }
    let extra = Extra {
        vary: true,
        request_id: request_id(settings, &request),
        ..Extra::default()
    };
    match (request.path.as_str(), request.method.as_str()) {
        ("/health", "GET") | ("/ping", "GET" | "POST") => {
            responder.reply("200 OK", None, &extra, "").await
        }
        ("/version", "GET") => {
            responder
                .reply("200 OK", JSON, &extra, r#"{"version":"0.32.0"}"#)
                .await
        }
        ("/load", "GET") => {
            responder
                .reply("200 OK", JSON, &extra, r#"{"server_load":0}"#)
                .await
        }
        ("/v1/models", "GET") => {
            responder
                .reply("200 OK", JSON, &extra, &models(settings))
                .await
        }
        ("/metrics", "GET") => {
            let page = prometheus::page(state);
            responder
                .reply(
                    "200 OK",
                    Some("text/plain; version=1.0.0; charset=utf-8"),
                    &extra,
                    &page,
                )
                .await
        }
        ("/inference/v1/abort_requests", "POST") => {
            abort(state, &request.body);
            responder.reply("200 OK", None, &extra, "").await
        }
        ("/v1/chat/completions", "POST") => {
            generate(state, &request, Route::Chat, extra, responder).await
        }
        ("/v1/chat/completions/batch", "POST") => {
            generate(state, &request, Route::ChatBatch, extra, responder).await
        }
        ("/v1/completions", "POST") => {
            generate(state, &request, Route::Completions, extra, responder).await
        }
        ("/inference/v1/generate", "POST") => {
            generate(state, &request, Route::Generate, extra, responder).await
        }
        ("/health" | "/ping" | "/version" | "/load" | "/v1/models" | "/metrics", _) => {
            wrong_method("GET", extra, responder).await
        }
        (
            "/inference/v1/abort_requests"
            | "/v1/chat/completions"
            | "/v1/chat/completions/batch"
            | "/v1/completions"
            | "/inference/v1/generate",
            _,
        ) => wrong_method("POST", extra, responder).await,
        _ => {
            responder
                .reply("404 Not Found", JSON, &extra, r#"{"detail":"Not Found"}"#)
                .await
        }
    }
}

async fn wrong_method(
    allowed: &str,
    mut extra: Extra,
    responder: &mut Responder,
) -> io::Result<()> {
    extra.route.push(("allow", allowed.to_owned()));
    responder
        .reply(
            "405 Method Not Allowed",
            JSON,
            &extra,
            r#"{"detail":"Method Not Allowed"}"#,
        )
        .await
}

fn locked(path: &str) -> bool {
    path.starts_with("/v1") || path.starts_with("/inference/")
}

fn has_key(settings: &Settings, request: &Request) -> bool {
    settings.api_key.as_ref().is_none_or(|key| {
        request
            .header("authorization")
            .and_then(|value| value.strip_prefix("Bearer "))
            == Some(key.as_str())
    })
}

fn request_id(settings: &Settings, request: &Request) -> Option<String> {
    settings
        .request_id_headers
        .then(|| match request.header("x-request-id") {
            Some(id) => id.to_owned(),
            None => format!("{:032x}", fastrand::u128(..)),
        })
}

fn models(settings: &Settings) -> String {
    let now = State::seconds();
    let models: Vec<_> = settings
        .models
        .iter()
        .map(|model| card(model, now, settings.max_model_len))
        .collect();
    format!(r#"{{"object":"list","data":[{}]}}"#, models.join(","))
}

fn card(model: &Model, now: u64, max_model_len: usize) -> String {
    format!(
        concat!(
            r#"{{"id":{id},"object":"model","created":{now},"owned_by":"vllm","root":{root},"parent":null,"#,
            r#""max_model_len":{max_model_len},"permission":[{{"id":"modelperm-{permission:016x}","#,
            r#""object":"model_permission","created":{now},"allow_create_engine":false,"allow_sampling":true,"#,
            r#""allow_logprobs":true,"allow_search_indices":false,"allow_view":true,"allow_fine_tuning":false,"#,
            r#""organization":"*","group":null,"is_blocking":false}}]}}"#,
        ),
        id = quoted(&model.name),
        now = now,
        max_model_len = max_model_len,
        root = quoted(&model.root),
        permission = fastrand::u64(..),
    )
}

fn abort(state: &State, body: &[u8]) {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    for id in body["request_ids"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
    {
        state.abort(id);
    }
}

async fn generate(
    state: &Arc<State>,
    request: &Request,
    route: Route,
    mut extra: Extra,
    responder: &mut Responder,
) -> io::Result<()> {
    let (asked, model) = match errors::check(state, route, &request.body) {
        Ok(checked) => checked,
        Err(Refusal { status, body }) => return responder.reply(status, JSON, &extra, &body).await,
    };
    if !asked.stream {
        extra
            .route
            .extend(load_report(request).map(|report| ("endpoint-load-metrics", report)));
    }
    let mut play = Play::start(state, model, &asked, |rng| {
        let named = request.header("x-request-id").map(str::to_owned);
        let name = named.unwrap_or_else(|| format!("{:016x}", rng.u64(..)));
        format!("{}{name}", id_prefix(route))
    });
    play.keep_alive(state.settings.sse_keep_alive_interval, ": keep-alive");
    let report = Report::new(&state.settings, model, &asked);
    if asked.stream {
        stream::send(play, &asked, &report, &extra, responder).await
    } else {
        single::send(play, &asked, &report, &extra, responder).await
    }
}

/// What the ids of a route's responses begin with.
fn id_prefix(route: Route) -> &'static str {
    match route {
        Route::Completions => "cmpl-",
        Route::Generate => "generate-tokens-",
        _ => "chatcmpl-",
    }
}

/// The load report of the ORCA standard, in the form that the client asks for.
fn load_report(request: &Request) -> Option<String> {
    match request.header("endpoint-load-metrics-format")? {
        "JSON" => Some(
            r#"JSON {"named_metrics": {"num_requests_waiting": 0.0, "kv_cache_usage_perc": 0.0}}"#
                .to_owned(),
        ),
        "TEXT" => Some(
            "TEXT named_metrics.num_requests_waiting=0.0, named_metrics.kv_cache_usage_perc=0.0"
                .to_owned(),
        ),
        _ => None,
    }
}

/// `text` as a JSON string.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}
