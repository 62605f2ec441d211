//! Reads off a captured response of llama.cpp what the server must have generated.

use std::collections::BTreeMap;

use serde_json::Value;
use spectap::simulate::{Finish, Generation, Piece, Step};

use super::{capture, wire};

/// What the server generated for a capture, `stop` being the stop string that ended it; `None` where the response is no
/// generation.
pub(crate) fn script(captured: &[u8], stop: Option<&str>) -> Option<Generation> {
    if !captured.starts_with(b"HTTP/1.1 200") {
        return None;
    }
    let body = wire::body_of(captured);
    if body.starts_with("data: ") {
        let mut events = wire::events(captured);
        events.retain(|event| !event.is_null());
        Some(streamed(&events, stop))
    } else {
        whole(&serde_json::from_str(&body).ok()?, stop)
    }
}

/// What `timings` say of a sequence so far.
#[derive(Clone, Copy, Default)]
struct Told {
    prompt: usize,
    predicted: usize,
    drafted: u32,
    accepted: u32,
}

impl Told {
    fn read(timings: &Value) -> Option<Self> {
        let read = |name: &str| timings[name].as_u64().unwrap_or_default();
        timings.is_object().then(|| Self {
            prompt: read("prompt_n") as usize,
            predicted: read("predicted_n") as usize,
            drafted: read("draft_n") as u32,
            accepted: read("draft_n_accepted") as u32,
        })
    }

    /// All drafts that came since `before` as one step; none if none came.
    fn since(self, before: Self) -> Vec<Step> {
        let step = Step {
            drafted: self.drafted - before.drafted,
            accepted: self.accepted - before.accepted,
        };
        if step.drafted > 0 {
            vec![step]
        } else {
            Vec::new()
        }
    }
}

/// The choice that an event of any route is about.
fn choice(event: &Value) -> &Value {
    event["choices"].get(0).unwrap_or(event)
}

fn index(event: &Value) -> usize {
    choice(event)["index"].as_u64().unwrap_or_default() as usize
}

fn reason(event: &Value) -> Option<&str> {
    choice(event)["finish_reason"]
        .as_str()
        .or(event["stop_type"].as_str())
}

fn text(event: &Value) -> Option<&str> {
    let choice = choice(event);
    [
        &choice["delta"]["content"],
        &choice["message"]["content"],
        &choice["text"],
        &choice["content"],
    ]
    .into_iter()
    .find_map(Value::as_str)
}

fn finish(reason: &str, stop: Option<&str>) -> Finish {
    match (reason, stop) {
        ("length" | "limit", _) => Finish::Length,
        (_, Some(stop)) => Finish::StopString(stop.to_owned()),
        _ => Finish::Stop,
    }
}

fn piece(index: usize, text: &str, tokens: Vec<u32>, steps: Vec<Step>) -> Piece {
    Piece {
        index,
        round: 0,
        text: text.to_owned(),
        tokens,
        steps,
        finish: None,
    }
}

/// What each sequence's end tells; with usage asked for it is told by the event behind.
fn totals(events: &[Value]) -> BTreeMap<usize, Told> {
    let mut totals = BTreeMap::new();
    let mut ended = 0;
    for event in events {
        let is_usage = event["choices"] == Value::Array(Vec::new());
        if !is_usage && reason(event).is_some() {
            ended = index(event);
        }
        if is_usage || reason(event).is_some() {
            totals.extend(Told::read(&event["timings"]).map(|told| (ended, told)));
        }
    }
    totals
}

fn streamed(events: &[Value], stop: Option<&str>) -> Generation {
    let totals = totals(events);
    let mut so_far: BTreeMap<usize, Told> = BTreeMap::new();
    let mut pieces: Vec<Piece> = Vec::new();
    for event in events {
        if event["choices"] == Value::Array(Vec::new()) {
            continue;
        }
        let index = index(event);
        let so_far = so_far.entry(index).or_default();
        match reason(event) {
            None => {
                let Some(text) = text(event) else { continue };
                let now = Told::read(&event["timings"]).unwrap_or(*so_far);
                let mut tokens = capture::numbers(&event["tokens"]);
                tokens.resize(1, 0);
                pieces.push(piece(index, text, tokens, now.since(*so_far)));
                *so_far = Told {
                    predicted: so_far.predicted + 1,
                    ..now
                };
            }
            Some(reason) => {
                let total = totals[&index];
                let quiet = total.predicted - so_far.predicted;
                if quiet > 0 {
                    // Tokens that changed nothing of a message.
                    pieces.push(piece(index, "", vec![0; quiet], Vec::new()));
                }
                let last = pieces.iter_mut().rfind(|piece| piece.index == index);
                let last = last.unwrap();
                last.steps.extend(total.since(*so_far));
                last.finish = Some(finish(reason, stop));
            }
        }
    }
    Generation {
        prompt_tokens: totals.values().map(|told| told.prompt).max().unwrap(),
        prompt_ids: Vec::new(),
        pieces,
    }
}

fn whole(value: &Value, stop: Option<&str>) -> Option<Generation> {
    let items = match (value.as_array(), value["choices"].as_array()) {
        (Some(list), _) | (_, Some(list)) => list.clone(),
        _ => vec![value.clone()],
    };
    let mut prompt_tokens = 0;
    let mut pieces = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let told = Told::read(&item["timings"]).or_else(|| Told::read(&value["timings"]))?;
        prompt_tokens = told.prompt;
        let tokens = vec![0; told.predicted];
        let mut piece = piece(index, text(item)?, tokens, told.since(Told::default()));
        piece.finish = Some(finish(reason(item)?, stop));
        pieces.push(piece);
    }
    Some(Generation {
        prompt_tokens,
        prompt_ids: Vec::new(),
        pieces,
    })
}
