//! SGLang's responses in one piece.

use std::io;

use super::chunks::ending;
use super::{Answer, JSON, quoted};
use crate::simulate::play::Play;
use crate::simulate::request::{Asked, Route};
use crate::simulate::response::{Extra, Responder};

/// Generates to the end, then sends it all.
pub(super) async fn send(
    mut play: Play,
    asked: &Asked,
    answer: &Answer,
    responder: &mut Responder,
) -> io::Result<()> {
    let echoed = if asked.echo { &asked.prompt_text } else { "" };
    let mut texts = vec![echoed.to_owned(); play.sequences().len()];
    while let Some(piece) = play.next(None).await? {
        if let Some(text) = texts.get_mut(piece.index) {
            text.push_str(&piece.text);
        }
    }
    let choices: Vec<_> = texts
        .iter()
        .enumerate()
        .map(|(index, text)| choice(&play, answer, index, text))
        .collect();
    let object = match answer.route {
        Route::Chat => "chat.completion",
        _ => "text_completion",
    };
    let sglext = answer
        .sglext(&play)
        .map(|sglext| format!(r#","sglext":{sglext}"#))
        .unwrap_or_default();
    let body = format!(
        r#"{}{}],"usage":{},"metadata":{{"weight_version":"default"}}{sglext}}}"#,
        answer.start(&play, object),
        choices.join(","),
        answer.usage(play.prompt_tokens(), play.completion_tokens()),
    );
    let told = answer.told(&play);
    play.record(true, &told);
    responder
        .reply("200 OK", JSON, &Extra::default(), &body)
        .await
}

fn choice(play: &Play, answer: &Answer, index: usize, text: &str) -> String {
    let (text, ending) = (quoted(text), ending(play.finish(index)));
    if answer.route != Route::Chat {
        return format!(r#"{{"index":{index},"text":{text},"logprobs":null,{ending}}}"#);
    }
    let tools = if answer.nulls {
        r#","tool_calls":null"#
    } else {
        ""
    };
    format!(
        concat!(
            r#"{{"index":{},"message":{{"role":"assistant","content":{},"reasoning_content":null{}}},"#,
            r#""logprobs":null,{}}}"#,
        ),
        index, text, tools, ending,
    )
}
