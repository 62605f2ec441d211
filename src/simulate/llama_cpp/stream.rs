//! llama.cpp's streams: an event per token, several events in one write where they belong together, no sentinel on the
//! native route and none after an error.

use std::io;

use super::Answer;
use crate::simulate::generation::{Finish, Piece};
use crate::simulate::play::Play;
use crate::simulate::request::Route;
use crate::simulate::response::{Extra, Responder};
use crate::simulate::vocabulary;

/// What a stream says when a decoding step fails under it.
const FAILURE: &str = r#"{"error":{"code":500,"message":"Compute error.","type":"server_error"}}"#;

/// Streams a generation.
pub(super) async fn send(
    mut play: Play,
    answer: &Answer,
    responder: &mut Responder,
) -> io::Result<()> {
    let extra = Extra {
        route: vec![("X-Accel-Buffering", "no".to_owned())],
        ..Extra::default()
    };
    responder.start_events(&extra).await?;
    let mut sent = vec![0; play.sequences().len()];
    if answer.asked.prompts > 1 {
        // The sign that the first prompt is being read has no content, and goes out as such.
        responder.event("null").await?;
    }
    let mut told = vec![false; sent.len()];
    let mut new_lines = vec![false; sent.len()];
    while let Some(piece) = play.next(Some(responder)).await? {
        let Some(sent) = sent.get_mut(piece.index) else {
            continue;
        };
        if let Some(new_line) = new_lines.get_mut(piece.index) {
            *new_line |= piece.text.contains('\n');
        }
        for token in tokens(&piece) {
            let first = *sent == 0;
            *sent += token.ids.len();
            let events = token.events(&play, answer, first, *sent);
            if !events.is_empty() {
                responder.events(&events).await?;
            }
        }
        if piece.finish.is_some() {
            play.before_trailer().await;
            let drafts = play.sequences().get(piece.index);
            let drafts = drafts.is_some_and(|sequence| answer.has_drafts(sequence));
            if let Some(told) = told.get_mut(piece.index) {
                *told = drafts;
            }
            let ending = if answer.route == Route::LlamaCompletion {
                vec![answer.native_ending(&play, piece.index, "", new_lines[piece.index])]
            } else {
                answer.ending(&play, piece.index)
            };
            let last = (0..play.sequences().len()).all(|index| play.finish(index).is_some());
            if last {
                let usage = answer.route != Route::Chat || answer.asked.include_usage;
                play.record(usage, &told);
            }
            responder.events(&ending).await?;
        }
    }
    if play.failed() {
        play.record_failure();
        responder.event(FAILURE).await?;
        return responder.end_chunks().await;
    }
    if answer.route == Route::LlamaCompletion {
        responder.end_chunks().await
    } else {
        responder.end_events().await
    }
}

/// One token of a piece, or a whole piece whose tokens' texts are not known one by one.
struct Token<'a> {
    index: usize,
    text: &'a str,
    ids: &'a [u32],
    /// Whether a stop string is met here: the numbers are told here already.
    stops: bool,
}

fn tokens(piece: &Piece) -> Vec<Token<'_>> {
    let by_word = matches!(piece.finish, Some(Finish::StopString(_)));
    let known: Option<Vec<_>> = piece
        .tokens
        .iter()
        .map(|id| vocabulary::text(*id))
        .collect();
    let known = known.filter(|texts| texts.concat() == piece.text);
    let (index, count) = (piece.index, piece.tokens.len());
    match known {
        Some(texts) => std::iter::zip(texts, piece.tokens.chunks(1))
            .enumerate()
            .map(|(at, (text, ids))| Token {
                index,
                text,
                ids,
                stops: by_word && at + 1 == count,
            })
            .collect(),
        None => vec![Token {
            index,
            text: &piece.text,
            ids: &piece.tokens,
            stops: by_word,
        }],
    }
}

impl Token<'_> {
    fn events(&self, play: &Play, answer: &Answer, first: bool, sent: usize) -> Vec<String> {
        let told = answer.timings_per_token || self.stops;
        let mut timings = answer.timings(play, self.index);
        timings.predicted = sent;
        let timings = if told {
            timings.object()
        } else {
            String::new()
        };
        match answer.route {
            Route::LlamaCompletion => {
                vec![answer.native_text(play, self.index, (self.text, self.ids, sent), &timings)]
            }
            Route::Chat => {
                let role = first.then(|| answer.role(play, self.index));
                // A token without text changes nothing of a message.
                let text = (!self.text.is_empty())
                    .then(|| answer.text(play, self.index, self.text, &timings));
                role.into_iter().chain(text).collect()
            }
            _ => vec![answer.text(play, self.index, self.text, &timings)],
        }
    }
}
