//! Behaves like an SGLang 0.5.23 server: acceptance numbers on the OpenAI routes where the request asks for them, on its
//! own `/generate` always, and nowhere where no step ran.

mod chunks;
mod details;
mod errors;
mod native;
mod pages;
mod single;
mod stream;

use std::io;
use std::sync::Arc;

use serde_json::Value;

use self::details::Details;
use self::errors::Checked;
use super::http::Request;
use super::play::Play;
use super::request::{Asked, Route};
use super::response::{Extra, Responder};
use super::settings::{Level, Model, Settings};
use super::state::State;

const JSON: Option<&str> = Some("application/json");

/// What shapes one response.
struct Answer {
    route: Route,
    /// The model's name as the request has it, as a JSON string.
    model: String,
    /// Usage at the end of a stream.
    usage_event: bool,
    /// Usage on each event with text; SGLang does that without a usage event, too.
    usage_on_each: bool,
    /// Sequences per prompt.
    n: usize,
    /// Whether the response has `sglext`.
    asked_details: bool,
    details: Details,
    /// Whether chunks have all members, nulls included.
    nulls: bool,
}

impl Answer {
    fn new(settings: &Settings, model: &Model, asked: &Asked, body: &Value) -> Self {
        Self {
            route: asked.route,
            model: quoted(asked.model.as_deref().unwrap_or("default")),
            usage_event: asked.include_usage || settings.force_include_usage,
            usage_on_each: asked.continuous_usage,
            n: asked.n,
            asked_details: body["return_spec_tokens_details"] == true
                && settings.level != Level::None,
            details: Details::new(model),
            nulls: settings.sglang_chunks_with_nulls,
        }
    }

    /// The text that all objects of a response begin with.
    fn start(&self, play: &Play, object: &str) -> String {
        format!(
            r#"{{"id":{},"object":"{object}","created":{},"model":{},"choices":["#,
            quoted(&play.id),
            play.created,
            self.model,
        )
    }

    /// The `sglext` object: of one sequence per prompt the first one's numbers, else a list; `None` where no sequence has
    /// any.
    fn sglext(&self, play: &Play) -> Option<String> {
        if !self.asked_details {
            return None;
        }
        let mut details = play
            .sequences()
            .iter()
            .filter_map(|sequence| self.details.object(sequence));
        let details = if self.n > 1 {
            let list: Vec<_> = details.collect();
            (!list.is_empty()).then(|| format!("[{}]", list.join(",")))?
        } else {
            details.next()?
        };
        Some(format!(r#"{{"spec_tokens_details":{details}}}"#))
    }

    /// Of each sequence whether `sglext` tells its numbers.
    fn told(&self, play: &Play) -> Vec<bool> {
        let mut told: Vec<_> = play
            .sequences()
            .iter()
            .map(|sequence| self.asked_details && self.details.object(sequence).is_some())
            .collect();
        if self.n == 1 {
            // Of several prompts only the first one that has numbers is told.
            let first = told.iter().position(|told| *told);
            told.iter_mut()
                .enumerate()
                .for_each(|(index, told)| *told = Some(index) == first);
        }
        told
    }
}

/// Answers one request.
pub(super) async fn answer(
    state: &Arc<State>,
    request: Request,
    responder: &mut Responder,
) -> io::Result<()> {
    let extra = Extra::default();
    if !has_key(&state.settings, &request) {
        let body = r#"{"error":"Unauthorized"}"#;
        return responder
            .reply("401 Unauthorized", JSON, &extra, body)
            .await;
    }
    let page = match (request.path.as_str(), request.method.as_str()) {
        ("/v1/chat/completions", "POST") => {
            return generate(state, &request, Route::Chat, responder).await;
        }
        ("/v1/completions", "POST") => {
            return generate(state, &request, Route::Completions, responder).await;
        }
        ("/generate", "POST" | "PUT") => return native::answer(state, &request, responder).await,
        ("/health" | "/health_generate" | "/ping" | "/ready", "GET") => {
            return responder.reply("200 OK", None, &extra, "").await;
        }
        ("/metrics", "GET") => {
            let page = pages::metrics(state);
            let text = Some("text/plain; version=1.0.0; charset=utf-8");
            return responder.reply("200 OK", text, &extra, &page).await;
        }
        ("/v1/models", "GET") => pages::models(&state.settings),
        ("/server_info" | "/get_server_info", "GET") => pages::server_info(state),
        ("/model_info" | "/get_model_info", "GET") => pages::model_info(&state.settings),
        (path, _) => return not_served(path, responder).await,
    };
    responder.reply("200 OK", JSON, &extra, &page).await
}

/// A path that does not exist, or not for this method.
async fn not_served(path: &str, responder: &mut Responder) -> io::Result<()> {
    let allowed = match path {
        "/v1/chat/completions" | "/v1/completions" => "POST",
        "/generate" => "POST, PUT",
        "/health" | "/health_generate" | "/ping" | "/ready" | "/metrics" | "/v1/models"
        | "/server_info" | "/get_server_info" | "/model_info" | "/get_model_info" => "GET",
        _ => {
            let body = errors::body("Not Found", "404", 404);
            return responder
                .reply("404 Not Found", JSON, &Extra::default(), &body)
                .await;
        }
    };
    let extra = Extra {
        route: vec![("allow", allowed.to_owned())],
        ..Extra::default()
    };
    let body = errors::body("Method Not Allowed", "405", 405);
    responder
        .reply("405 Method Not Allowed", JSON, &extra, &body)
        .await
}

fn has_key(settings: &Settings, request: &Request) -> bool {
    let open = matches!(
        request.path.as_str(),
        "/health" | "/health_generate" | "/metrics"
    );
    let given = request
        .header("authorization")
        .and_then(|value| value.strip_prefix("Bearer "));
    open || settings
        .api_key
        .as_deref()
        .is_none_or(|key| given == Some(key))
}

async fn generate(
    state: &Arc<State>,
    request: &Request,
    route: Route,
    responder: &mut Responder,
) -> io::Result<()> {
    let Checked { body, asked, model } = match errors::check(state, route, request) {
        Ok(checked) => checked,
        Err((status, body)) => {
            return responder
                .reply(status, JSON, &Extra::default(), &body)
                .await;
        }
    };
    let play = Play::start(state, model, &asked, request_id);
    let answer = Answer::new(&state.settings, model, &asked, &body);
    if asked.stream {
        stream::send(play, &asked, &answer, responder).await
    } else {
        single::send(play, &asked, &answer, responder).await
    }
}

/// The id of a request, which is its responses' id on all routes.
fn request_id(rng: &mut fastrand::Rng) -> String {
    format!("{:032x}", rng.u128(..))
}

/// `text` as a JSON string.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}
