//! What vLLM refuses, in its order and its words.

use serde_json::Value;

use super::quoted;
use crate::simulate::request::{Asked, Route};
use crate::simulate::settings::Model;
use crate::simulate::state::State;

/// The most sequences that the simulation generates for one request.
const MAX_SEQUENCES: usize = 32;
/// vLLM takes a prompt for too long when it has more characters per allowed token than this.
const CHARACTERS_PER_TOKEN: usize = 13;

/// An answer that refuses a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: &'static str,
    pub(super) body: String,
}

impl Refusal {
    fn new(status: &'static str, kind: &str, param: Option<&str>, message: &str) -> Self {
        let code = status.split(' ').next().unwrap_or_default();
        let (message, param) = (
            quoted(message),
            param.map_or_else(|| "null".to_owned(), quoted),
        );
        Self {
            status,
            body: format!(
                r#"{{"error":{{"message":{message},"type":"{kind}","param":{param},"code":{code}}}}}"#
            ),
        }
    }

    /// A value that vLLM itself refuses.
    fn value(parameter: &str, message: &str) -> Self {
        Self::new(
            "400 Bad Request",
            "BadRequestError",
            Some(parameter),
            message,
        )
    }

    /// Values that the request's schema refuses, each as pydantic words it.
    fn schema(place: &str, errors: &[String]) -> Self {
        let number = errors.len();
        let plural = if number == 1 { "" } else { "s" };
        let message = format!(
            "{number} validation error{plural}:\n  {}",
            errors.join("\n  ")
        );
        Self::new("400 Bad Request", "Bad Request", Some(place), &message)
    }
}

/// Reads a generation request, or says why vLLM would not take it.
pub(super) fn check<'a>(
    state: &'a State,
    route: Route,
    body: &[u8],
) -> Result<(Asked, &'a Model), Refusal> {
    if body.is_empty() {
        let error = "{'type': 'missing', 'loc': 'body', 'msg': 'Field required', 'input': 'None'}";
        return Err(Refusal::schema("body", &[error.to_owned()]));
    }
    let value: Value = serde_json::from_slice(body).map_err(|error| not_json(body, &error))?;
    let Some(members) = value.as_object() else {
        let message = "Input should be a valid dictionary or object to extract fields from";
        let error = pydantic("model_attributes_type", "body", message, &python(&value));
        return Err(Refusal::schema("body", &[error]));
    };
    let stream = value["stream"].as_bool().unwrap_or_default();
    if truthy(&value["stream_options"]) && !stream {
        let message =
            "Stream options can only be defined when `stream=True`. (parameter=stream_options)";
        return Err(Refusal::value("stream_options", message));
    }
    let needed = match route {
        Route::Chat | Route::ChatBatch => "messages",
        Route::Completions => "prompt",
        _ => "token_ids",
    };
    if !members.contains_key(needed) {
        let place = format!("body.{needed}");
        let error = pydantic(
            "missing",
            &place,
            "Field required",
            &format!("<dict of {} items>", members.len()),
        );
        return Err(Refusal::schema(&place, &[error]));
    }
    check_prompt(route, &value[needed])?;
    let asked = Asked::read(route, &value);
    let Some(model) = state.model(asked.model.as_deref()) else {
        let name = asked.model.as_deref().unwrap_or_default();
        let known: Vec<_> = state
            .settings
            .models
            .iter()
            .map(|model| model.name.as_str())
            .collect();
        let message = format!(
            "The model `{name}` does not exist. Valid aliases: {}.",
            known.join(", ")
        );
        return Err(Refusal::new(
            "404 Not Found",
            "NotFoundError",
            Some("model"),
            &message,
        ));
    };
    check_values(state, route, &value, &asked)?;
    Ok((asked, model))
}

fn check_prompt(route: Route, prompt: &Value) -> Result<(), Refusal> {
    let input = python(prompt);
    match route {
        Route::Completions if !(prompt.is_string() || prompt.is_array()) => {
            let list = pydantic(
                "list_type",
                "body.prompt",
                "Input should be a valid list",
                &input,
            );
            let string = pydantic(
                "string_type",
                "body.prompt",
                "Input should be a valid string",
                &input,
            );
            Err(Refusal::schema(
                "body.prompt",
                &[list.clone(), list.clone(), string, list],
            ))
        }
        Route::Chat | Route::ChatBatch if !prompt.is_array() => {
            let list = pydantic(
                "list_type",
                "body.messages",
                "Input should be a valid list",
                &input,
            );
            Err(Refusal::schema("body.messages", &[list]))
        }
        Route::Generate if !prompt.is_array() => {
            let list = pydantic(
                "list_type",
                "body.token_ids",
                "Input should be a valid list",
                &input,
            );
            Err(Refusal::schema("body.token_ids", &[list]))
        }
        _ => Ok(()),
    }
}

