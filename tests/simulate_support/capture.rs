//! Reads off a captured response what the engine must have generated.

use serde_json::Value;
use spectap::simulate::{Finish, Generation, Piece, Step};

use super::wire;

/// What the engine generated for a capture; `None` where the response is no generation.
pub(crate) fn script(captured: &[u8], k: usize) -> Option<Generation> {
    let captured = after_interim(captured);
    if !captured.starts_with(b"HTTP/1.1 200") {
        return None;
    }
    let body = wire::body_of(captured);
    let (mut generation, last) = if body.starts_with("data: ") {
        let events = wire::events(captured);
        let last = events.last()?.clone();
        (streamed(&events), last)
    } else {
        let value: Value = serde_json::from_str(&body).ok()?;
        value["choices"].as_array()?;
        (whole(&value), value)
    };
    let payload = &last["metrics"]["speculative_decoding"];
    generation.pieces.last_mut()?.steps = steps(payload, k);
    generation.prompt_tokens = last["usage"]["prompt_tokens"].as_u64().unwrap_or_default() as usize;
    Some(generation)
}

fn after_interim(captured: &[u8]) -> &[u8] {
    captured
        .strip_prefix(b"HTTP/1.1 100 Continue\r\n\r\n")
        .unwrap_or(captured)
}

fn streamed(events: &[Value]) -> Generation {
    let mut sent: Vec<usize> = Vec::new();
    let mut prompt_ids = Vec::new();
    let mut pieces: Vec<Piece> = Vec::new();
    for event in events {
        for choice in event["choices"].as_array().unwrap() {
            if choice["delta"]["role"].is_string() {
                continue;
            }
            let index = choice["index"].as_u64().unwrap() as usize;
            sent.resize(sent.len().max(index + 1), 0);
            let mut text = choice["delta"]["content"]
                .as_str()
                .or(choice["text"].as_str())
                .unwrap_or_default();
            if let Some(ids) = choice["prompt_token_ids"].as_array() {
                prompt_ids = numbers(&Value::from(ids.clone()));
                // The prompt is echoed before the first text; the tests' prompt ends in a full stop.
                text = text.split_once("divide.").unwrap().1;
            }
            let tokens = match (&choice["token_ids"], &event["usage"]["completion_tokens"]) {
                (Value::Array(_), _) => numbers(&choice["token_ids"]),
                (_, Value::Number(total)) => {
                    vec![0; total.as_u64().unwrap() as usize - sent[index]]
                }
                _ => vec![0],
            };
            sent[index] += tokens.len();
            pieces.push(Piece {
                index,
                round: 0,
                text: text.to_owned(),
                tokens,
                steps: vec![],
                finish: finish(choice),
            });
        }
    }
    // Without usage on each event only the sum of all tokens is known.
    if let Some(total) = events.last().unwrap()["usage"]["completion_tokens"].as_u64() {
        let missing = total as usize - sent.iter().sum::<usize>();
        pieces.last_mut().unwrap().tokens.extend(vec![0; missing]);
    }
    Generation {
        prompt_tokens: 0,
        prompt_ids,
        pieces,
    }
}

fn whole(value: &Value) -> Generation {
    let choices = value["choices"].as_array().unwrap();
    let total = value["usage"]["completion_tokens"].as_u64().unwrap() as usize;
    let pieces = choices.iter().enumerate().map(|(index, choice)| {
        let text = choice["message"]["content"]
            .as_str()
            .or(choice["text"].as_str())
            .unwrap_or_default();
        let tokens = match &choice["token_ids"] {
            Value::Array(_) => numbers(&choice["token_ids"]),
            _ if index == 0 => vec![0; total - (choices.len() - 1)],
            _ => vec![0],
        };
        Piece {
            index,
            round: 0,
            text: text.to_owned(),
            tokens,
            steps: vec![],
            finish: finish(choice),
        }
    });
    Generation {
        prompt_tokens: 0,
        prompt_ids: vec![],
        pieces: pieces.collect(),
    }
}

pub(crate) fn numbers(value: &Value) -> Vec<u32> {
    value
        .as_array()
        .into_iter()
        .flatten()
        .map(|n| n.as_u64().unwrap() as u32)
        .collect()
}

fn finish(choice: &Value) -> Option<Finish> {
    match (choice["finish_reason"].as_str()?, &choice["stop_reason"]) {
        ("length", _) => Some(Finish::Length),
        ("abort", _) => Some(Finish::Abort),
        (_, Value::String(stop)) => Some(Finish::StopString(stop.clone())),
        (_, Value::Number(id)) => Some(Finish::StopToken(id.as_u64().unwrap() as u32)),
        _ => Some(Finish::Stop),
    }
}

/// The steps behind a payload: in order where it tells the order, else in any.
fn steps(payload: &Value, k: usize) -> Vec<Step> {
    let accepted = if payload["per_step_accepted"].is_array() {
        numbers(&payload["per_step_accepted"])
    } else {
        let histogram = numbers(&payload["acceptance_histogram"])
            .into_iter()
            .enumerate();
        // The best step first, so that it is not the one that drafted less than k.
        let mut all: Vec<_> = histogram
            .flat_map(|(depth, n)| vec![depth as u32; n as usize])
            .collect();
        all.reverse();
        all
    };
    let mut left = payload["num_draft_tokens"].as_u64().unwrap_or_default() as u32;
    let given = numbers(&payload["per_step_drafted"]);
    let drafted = accepted.iter().enumerate().map(|(at, _)| {
        let drafted = given.get(at).copied().unwrap_or(left.min(k as u32));
        left = left.saturating_sub(drafted);
        drafted
    });
    let drafted: Vec<_> = drafted.collect();
    accepted
        .iter()
        .zip(drafted)
        .map(|(accepted, drafted)| Step {
            drafted,
            accepted: *accepted,
        })
        .collect()
}
