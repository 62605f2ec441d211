//! What SGLang refuses, and how it says so.

use serde_json::{Value, json};

use crate::simulate::http::Request;
use crate::simulate::request::{Asked, Route};
use crate::simulate::settings::Model;
use crate::simulate::state::State;

/// The most sequences that the simulation generates for one request.
const MAX_SEQUENCES: usize = 32;

/// A refusal: its status line and its body.
pub(super) type Refusal = (&'static str, String);

/// A request that is taken.
pub(super) struct Checked<'a> {
    pub(super) body: Value,
    pub(super) asked: Asked,
    pub(super) model: &'a Model,
}

/// SGLang's error object.
pub(super) fn body(message: &str, kind: &str, code: u16) -> String {
    json!({"object": "error", "message": message, "type": kind, "param": null, "code": code})
        .to_string()
}

/// The same inside a stream, spaced as Python's own JSON writer does.
pub(super) fn event(message: &str, kind: &str, code: u16) -> String {
    let (message, kind) = (super::quoted(message), super::quoted(kind));
    format!(
        r#"{{"error": {{"object": "error", "message": {message}, "type": {kind}, "param": null, "code": {code}}}}}"#
    )
}

fn refusal(route: Route, kind: &str, message: &str) -> Refusal {
    let body = match route {
        Route::SglangGenerate => json!({"error": {"message": message}}).to_string(),
        _ => body(message, kind, 400),
    };
    ("400 Bad Request", body)
}

/// Reads a generation request, or says why SGLang would not take it. A model of another name is no reason: there is only
/// one, whatever a request calls it.
pub(super) fn check<'a>(
    state: &'a State,
    route: Route,
    request: &Request,
) -> Result<Checked<'a>, Refusal> {
    let schema = |message: &str| {
        Err::<Checked<'a>, _>(("400 Bad Request", body(message, "Bad Request", 400)))
    };
    let media_type = request.header("content-type").unwrap_or_default();
    let media_type = media_type.split(';').next().unwrap_or_default();
    if route != Route::SglangGenerate && !media_type.eq_ignore_ascii_case("application/json") {
        return schema("Unsupported Media Type: Only 'application/json' is allowed");
    }
    let value: Value = match serde_json::from_slice(&request.body) {
        Ok(value) => value,
        Err(error) => return schema(&format!("JSON decode error: {error}")),
    };
    let sampling = match route {
        Route::SglangGenerate => &value["sampling_params"],
        _ => &value,
    };
    match route {
        Route::Chat if !value["messages"].is_array() => return schema("messages: Field required"),
        Route::Chat if value["messages"].as_array().is_some_and(Vec::is_empty) => {
            return Err(refusal(
                route,
                "BadRequestError",
                "Messages cannot be empty.",
            ));
        }
        Route::Completions if !(value["prompt"].is_string() || value["prompt"].is_array()) => {
            return schema("prompt: Field required");
        }
        Route::Completions if is_empty(&value["prompt"]) => {
            return Err(refusal(route, "BadRequestError", "Prompt cannot be empty"));
        }
        Route::SglangGenerate if is_empty(&value["text"]) && is_empty(&value["input_ids"]) => {
            let message = "Either text, input_ids or input_embeds should be provided.";
            return Err(refusal(route, "BadRequest", message));
        }
        _ => {}
    }
    let limits = ["n", "max_tokens", "max_completion_tokens", "max_new_tokens"];
    if let Some(name) = limits
        .iter()
        .find(|name| sampling[**name].as_i64().is_some_and(|given| given < 1))
    {
        let message = format!("{name} must be positive");
        return Err(refusal(route, "BadRequest", &message));
    }
    if let Some(temperature) = sampling["temperature"]
        .as_f64()
        .filter(|given| *given < 0.0)
    {
        let message = format!("temperature must be non-negative, got {temperature:?}.");
        return Err(refusal(route, "BadRequest", &message));
    }
    let asked = Asked::read(route, &value);
    if asked.sequences() > MAX_SEQUENCES {
        let message = format!(
            "at most {MAX_SEQUENCES} sequences, got {}",
            asked.sequences()
        );
        return Err(refusal(route, "BadRequest", &message));
    }
    let named = state.model(asked.model.as_deref());
    match named.or_else(|| state.model(None)) {
        Some(model) => Ok(Checked {
            body: value,
            asked,
            model,
        }),
        None => schema("no model is served"),
    }
}

fn is_empty(prompt: &Value) -> bool {
    match prompt {
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => true,
    }
}
