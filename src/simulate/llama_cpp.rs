//! Behaves like llama.cpp's server: one event per token, the drafts' numbers in `timings` at the end of each sequence.
//! Checked against captures of a real one.

mod errors;
mod native;
mod openai;
mod pages;
mod stream;
mod timings;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use serde_json::Value;

use self::errors::Checked;
use self::timings::Timings;
use super::http::Request;
use super::log::SequenceEntry;
use super::play::Play;
use super::request::{Asked, Route};
use super::response::{Extra, Responder};
use super::settings::{Level, Settings};
use super::state::State;

const JSON: Option<&str> = Some("application/json; charset=utf-8");

/// Sequences that are generated at the same time, and the most that a request may ask for per prompt.
const SLOTS: usize = 4;

/// How long a stream may be idle before it gets a comment, unless the settings or the request say otherwise.
const PING: Duration = Duration::from_secs(30);

/// What shapes one response.
struct Answer {
    route: Route,
    asked: Asked,
    /// The model's name as a JSON string.
    model: String,
    /// The fingerprint as a JSON string.
    fingerprint: String,
    /// Whether each event has the numbers so far.
    timings_per_token: bool,
    /// Whether numbers of drafts are told at all.
    tells: bool,
    temperature: f32,
    seed: u32,
}

impl Answer {
    /// Tokens of the prompt that a sequence goes on from.
    fn prompt_tokens(&self, play: &Play, index: usize) -> usize {
        let sizes = &self.asked.prompt_sizes;
        match sizes.get(index / self.asked.n) {
            Some(size) if sizes.len() > 1 => *size,
            _ => play.prompt_tokens(),
        }
    }

    /// The `timings` of a sequence so far.
    fn timings(&self, play: &Play, index: usize) -> Timings {
        let empty = SequenceEntry::default();
        let sequence = play.sequences().get(index).unwrap_or(&empty);
        let count = |counts: &[u32]| counts.iter().sum::<u32>();
        Timings {
            prompt_tokens: self.prompt_tokens(play, index),
            predicted: sequence.completion_tokens,
            drafted: if self.tells {
                count(&sequence.drafted)
            } else {
                0
            },
            accepted: count(&sequence.accepted),
            times: play.times(),
        }
    }

    /// Whether the numbers of a sequence's drafts are there to be told.
    fn has_drafts(&self, sequence: &SequenceEntry) -> bool {
        self.tells && sequence.drafted.iter().any(|drafted| *drafted > 0)
    }
}

/// Answers one request.
pub(super) async fn answer(
    state: &Arc<State>,
    request: Request,
    responder: &mut Responder,
) -> io::Result<()> {
    let mut extra = Extra::default();
    let path = request.path.as_str();
    if request.method == "OPTIONS" {
        for (name, value) in [
            ("Access-Control-Allow-Credentials", "true"),
            ("Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS"),
            ("Access-Control-Allow-Headers", "*"),
        ] {
            extra.route.push((name, value.to_owned()));
        }
        return responder
            .reply("200 OK", Some("text/html"), &extra, "")
            .await;
    }
    if !has_key(&state.settings, &request) {
        let body =
            r#"{"error":{"message":"Invalid API Key","type":"authentication_error","code":401}}"#;
        return responder
            .reply("401 Unauthorized", JSON, &extra, body)
            .await;
    }
    let page = match (path, request.method.as_str()) {
        ("/v1/chat/completions" | "/chat/completions", "POST") => {
            return generate(state, &request, Route::Chat, responder).await;
        }
        ("/v1/completions", "POST") => {
            return generate(state, &request, Route::Completions, responder).await;
        }
        ("/completion" | "/completions", "POST") => {
            return generate(state, &request, Route::LlamaCompletion, responder).await;
        }
        ("/metrics", "GET" | "HEAD") => {
            let start = (state.started as u64).to_string();
            extra.route.push(("Process-Start-Time-Unix", start));
            let page = pages::metrics(state);
            let text = Some("text/plain; version=0.0.4");
            return responder.reply("200 OK", text, &extra, &page).await;
        }
        ("/health" | "/v1/health", "GET" | "HEAD") => r#"{"status":"ok"}"#.to_owned(),
        ("/v1/models" | "/models", "GET" | "HEAD") => pages::models(&state.settings),
        ("/props", "GET" | "HEAD") => pages::props(&state.settings),
        _ => {
            let body =
                r#"{"error":{"message":"File Not Found","type":"not_found_error","code":404}}"#;
            return responder.reply("404 Not Found", JSON, &extra, body).await;
        }
    };
    responder.reply("200 OK", JSON, &extra, &page).await
}

fn has_key(settings: &Settings, request: &Request) -> bool {
    let open = matches!(request.path.as_str(), "/health" | "/v1/health");
    let bearer = request
        .header("authorization")
        .and_then(|value| value.strip_prefix("Bearer "));
    let given = bearer.or_else(|| request.header("x-api-key"));
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
    let settings = &state.settings;
    let Checked { body, asked, model } = match errors::check(state, route, &request.body) {
        Ok(checked) => checked,
        Err((status, body)) => {
            let extra = Extra::default();
            return responder.reply(status, JSON, &extra, &body).await;
        }
    };
    let mut play = Play::start(state, model, &asked, id);
    play.keep_alive(ping_interval(settings, &body), ":");
    let answer = Answer {
        route,
        model: quoted(&model.name),
        fingerprint: quoted(settings.fingerprint.as_deref().unwrap_or("b0-unknown")),
        timings_per_token: body["timings_per_token"] == true,
        tells: settings.level != Level::None,
        temperature: body["temperature"].as_f64().unwrap_or(0.8) as f32,
        seed: body["seed"]
            .as_u64()
            .and_then(|seed| u32::try_from(seed).ok())
            .unwrap_or(u32::MAX),
        asked,
    };
    if answer.asked.stream {
        stream::send(play, &answer, responder).await
    } else {
        single(play, &answer, responder).await
    }
}

/// The ids of both OpenAI routes are the same; the native route has none.
fn id(rng: &mut Rng) -> String {
    let name: String = std::iter::repeat_with(|| rng.alphanumeric())
        .take(32)
        .collect();
    format!("chatcmpl-{name}")
}

/// The request's own interval in whole seconds, else the server's; none at all if it is not positive.
fn ping_interval(settings: &Settings, body: &Value) -> Option<Duration> {
    match body["sse_ping_interval"].as_i64() {
        Some(seconds) => u64::try_from(seconds)
            .ok()
            .filter(|seconds| *seconds > 0)
            .map(Duration::from_secs),
        None => Some(settings.sse_keep_alive_interval.unwrap_or(PING)),
    }
}

/// Generates to the end, then sends it all.
async fn single(mut play: Play, answer: &Answer, responder: &mut Responder) -> io::Result<()> {
    let mut texts = vec![String::new(); play.sequences().len()];
    while let Some(piece) = play.next(None).await? {
        if let Some(text) = texts.get_mut(piece.index) {
            text.push_str(&piece.text);
        }
    }
    let mut told: Vec<_> = play
        .sequences()
        .iter()
        .map(|sequence| answer.has_drafts(sequence))
        .collect();
    let body = if answer.route == Route::LlamaCompletion {
        answer.native_whole(&play, &texts)
    } else {
        // Of several sequences only the first one's counts and numbers are told.
        told.truncate(1);
        answer.openai_whole(&play, &texts)
    };
    play.record(true, &told);
    responder
        .reply("200 OK", JSON, &Extra::default(), &body)
        .await
}

/// `text` as a JSON string.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}
