//! The objects of TensorRT-LLM's OpenAI routes, member by member.

use serde_json::Value;

use crate::simulate::generation::{Finish, Piece};
use crate::simulate::log::SequenceEntry;
use crate::simulate::play::Play;
use crate::simulate::request::Route;

/// What shapes one response.
pub(super) struct Answer {
    pub(super) route: Route,
    /// The model's name as a JSON string.
    pub(super) model: String,
    pub(super) k: usize,
    /// Whether the number of drafts moves; k is not told then.
    pub(super) adaptive: bool,
    /// Whether acceptance numbers are told at all.
    pub(super) tells: bool,
}

impl Answer {
    /// Of each choice whether it tells its numbers.
    pub(super) fn told(&self, play: &Play) -> Vec<bool> {
        let told = |sequence| self.stats(sequence).is_some();
        play.sequences().iter().map(told).collect()
    }

    /// The first chunk of a chat choice.
    pub(super) fn role(&self, play: &Play, index: usize) -> String {
        let start = self.start(play, "chat.completion.chunk");
        format!(r#"{start}{{"index":{index},"delta":{{"role":"assistant"}}}}]}}"#)
    }

    /// A chunk with text; the last one of a choice tells its numbers.
    pub(super) fn chunk(&self, play: &Play, piece: &Piece) -> String {
        let empty = SequenceEntry::default();
        let sequence = play.sequences().get(piece.index).unwrap_or(&empty);
        let tail = self.tail(sequence, piece.finish.is_some());
        let text = Value::from(piece.text.as_str());
        let index = piece.index;
        if self.route == Route::Chat {
            // Nulls are left out of chat chunks.
            let finish = match &piece.finish {
                Some(finish) => format!(
                    r#","finish_reason":"{}"{}"#,
                    finish.reason(),
                    stop_member(finish)
                ),
                None => String::new(),
            };
            let start = self.start(play, "chat.completion.chunk");
            return format!(
                r#"{start}{{"index":{index},"delta":{{"content":{text}}}{finish}{tail}}}]}}"#
            );
        }
        let reason = piece
            .finish
            .as_ref()
            .map_or(Value::Null, |finish| Value::from(finish.reason()));
        let stop = piece.finish.as_ref().map_or(Value::Null, stop_reason);
        let start = self.start(play, "text_completion");
        format!(
            concat!(
                r#"{}{{"index":{},"text":{},"token_ids":null,"logprobs":null,"context_logits":null,"#,
                r#""finish_reason":{},"stop_reason":{},"disaggregated_params":null{}}}],"usage":null}}"#,
            ),
            start, index, text, reason, stop, tail,
        )
    }

    /// The chunk with the token counts.
    pub(super) fn usage_chunk(&self, play: &Play) -> String {
        let object = if self.route == Route::Chat {
            "chat.completion.chunk"
        } else {
            "text_completion"
        };
        let (start, usage) = (self.start(play, object), usage(play));
        format!(r#"{start}],"usage":{usage},"prompt_token_ids":null}}"#)
    }

    /// A response in one piece.
    pub(super) fn whole(&self, play: &Play, texts: &[String]) -> String {
        let choices: Vec<_> = play
            .sequences()
            .iter()
            .zip(texts)
            .enumerate()
            .map(|(index, (sequence, text))| {
                let text = Value::from(text.as_str());
                let finish = play.finish(index);
                let reason = finish.map_or(Value::Null, |finish| Value::from(finish.reason()));
                let stop = finish.map_or(Value::Null, stop_reason);
                let tail = self.tail(sequence, true);
                if self.route == Route::Chat {
                    format!(
                        concat!(
                            r#"{{"index":{},"message":{{"role":"assistant","content":{},"reasoning_content":null,"#,
                            r#""reasoning":null,"tool_calls":[]}},"logprobs":null,"finish_reason":{},"#,
                            r#""stop_reason":{},"mm_embedding_handle":null,"disaggregated_params":null{}}}"#,
                        ),
                        index, text, reason, stop, tail,
                    )
                } else {
                    format!(
                        concat!(
                            r#"{{"index":{},"text":{},"token_ids":null,"logprobs":null,"context_logits":null,"#,
                            r#""finish_reason":{},"stop_reason":{},"disaggregated_params":null{}}}"#,
                        ),
                        index, text, reason, stop, tail,
                    )
                }
            })
            .collect();
        let object = if self.route == Route::Chat {
            "chat.completion"
        } else {
            "text_completion"
        };
        let (start, usage) = (self.start(play, object), usage(play));
        format!(
            r#"{start}{}],"usage":{usage},"prompt_token_ids":null}}"#,
            choices.join(",")
        )
    }

    fn start(&self, play: &Play, object: &str) -> String {
        format!(
            r#"{{"id":{},"object":"{object}","created":{},"model":{},"choices":["#,
            Value::from(play.id.as_str()),
            play.created,
            self.model,
        )
    }

    /// The running mean over all iterations, the prefill among them, and at the end of a choice its numbers.
    fn tail(&self, sequence: &SequenceEntry, last: bool) -> String {
        let iterations = if self.k > 0 {
            sequence.accepted.len() + 1
        } else {
            sequence.completion_tokens.max(1)
        };
        let mean = sequence.completion_tokens as f64 / iterations as f64;
        let stats = self
            .stats(sequence)
            .filter(|_| last)
            .map(|stats| format!(r#","speculative_decoding":{stats}"#));
        format!(
            r#","avg_decoded_tokens_per_iter":{mean:?}{}"#,
            stats.unwrap_or_default()
        )
    }

    /// A choice's acceptance numbers; `None` where nothing was drafted.
    fn stats(&self, sequence: &SequenceEntry) -> Option<String> {
        let drafted: u32 = sequence.drafted.iter().sum();
        if !self.tells || drafted == 0 {
            return None;
        }
        let accepted: u32 = sequence.accepted.iter().sum();
        // A bound that moves is not known, so the histogram is only as long as the depth that was reached.
        let depth = sequence
            .drafted
            .iter()
            .max()
            .map_or(0, |most| *most as usize);
        let mut histogram = vec![
            0_u32;
            if self.adaptive {
                depth
            } else {
                self.k.max(depth)
            } + 1
        ];
        for kept in &sequence.accepted {
            if let Some(bucket) = histogram.get_mut(*kept as usize) {
                *bucket += 1;
            }
        }
        let k = if self.adaptive {
            Value::Null
        } else {
            Value::from(self.k)
        };
        Some(format!(
            concat!(
                r#"{{"acceptance_rate":{:?},"total_accepted_draft_tokens":{},"total_draft_tokens":{},"#,
                r#""num_spec_steps":{},"acceptance_histogram":{},"num_spec_tokens":{}}}"#,
            ),
            f64::from(accepted) / f64::from(drafted),
            accepted,
            drafted,
            sequence.accepted.len(),
            Value::from(histogram),
            k,
        ))
    }
}

fn usage(play: &Play) -> String {
    let (prompt, completion) = (play.prompt_tokens(), play.completion_tokens());
    format!(
        concat!(
            r#"{{"prompt_tokens":{},"total_tokens":{},"completion_tokens":{},"#,
            r#""prompt_tokens_details":{{"cached_tokens":0}}}}"#,
        ),
        prompt,
        prompt + completion,
        completion,
    )
}

fn stop_reason(finish: &Finish) -> Value {
    match finish {
        Finish::StopString(stop) => Value::from(stop.as_str()),
        Finish::StopToken(id) => Value::from(*id),
        Finish::Length | Finish::Stop | Finish::Abort => Value::Null,
    }
}

fn stop_member(finish: &Finish) -> String {
    match stop_reason(finish) {
        Value::Null => String::new(),
        reason => format!(r#","stop_reason":{reason}"#),
    }
}
