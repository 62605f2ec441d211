//! Engines and requests that the tests of all engines use.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use spectap::simulate::{Acceptance, Finish, Generation, Log, Model, Piece, Running, Step};

use super::wire::{body_of, exchange, post};

/// A model with that acceptance.
pub(crate) fn model(name: &str, list: &str) -> Model {
    Model::new(name, Acceptance::parse(list).unwrap())
}

/// A chat request with more members.
pub(crate) fn chat(more: Value) -> Vec<u8> {
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]});
    post("/v1/chat/completions", &with(body, more))
}

/// A completions request with more members.
pub(crate) fn completions(more: Value) -> Vec<u8> {
    let body = json!({"model": "m", "prompt": "hi"});
    post("/v1/completions", &with(body, more))
}

/// An object with more members.
pub(crate) fn with(mut body: Value, more: Value) -> Value {
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    body
}

/// The body of the response, read as JSON.
pub(crate) async fn json_of(engine: &Running, request: &[u8]) -> Value {
    serde_json::from_str(&body_of(&exchange(engine.address, request).await)).unwrap()
}

/// What stands behind the samples: 46 tokens in 20 steps of up to three drafts, 25 drafts kept, in these pieces of text.
pub(crate) fn sample(prompt_tokens: usize, texts: &[&str]) -> Generation {
    let depths = [(8, 0), (4, 1), (3, 2), (5, 3)];
    let steps = depths.into_iter().flat_map(|(number, accepted)| {
        vec![
            Step {
                drafted: 3,
                accepted
            };
            number
        ]
    });
    let last = texts.len() - 1;
    let piece = |(at, text): (usize, &&str)| Piece {
        index: 0,
        round: 0,
        text: (*text).to_owned(),
        tokens: vec![0; if at == last { 46 - last } else { 1 }],
        steps: if at == last {
            steps.clone().collect()
        } else {
            Vec::new()
        },
        finish: (at == last).then_some(Finish::Stop),
    };
    Generation {
        prompt_tokens,
        prompt_ids: Vec::new(),
        pieces: texts.iter().enumerate().map(piece).collect(),
    }
}

/// All member names of a value in their order, with what kind of value each has; elements of lists too.
pub(crate) fn shape(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members: Vec<_> = members
                .iter()
                .map(|(name, value)| format!("{name}:{}", shape(value)))
                .collect();
            format!("{{{}}}", members.join(","))
        }
        Value::Array(list) if list.iter().all(Value::is_number) => "[numbers]".to_owned(),
        Value::Array(list) => {
            let list: Vec<_> = list.iter().map(shape).collect();
            format!("[{}]", list.join(","))
        }
        Value::String(_) => "text".to_owned(),
        Value::Number(_) => "number".to_owned(),
        Value::Bool(_) => "bool".to_owned(),
        Value::Null => "null".to_owned(),
    }
}

/// The values of a metrics page, by series name with labels.
pub(crate) fn series(page: &str) -> BTreeMap<String, f64> {
    let lines = page
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    lines
        .map(|line| line.rsplit_once(' ').unwrap())
        .map(|(name, value)| (name.into(), value.parse().unwrap()))
        .collect()
}

/// Waits until the log fulfils a condition.
pub(crate) async fn until(log: &Log, condition: impl Fn(&Log) -> bool) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
    while !condition(log) {
        assert!(
            tokio::time::Instant::now() < deadline,
            "not within 10 s: {:?}",
            log.entries()
        );
        tokio::task::yield_now().await;
    }
}
