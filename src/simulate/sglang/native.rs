//! SGLang's own `/generate`: the numbers stand in `meta_info`, unasked; streams repeat all text so far.

use std::io;
use std::sync::Arc;

use serde_json::Value;

use super::chunks::matched;
use super::details::Details;
use super::errors::{self, Checked};
use super::{JSON, quoted, request_id};
use crate::simulate::generation::Finish;
use crate::simulate::http::Request;
use crate::simulate::play::Play;
use crate::simulate::request::Route;
use crate::simulate::response::{Extra, Responder};
use crate::simulate::settings::Level;
use crate::simulate::state::State;

/// Text and tokens of a sequence so far.
#[derive(Clone, Default)]
struct Whole {
    text: String,
    tokens: Vec<u32>,
}

/// What shapes one response.
struct Native {
    details: Option<Details>,
    /// Whether the response is about one sequence: several are numbered.
    alone: bool,
}

/// Answers a request of the native route.
pub(super) async fn answer(
    state: &Arc<State>,
    request: &Request,
    responder: &mut Responder,
) -> io::Result<()> {
    let extra = Extra::default();
    let Checked { body, asked, model } = match errors::check(state, Route::SglangGenerate, request)
    {
        Ok(checked) => checked,
        Err((status, body)) => return responder.reply(status, JSON, &extra, &body).await,
    };
    let mut play = Play::start(state, model, &asked, request_id);
    let batch = ["text", "input_ids"]
        .iter()
        .any(|name| is_batch(&body[*name]));
    let native = Native {
        details: (state.settings.level != Level::None).then(|| Details::new(model)),
        alone: !batch && asked.n == 1,
    };
    if asked.stream {
        return native.stream(play, responder).await;
    }
    let mut wholes = vec![Whole::default(); play.sequences().len()];
    while let Some(piece) = play.next(None).await? {
        if let Some(whole) = wholes.get_mut(piece.index) {
            whole.text.push_str(&piece.text);
            whole.tokens.extend(&piece.tokens);
        }
    }
    let items: Vec<_> = wholes
        .iter()
        .enumerate()
        .map(|(index, whole)| native.item(&play, index, whole, ""))
        .collect();
    let body = if native.alone {
        items.concat()
    } else {
        format!("[{}]", items.join(","))
    };
    let told = native.told(&play);
    play.record(true, &told);
    responder.reply("200 OK", JSON, &extra, &body).await
}

/// Whether a prompt is a list of prompts, not of tokens.
fn is_batch(prompt: &Value) -> bool {
    prompt
        .as_array()
        .and_then(|list| list.first())
        .is_some_and(|first| first.is_string() || first.is_array())
}

impl Native {
    async fn stream(&self, mut play: Play, responder: &mut Responder) -> io::Result<()> {
        responder.start_events(&Extra::default()).await?;
        let mut wholes = vec![Whole::default(); play.sequences().len()];
        while let Some(piece) = play.next(Some(responder)).await? {
            let Some(whole) = wholes.get_mut(piece.index) else {
                continue;
            };
            whole.text.push_str(&piece.text);
            whole.tokens.extend(&piece.tokens);
            let number = if self.alone {
                String::new()
            } else {
                format!(r#","index":{}"#, piece.index)
            };
            let item = self.item(&play, piece.index, whole, &number);
            responder.event(&item).await?;
        }
        if play.failed() {
            play.record_failure();
            let failure = concat!(
                r#"{"error":{"message":"The engine has stopped.","type":"invalid_request_error","code":400,"#,
                r#""retryable":false}}"#,
            );
            responder.event(failure).await?;
            return responder.end_events().await;
        }
        play.before_trailer().await;
        let told = self.told(&play);
        play.record(true, &told);
        responder.end_events().await
    }

    /// All of a sequence so far.
    fn item(&self, play: &Play, index: usize, whole: &Whole, number: &str) -> String {
        let finish = play.finish(index);
        let sequence = play.sequences().get(index);
        let completion = sequence.map_or(0, |sequence| sequence.completion_tokens);
        let ended = finish.map(|_| {
            let members = self.details.zip(sequence);
            let members = members.and_then(|(details, sequence)| details.members(sequence));
            let latency = play.elapsed().as_secs_f64();
            format!(
                r#","e2e_latency":{latency:?}{}"#,
                members.unwrap_or_default()
            )
        });
        format!(
            concat!(
                r#"{{"text":{},"output_ids":{},"meta_info":{{"id":{},"finish_reason":{},"prompt_tokens":{},"#,
                r#""weight_version":"default","num_retractions":0,"reasoning_tokens":0,"completion_tokens":{},"#,
                r#""cached_tokens":0{}}}{}}}"#,
            ),
            quoted(&whole.text),
            Value::from(whole.tokens.as_slice()),
            quoted(&self.id(play, index)),
            finish.map_or_else(|| "null".to_owned(), |finish| reason(finish, completion)),
            play.prompt_tokens(),
            completion,
            ended.unwrap_or_default(),
            number,
        )
    }

    /// Each sequence of a batch has an id of its own.
    fn id(&self, play: &Play, index: usize) -> String {
        if self.alone {
            play.id.clone()
        } else {
            format!("{}-{index}", play.id)
        }
    }

    fn told(&self, play: &Play) -> Vec<bool> {
        let sequences = play.sequences().iter();
        let told = |sequence| self.details.is_some_and(|d| d.members(sequence).is_some());
        sequences.map(told).collect()
    }
}

/// How a sequence ended, as an object.
fn reason(finish: &Finish, completion: usize) -> String {
    match finish {
        Finish::Length => format!(r#"{{"type":"length","length":{completion}}}"#),
        Finish::Abort => {
            r#"{"type":"abort","message":"Aborted","status_code":null,"err_type":null}"#.to_owned()
        }
        _ => format!(r#"{{"type":"stop","matched":{}}}"#, matched(finish)),
    }
}
