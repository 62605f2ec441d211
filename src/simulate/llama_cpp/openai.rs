//! The objects of llama.cpp's OpenAI routes, member by member.

use super::{Answer, quoted};
use crate::simulate::generation::Finish;
use crate::simulate::play::Play;
use crate::simulate::request::Route;

impl Answer {
    /// The first event of a chat choice.
    pub(super) fn role(&self, play: &Play, index: usize) -> String {
        self.chat_chunk(
            play,
            index,
            r#"{"role":"assistant","content":null}"#,
            "null",
            "",
        )
    }

    /// An event with the text of a token.
    pub(super) fn text(&self, play: &Play, index: usize, text: &str, timings: &str) -> String {
        let text = quoted(text);
        if self.route == Route::Chat {
            let delta = format!(r#"{{"content":{text}}}"#);
            return self.chat_chunk(play, index, &delta, "null", timings);
        }
        format!(
            concat!(
                r#"{{"choices":[{{"text":{},"index":{},"logprobs":null,"finish_reason":null}}],"created":{},"#,
                r#""model":{},"system_fingerprint":{},"object":"text_completion","id":{}{}}}"#,
            ),
            text,
            index,
            play.created,
            self.model,
            self.fingerprint,
            quoted(&play.id),
            member("timings", timings),
        )
    }

    /// The events that end a choice. The completions route tells the token counts on its last event of text, the chat
    /// route on an event of its own where it is asked to; the numbers of drafts go with the very last.
    pub(super) fn ending(&self, play: &Play, index: usize) -> Vec<String> {
        let timings = self.timings(play, index).object();
        let reason = reason(play.finish(index));
        if self.route == Route::Completions {
            let choice = format!(
                r#"{{"text":"","index":{index},"logprobs":null,"finish_reason":{reason}}}"#
            );
            return vec![self.whole(play, index, &choice, "text_completion", &timings)];
        }
        if !self.asked.include_usage {
            return vec![self.chat_chunk(play, index, "{}", &reason, &timings)];
        }
        let usage = format!(
            concat!(
                r#"{{"choices":[],"created":{},"id":{},"model":{},"system_fingerprint":{},"#,
                r#""object":"chat.completion.chunk","usage":{},"timings":{}}}"#,
            ),
            play.created,
            quoted(&play.id),
            self.model,
            self.fingerprint,
            self.usage(play, index),
            timings,
        );
        vec![self.chat_chunk(play, index, "{}", &reason, ""), usage]
    }

    /// A response in one piece. Token counts and timings are those of the first sequence, whatever the number.
    pub(super) fn openai_whole(&self, play: &Play, texts: &[String]) -> String {
        let choice = |(index, text): (usize, &String)| {
            let (text, reason) = (quoted(text), reason(play.finish(index)));
            if self.route == Route::Chat {
                format!(
                    r#"{{"finish_reason":{reason},"index":{index},"message":{{"role":"assistant","content":{text}}}}}"#
                )
            } else {
                format!(
                    r#"{{"text":{text},"index":{index},"logprobs":null,"finish_reason":{reason}}}"#
                )
            }
        };
        let choices: Vec<_> = texts.iter().enumerate().map(choice).collect();
        let object = if self.route == Route::Chat {
            "chat.completion"
        } else {
            "text_completion"
        };
        let timings = self.timings(play, 0).object();
        self.whole(play, 0, &choices.join(","), object, &timings)
    }

    fn whole(
        &self,
        play: &Play,
        index: usize,
        choices: &str,
        object: &str,
        timings: &str,
    ) -> String {
        format!(
            concat!(
                r#"{{"choices":[{}],"created":{},"model":{},"system_fingerprint":{},"object":"{}","usage":{},"#,
                r#""id":{},"timings":{}}}"#,
            ),
            choices,
            play.created,
            self.model,
            self.fingerprint,
            object,
            self.usage(play, index),
            quoted(&play.id),
            timings,
        )
    }

    fn usage(&self, play: &Play, index: usize) -> String {
        let prompt = self.prompt_tokens(play, index);
        let sequence = play.sequences().get(index);
        let completion = sequence.map_or(0, |sequence| sequence.completion_tokens);
        format!(
            concat!(
                r#"{{"completion_tokens":{},"prompt_tokens":{},"total_tokens":{},"#,
                r#""prompt_tokens_details":{{"cached_tokens":0}}}}"#,
            ),
            completion,
            prompt,
            prompt + completion,
        )
    }

    fn chat_chunk(
        &self,
        play: &Play,
        index: usize,
        delta: &str,
        reason: &str,
        timings: &str,
    ) -> String {
        format!(
            concat!(
                r#"{{"choices":[{{"finish_reason":{},"index":{},"delta":{}}}],"created":{},"id":{},"model":{},"#,
                r#""system_fingerprint":{},"object":"chat.completion.chunk"{}}}"#,
            ),
            reason,
            index,
            delta,
            play.created,
            quoted(&play.id),
            self.model,
            self.fingerprint,
            member("timings", timings),
        )
    }
}

/// A last member, left out where there is no value.
pub(super) fn member(name: &str, value: &str) -> String {
    if value.is_empty() {
        String::new()
    } else {
        format!(r#","{name}":{value}"#)
    }
}

fn reason(finish: Option<&Finish>) -> String {
    let reason = match finish {
        Some(Finish::Stop | Finish::StopString(_) | Finish::StopToken(_)) => "stop",
        Some(Finish::Length | Finish::Abort) | None => "length",
    };
    quoted(reason)
}
