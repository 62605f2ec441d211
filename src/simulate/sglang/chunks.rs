//! The objects of SGLang's streams, member by member.

use super::{Answer, quoted};
use crate::simulate::generation::{Finish, Piece};
use crate::simulate::play::Play;
use crate::simulate::request::Route;

/// What a chat chunk brings.
#[derive(Clone, Copy, Default)]
struct Delta<'a> {
    role: Option<&'a str>,
    text: Option<&'a str>,
    finish: Option<&'a Finish>,
    usage: Option<&'a str>,
}

impl Answer {
    /// The first chunk of a chat choice.
    pub(super) fn role(&self, play: &Play, index: usize) -> String {
        let delta = Delta {
            role: Some("assistant"),
            text: Some(""),
            ..Delta::default()
        };
        self.chat(play, index, &delta)
    }

    /// A chunk with text. One of the completions route says by itself how its choice ended.
    pub(super) fn text(&self, play: &Play, piece: &Piece) -> String {
        let sequence = play.sequences().get(piece.index);
        let completion = sequence.map_or(0, |sequence| sequence.completion_tokens);
        let usage = self
            .usage_on_each
            .then(|| self.usage(play.prompt_tokens(), completion));
        if self.route == Route::Chat {
            let delta = Delta {
                text: Some(&piece.text),
                usage: usage.as_deref(),
                ..Delta::default()
            };
            return self.chat(play, piece.index, &delta);
        }
        format!(
            r#"{}{{"index":{},"text":{},"logprobs":null,{}}}],"usage":{}}}"#,
            self.start(play, "text_completion"),
            piece.index,
            quoted(&piece.text),
            ending(piece.finish.as_ref()),
            usage.as_deref().unwrap_or("null"),
        )
    }

    /// The chunk that says how a chat choice ended; these come once all choices have ended.
    pub(super) fn finish(&self, play: &Play, index: usize) -> String {
        let delta = Delta {
            finish: play.finish(index),
            ..Delta::default()
        };
        self.chat(play, index, &delta)
    }

    /// The chunk with the acceptance numbers; `None` where there are none to tell.
    pub(super) fn sglext_chunk(&self, play: &Play) -> Option<String> {
        let sglext = self.sglext(play)?;
        let start = self.start(play, self.chunk_object());
        Some(format!(r#"{start}],"usage":null,"sglext":{sglext}}}"#))
    }

    /// The chunk with the token counts.
    pub(super) fn usage_chunk(&self, play: &Play) -> String {
        let (prompt, completion) = (play.prompt_tokens(), play.completion_tokens());
        let usage = match self.route {
            Route::Chat => self.usage(prompt, completion),
            // The only chunk of the completions route that leaves nulls out.
            _ => format!(r#"{{{},"reasoning_tokens":0}}"#, counts(prompt, completion)),
        };
        let start = self.start(play, self.chunk_object());
        format!(r#"{start}],"usage":{usage}}}"#)
    }

    /// The usage object, every member there.
    pub(super) fn usage(&self, prompt: usize, completion: usize) -> String {
        let details = if self.nulls {
            ""
        } else {
            r#","completion_tokens_details":null"#
        };
        format!(
            r#"{{{},"prompt_tokens_details":null,"reasoning_tokens":0{details}}}"#,
            counts(prompt, completion)
        )
    }

    fn chunk_object(&self) -> &'static str {
        match self.route {
            Route::Chat => "chat.completion.chunk",
            _ => "text_completion",
        }
    }

    fn chat(&self, play: &Play, index: usize, chunk: &Delta<'_>) -> String {
        let json = |text: Option<&str>| text.map_or_else(|| "null".to_owned(), quoted);
        let member = |name: &str, text: Option<&str>| {
            text.map(|text| format!(r#","{name}":{}"#, quoted(text)))
                .unwrap_or_default()
        };
        let (delta, usage) = if self.nulls {
            (
                format!(
                    r#""role":{},"content":{},"reasoning_content":null,"tool_calls":null"#,
                    json(chunk.role),
                    json(chunk.text)
                ),
                format!(r#","usage":{}"#, chunk.usage.unwrap_or("null")),
            )
        } else {
            (
                format!(
                    r#""reasoning_content":null{}{}"#,
                    member("role", chunk.role),
                    member("content", chunk.text)
                ),
                chunk
                    .usage
                    .map(|usage| format!(r#","usage":{usage}"#))
                    .unwrap_or_default(),
            )
        };
        format!(
            r#"{}{{"index":{index},"delta":{{{delta}}},"logprobs":null,{}}}]{usage}}}"#,
            self.start(play, "chat.completion.chunk"),
            ending(chunk.finish),
        )
    }
}

/// `finish_reason` and what ended the sequence.
pub(super) fn ending(finish: Option<&Finish>) -> String {
    let reason = finish.map_or_else(|| "null".to_owned(), |finish| quoted(finish.reason()));
    let matched = finish.map_or_else(|| "null".to_owned(), matched);
    format!(r#""finish_reason":{reason},"matched_stop":{matched}"#)
}

/// The string or the token that ended a sequence, the model's own end among them.
pub(super) fn matched(finish: &Finish) -> String {
    match finish {
        Finish::StopString(stop) => quoted(stop),
        Finish::StopToken(id) => id.to_string(),
        Finish::Stop => crate::simulate::vocabulary::END.to_string(),
        Finish::Length | Finish::Abort => "null".to_owned(),
    }
}

fn counts(prompt: usize, completion: usize) -> String {
    format!(
        r#""prompt_tokens":{prompt},"total_tokens":{},"completion_tokens":{completion}"#,
        prompt + completion
    )
}
