//! Behaves like TensorRT-LLM's OpenAI server with `per_request_spec_decode_stats: true`: each choice tells its own
//! acceptance numbers where it finishes, and tells nothing where nothing was drafted.

mod chunks;
mod prometheus;

use std::io;
use std::sync::Arc;

use serde_json::{Value, json};

use self::chunks::Answer;
use super::http::Request;
use super::play::Play;
use super::request::{Asked, Route};
use super::response::{Extra, Responder};
use super::settings::{Level, Model};
use super::state::State;

const JSON: Option<&str> = Some("application/json");
/// The most sequences that the simulation generates for one request.
const MAX_SEQUENCES: usize = 32;

/// What a stream says when the engine dies under it.
const FAILURE: &str = r#"{"object":"error","message":"Internal server error","type":"InternalServerError","param":null,"code":500}"#;

/// Answers one request.
pub(super) async fn answer(
    state: &Arc<State>,
    request: Request,
    responder: &mut Responder,
) -> io::Result<()> {
    let mut extra = Extra::default();
    match (request.path.as_str(), request.method.as_str()) {
        ("/health", "GET") => responder.reply("200 OK", None, &extra, "").await,
        ("/version", "GET") => {
            responder
                .reply("200 OK", JSON, &extra, r#"{"version":"1.3.0"}"#)
                .await
        }
        ("/v1/models", "GET") => {
            responder
                .reply("200 OK", JSON, &extra, &models(state))
                .await
        }
        // The list of iteration statistics, which `enable_iter_perf_stats` would fill.
        ("/metrics", "GET") => responder.reply("200 OK", JSON, &extra, "[]").await,
        ("/prometheus/metrics", "GET") => {
            let page = prometheus::page(state);
            responder
                .reply(
                    "200 OK",
                    Some("text/plain; version=0.0.4; charset=utf-8"),
                    &extra,
                    &page,
                )
                .await
        }
        ("/v1/chat/completions", "POST") => {
            generate(state, &request, Route::Chat, &extra, responder).await
        }
        ("/v1/completions", "POST") => {
            generate(state, &request, Route::Completions, &extra, responder).await
        }
        (
            path @ ("/health"
            | "/version"
            | "/v1/models"
            | "/metrics"
            | "/prometheus/metrics"
            | "/v1/chat/completions"
            | "/v1/completions"),
            _,
        ) => {
            let allowed = if path.ends_with("completions") {
                "POST"
            } else {
                "GET"
            };
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
        _ => {
            responder
                .reply("404 Not Found", JSON, &extra, r#"{"detail":"Not Found"}"#)
                .await
        }
    }
}

fn models(state: &State) -> String {
    let created = State::seconds();
    let card = |model: &Model| json!({"id": model.name, "object": "model", "created": created, "owned_by": "tensorrt_llm"});
    let data: Vec<_> = state.settings.models.iter().map(card).collect();
    json!({"object": "list", "data": data}).to_string()
}

/// A refusal: its status line and its body.
type Refusal = (&'static str, String);

fn refusal(status: &'static str, kind: &str, message: &str) -> Refusal {
    let code = status
        .split(' ')
        .next()
        .and_then(|code| code.parse::<u16>().ok());
    (
        status,
        json!({"object": "error", "message": message, "type": kind, "param": null, "code": code})
            .to_string(),
    )
}

fn check<'a>(state: &'a State, route: Route, body: &[u8]) -> Result<(Asked, &'a Model), Refusal> {
    let bad = |message: &str| refusal("400 Bad Request", "BadRequestError", message);
    let value: Value = serde_json::from_slice(body)
        .map_err(|error| bad(&format!("JSON decode error: {error}")))?;
    let (name, right) = match route {
        Route::Completions => (
            "prompt",
            value["prompt"].is_string() || value["prompt"].is_array(),
        ),
        _ => ("messages", value["messages"].is_array()),
    };
    if !right {
        return Err(bad(&format!("body.{name}: Field required")));
    }
    if value["stream_options"].is_object() && !value["stream"].as_bool().unwrap_or_default() {
        return Err(bad(
            "Stream options can only be defined when `stream=True`.",
        ));
    }
    let asked = Asked::read(route, &value);
    if asked.sequences() > MAX_SEQUENCES {
        return Err(bad(&format!(
            "n must be at most {MAX_SEQUENCES}, got {}",
            asked.sequences()
        )));
    }
    match state.model(asked.model.as_deref()) {
        Some(model) => Ok((asked, model)),
        None => {
            let name = asked.model.unwrap_or_default();
            Err(refusal(
                "404 Not Found",
                "NotFoundError",
                &format!("The model `{name}` does not exist."),
            ))
        }
    }
}

async fn generate(
    state: &Arc<State>,
    request: &Request,
    route: Route,
    extra: &Extra,
    responder: &mut Responder,
) -> io::Result<()> {
    let (asked, model) = match check(state, route, &request.body) {
        Ok(checked) => checked,
        Err((status, body)) => return responder.reply(status, JSON, extra, &body).await,
    };
    let prefix = if route == Route::Completions {
        "cmpl-"
    } else {
        "chatcmpl-"
    };
    let mut play = Play::start(state, model, &asked, |rng| {
        format!("{prefix}{:016x}", rng.u64(..))
    });
    let answer = Answer {
        route,
        model: Value::from(model.name.as_str()).to_string(),
        k: model.acceptance.k(),
        adaptive: state.settings.adaptive,
        tells: state.settings.level != Level::None,
    };
    if asked.stream {
        stream(&mut play, &asked, &answer, extra, responder).await
    } else {
        let mut texts = vec![String::new(); play.sequences().len()];
        while let Some(piece) = play.next(None).await? {
            if let Some(text) = texts.get_mut(piece.index) {
                text.push_str(&piece.text);
            }
        }
        let body = answer.whole(&play, &texts);
        let told = answer.told(&play);
        play.record(true, &told);
        responder.reply("200 OK", JSON, extra, &body).await
    }
}

async fn stream(
    play: &mut Play,
    asked: &Asked,
    answer: &Answer,
    extra: &Extra,
    responder: &mut Responder,
) -> io::Result<()> {
    responder.start_events(extra).await?;
    let mut begun = false;
    while let Some(piece) = play.next(Some(responder)).await? {
        if !std::mem::replace(&mut begun, true) && answer.route == Route::Chat {
            for index in 0..play.sequences().len() {
                // TensorRT-LLM writes its first event with a space before the blank line.
                let space = if index == 0 { " " } else { "" };
                responder.event(&(answer.role(play, index) + space)).await?;
            }
        }
        responder.event(&answer.chunk(play, &piece)).await?;
    }
    if play.failed() {
        play.record_failure();
        responder.event(FAILURE).await?;
        return responder.end_events().await;
    }
    play.before_trailer().await;
    if asked.include_usage {
        responder.event(&answer.usage_chunk(play)).await?;
    }
    let told = answer.told(play);
    play.record(asked.include_usage, &told);
    responder.end_events().await
}
