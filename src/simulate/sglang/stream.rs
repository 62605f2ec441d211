//! SGLang's streams: text, then how each chat choice ended, then the acceptance numbers, then the token counts.

use std::io;

use super::{Answer, errors};
use crate::simulate::play::Play;
use crate::simulate::request::{Asked, Route};
use crate::simulate::response::{Extra, Responder};

/// Streams a generation.
pub(super) async fn send(
    mut play: Play,
    asked: &Asked,
    answer: &Answer,
    responder: &mut Responder,
) -> io::Result<()> {
    responder.start_events(&Extra::default()).await?;
    let chat = answer.route == Route::Chat;
    let mut begun = vec![false; play.sequences().len()];
    let mut ended = Vec::new();
    while let Some(mut piece) = play.next(Some(responder)).await? {
        let first = begun
            .get_mut(piece.index)
            .is_some_and(|begun| !std::mem::replace(begun, true));
        if piece.finish.is_some() {
            ended.push(piece.index);
        }
        if chat {
            if first {
                responder.event(&answer.role(&play, piece.index)).await?;
            }
            if piece.text.is_empty() {
                continue;
            }
        } else if first && asked.echo {
            piece.text.insert_str(0, &asked.prompt_text);
        }
        responder.event(&answer.text(&play, &piece)).await?;
    }
    if play.failed() {
        play.record_failure();
        let message = "The engine has stopped.";
        responder
            .event(&errors::event(message, "INTERNAL_SERVER_ERROR", 500))
            .await?;
        return responder.end_events().await;
    }
    if chat {
        for index in ended {
            responder.event(&answer.finish(&play, index)).await?;
        }
    }
    play.before_trailer().await;
    if let Some(chunk) = answer.sglext_chunk(&play) {
        responder.event(&chunk).await?;
    }
    if answer.usage_event {
        responder.event(&answer.usage_chunk(&play)).await?;
    }
    let told = answer.told(&play);
    play.record(answer.usage_event, &told);
    responder.end_events().await
}