fn check_values(state: &State, route: Route, value: &Value, asked: &Asked) -> Result<(), Refusal> {
    if route == Route::Chat
        && let Some(choice) = forced_tool(value)
    {
        let message = format!("tool_choice={choice} requires --tool-call-parser to be set");
        return Err(Refusal::new(
            "400 Bad Request",
            "BadRequestError",
            None,
            &message,
        ));
    }
    let limit = state.settings.max_model_len;
    let characters = asked.prompt_text.chars().count();
    if characters > limit * CHARACTERS_PER_TOKEN {
        return Err(Refusal::value(
            "input_text",
            &format!(
                "This model's maximum context length is {limit} tokens. However, your prompt contains {characters} \
                 characters (more than {most} characters, which is the upper bound for {limit} input tokens). Please \
                 reduce the length of the input prompt. (parameter=input_text, value={characters})",
                most = limit * CHARACTERS_PER_TOKEN,
            ),
        ));
    }
    let sampling = if route == Route::Generate {
        &value["sampling_params"]
    } else {
        value
    };
    if let Some(temperature) = sampling["temperature"]
        .as_f64()
        .filter(|temperature| *temperature < 0.0)
    {
        let message = format!(
            "temperature must be non-negative, got {temperature:?}. (parameter=temperature, value={temperature:?})"
        );
        return Err(Refusal::value("temperature", &message));
    }
    if asked.sequences() > MAX_SEQUENCES {
        let message = format!(
            "n must be at most {MAX_SEQUENCES}, got {}. (parameter=n)",
            asked.sequences()
        );
        return Err(Refusal::value("n", &message));
    }
    let given = |name: &str| sampling[name].as_i64().filter(|number| *number < 1);
    if let Some(n) = given("n") {
        return Err(Refusal::value(
            "n",
            &format!("n must be at least 1, got {n}. (parameter=n, value={n})"),
        ));
    }
    if let Some(max) = given("max_tokens").or_else(|| given("max_completion_tokens")) {
        let message = format!(
            "max_tokens must be at least 1, got {max}. (parameter=max_tokens, value={max})"
        );
        return Err(Refusal::value("max_tokens", &message));
    }
    Ok(())
}

/// A tool choice that leaves the model no way around tools; the simulation calls none.
fn forced_tool(value: &Value) -> Option<String> {
    match &value["tool_choice"] {
        Value::String(choice) if choice == "required" => Some(quoted(choice)),
        Value::Object(choice) => Some(format!("function {}", choice.get("function")?.get("name")?)),
        _ => None,
    }
}

fn pydantic(kind: &str, place: &str, message: &str, input: &str) -> String {
    format!("{{'type': '{kind}', 'loc': '{place}', 'msg': '{message}', 'input': '{input}'}}")
}

/// What Python says of a body that is no JSON.
fn not_json(body: &[u8], error: &serde_json::Error) -> Refusal {
    let words = error.to_string();
    let position = position(body, error);
    let what = if words.starts_with("EOF while parsing a string") {
        "Unterminated string starting at"
    } else if words.contains("key must be a string")
        || words.starts_with("EOF while parsing an object")
        || (words.starts_with("trailing comma") && body.get(position) == Some(&b'}'))
    {
        "Expecting property name enclosed in double quotes"
    } else if words.starts_with("expected `,`") {
        "Expecting ',' delimiter"
    } else if words.starts_with("expected `:`") {
        "Expecting ':' delimiter"
    } else if words.starts_with("trailing characters") {
        "Extra data"
    } else {
        "Expecting value"
    };
    let at = format!("body.{position}");
    let error = format!(
        "{{'type': 'json_invalid', 'loc': '{at}', 'msg': 'JSON decode error', 'input': '<dict of 0 items>', 'ctx': \
         {{'error': {}}}}}",
        if what.contains('\'') {
            format!("\"{what}\"")
        } else {
            format!("'{what}'")
        },
    );
    Refusal::schema(&at, &[error])
}

/// The character at which a body stops being JSON, counted from 0.
fn position(body: &[u8], error: &serde_json::Error) -> usize {
    let lines = body
        .split_inclusive(|byte| *byte == b'\n')
        .take(error.line().saturating_sub(1));
    let before = lines.map(<[u8]>::len).sum::<usize>() + error.column();
    // At an unexpected end there is no character at fault: the column is that of the last one.
    let before = if error.is_eof() {
        before
    } else {
        before.saturating_sub(1)
    };
    String::from_utf8_lossy(body.get(..before).unwrap_or(body))
        .chars()
        .count()
}

/// A JSON value as Python prints it.
fn python(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Object(members) => format!("<dict of {} items>", members.len()),
        Value::Array(list) => format!("<list of {} items>", list.len()),
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
    }
}

/// Whether Python takes a value for true.
fn truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Object(members) => !members.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::String(text) => !text.is_empty(),
        Value::Number(number) => number.as_f64() != Some(0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_json_is_refused_in_the_words_of_python() {
        let cases = [
            ("abc", 0, "'Expecting value'"),
            (r#"{"a" 1}"#, 5, "\"Expecting ':' delimiter\""),
            (r#"{"a":1 "b"}"#, 7, "\"Expecting ',' delimiter\""),
            (
                r#"{"a":1,}"#,
                7,
                "'Expecting property name enclosed in double quotes'",
            ),
            ("[1,]", 3, "'Expecting value'"),
            (r#"{"a":1} x"#, 8, "'Extra data'"),
        ];
        for (body, at, words) in cases {
            let error = serde_json::from_str::<Value>(body).unwrap_err();
            let refusal: Value =
                serde_json::from_str(&not_json(body.as_bytes(), &error).body).unwrap();
            assert_eq!(
                refusal["error"]["param"],
                format!("body.{at}"),
                "{body}: {error}"
            );
            let message = refusal["error"]["message"].as_str().unwrap();
            assert!(
                message.contains(&format!("'error': {words}")),
                "{body}: {message}"
            );
        }
    }
}
