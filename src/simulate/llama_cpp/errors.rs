//! What llama.cpp refuses, and how it says so.

use serde_json::Value;

use super::{SLOTS, quoted};
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

fn invalid(message: &str) -> Refusal {
    let body = format!(
        r#"{{"error":{{"code":400,"message":{},"type":"invalid_request_error"}}}}"#,
        quoted(message)
    );
    ("400 Bad Request", body)
}

/// Reads a generation request, or says why llama.cpp would not take it. Whatever model it names, the one that is loaded
/// answers.
pub(super) fn check<'a>(
    state: &'a State,
    route: Route,
    body: &[u8],
) -> Result<Checked<'a>, Refusal> {
    let value: Value =
        serde_json::from_slice(body).map_err(|error| invalid(&not_json(body, &error)))?;
    match route {
        Route::Chat => match value.get("messages") {
            None => return Err(invalid("'messages' is required")),
            Some(messages) if !messages.is_array() => {
                return Err(invalid("Expected 'messages' to be an array"));
            }
            Some(_) => {}
        },
        _ => match value.get("prompt") {
            None => {
                return Err(invalid(
                    "[json.exception.out_of_range.403] key 'prompt' not found",
                ));
            }
            Some(Value::String(_) | Value::Array(_)) => {}
            Some(_) => {
                return Err(invalid(
                    "\"prompt\" elements must be a string, a list of tokens, a JSON object containing a prompt \
                     string, or a list of mixed strings & tokens.",
                ));
            }
        },
    }
    match &value["n"] {
        Value::Null => {}
        Value::Number(n) => {
            if !n.as_u64().is_some_and(|n| (1..=SLOTS as u64).contains(&n)) {
                return Err(invalid(&format!(
                    "Field 'n': Value must be between 1 <= value <= {SLOTS}, but got {n}"
                )));
            }
        }
        other => {
            return Err(invalid(&format!(
                "Field 'n': [json.exception.type_error.302] type must be number, but is {}",
                kind(other)
            )));
        }
    }
    let mut asked = Asked::read(route, &value);
    if route == Route::Completions && value.get("max_tokens").is_none() {
        asked.max_tokens = None;
    }
    asked.stop_token_ids.clear();
    asked.echo = false;
    if asked.sequences() > MAX_SEQUENCES {
        return Err(invalid(&format!(
            "at most {MAX_SEQUENCES} sequences, got {}",
            asked.sequences()
        )));
    }
    let limit = state.settings.max_model_len;
    if let Some(tokens) = asked.prompt_sizes.iter().find(|tokens| **tokens >= limit) {
        return Err(too_long(*tokens, limit));
    }
    let named = state.model(asked.model.as_deref());
    match named.or_else(|| state.model(None)) {
        Some(model) => Ok(Checked {
            body: value,
            asked,
            model,
        }),
        None => Err(invalid("no model is loaded")),
    }
}

fn too_long(tokens: usize, limit: usize) -> Refusal {
    let body = format!(
        concat!(
            r#"{{"error":{{"code":400,"message":"request ({} tokens) exceeds the available context size "#,
            r#"({} tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":{},"n_ctx":{}}}}}"#,
        ),
        tokens, limit, tokens, limit,
    );
    ("400 Bad Request", body)
}

/// What the JSON reader says of a body that is no JSON, near enough.
fn not_json(body: &[u8], error: &serde_json::Error) -> String {
    let place = format!(
        "[json.exception.parse_error.101] parse error at line {}, column {}: ",
        error.line(),
        error.column().max(1)
    );
    if body.is_empty() {
        return place
            + "attempting to parse an empty input; check that your input string or stream contains the expected JSON";
    }
    let line = body
        .split(|byte| *byte == b'\n')
        .nth(error.line().max(1) - 1);
    let read = line.and_then(|line| line.get(..error.column()));
    let read = String::from_utf8_lossy(read.unwrap_or_default());
    format!("{place}syntax error while parsing value - invalid literal; last read: '{read}'")
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
