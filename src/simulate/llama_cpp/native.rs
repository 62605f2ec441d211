//! The objects of llama.cpp's own `/completion`, member by member.

use serde_json::Value;

use super::openai::member;
use super::{Answer, quoted};
use crate::simulate::generation::Finish;
use crate::simulate::play::Play;

/// What of `generation_settings` the simulation takes from no request, in front of the request's own stop strings.
const SAMPLING: &str = concat!(
    r#""dynatemp_range":0.0,"dynatemp_exponent":1.0,"top_k":40,"top_p":0.949999988079071,"#,
    r#""min_p":0.05000000074505806,"top_n_sigma":-1.0,"xtc_probability":0.0,"xtc_threshold":0.10000000149011612,"#,
    r#""typical_p":1.0,"repeat_last_n":64,"repeat_penalty":1.0,"presence_penalty":0.0,"frequency_penalty":0.0,"#,
    r#""dry_multiplier":0.0,"dry_base":1.75,"dry_allowed_length":2,"dry_penalty_last_n":64,"#,
    r#""dry_sequence_breakers":["\n",":","\"","*"],"mirostat":0,"mirostat_tau":5.0,"#,
    r#""mirostat_eta":0.10000000149011612,"adaptive_target":-1.0,"adaptive_decay":0.8999999761581421"#,
);

/// The same, behind `stream`.
const FORMAT: &str = concat!(
    r#""logit_bias":[],"n_probs":0,"min_keep":0,"grammar":"","grammar_lazy":false,"grammar_triggers":[],"#,
    r#""preserved_tokens":[],"chat_format":"Content-only","reasoning_format":"deepseek","#,
    r#""reasoning_in_content":false,"generation_prompt":"","samplers":["penalties","dry","top_n_sigma","top_k","#,
    r#""typ_p","top_p","min_p","xtc","temperature"],"speculative.types":"none,draft-simple""#,
);

impl Answer {
    /// An event with the text of a token; `sent` counts this token too.
    pub(super) fn native_text(
        &self,
        play: &Play,
        index: usize,
        (text, tokens, sent): (&str, &[u32], usize),
        timings: &str,
    ) -> String {
        format!(
            concat!(
                r#"{{"index":{},"content":{},"tokens":{},"stop":false,"id_slot":-1,"tokens_predicted":{},"#,
                r#""tokens_evaluated":{}{}}}"#,
            ),
            index,
            quoted(text),
            Value::from(tokens),
            sent,
            self.prompt_tokens(play, index),
            member("timings", timings),
        )
    }

    /// A sequence's last object: with all its text where nothing was streamed, else without any.
    pub(super) fn native_ending(
        &self,
        play: &Play,
        index: usize,
        text: &str,
        has_new_line: bool,
    ) -> String {
        let prompt_tokens = self.prompt_tokens(play, index);
        let sequence = play.sequences().get(index);
        let completion = sequence.map_or(0, |sequence| sequence.completion_tokens);
        let (kind, word) = match play.finish(index) {
            Some(Finish::StopString(stop)) => ("word", stop.as_str()),
            Some(Finish::Stop | Finish::StopToken(_)) => ("eos", ""),
            Some(Finish::Length | Finish::Abort) | None => ("limit", ""),
        };
        format!(
            concat!(
                r#"{{"index":{},"content":{},"tokens":[],"id_slot":{},"stop":true,"model":{},"tokens_predicted":{},"#,
                r#""tokens_evaluated":{},"generation_settings":{},"prompt":{},"has_new_line":{},"truncated":false,"#,
                r#""stop_type":"{}","stopping_word":{},"tokens_cached":{},"timings":{}}}"#,
            ),
            index,
            quoted(text),
            index,
            self.model,
            completion,
            prompt_tokens,
            self.generation_settings(),
            quoted(&format!("<s> {}", self.asked.prompt_text)),
            has_new_line,
            kind,
            quoted(word),
            (prompt_tokens + completion).saturating_sub(1),
            self.timings(play, index).object(),
        )
    }

    /// The whole response; of several sequences a list.
    pub(super) fn native_whole(&self, play: &Play, texts: &[String]) -> String {
        let items: Vec<_> = texts
            .iter()
            .enumerate()
            .map(|(index, text)| self.native_ending(play, index, text, text.contains('\n')))
            .collect();
        match items.as_slice() {
            [alone] => alone.clone(),
            several => format!("[{}]", several.join(",")),
        }
    }

    fn generation_settings(&self) -> String {
        let most = self
            .asked
            .max_tokens
            .map_or_else(|| "-1".to_owned(), |most| most.to_string());
        format!(
            concat!(
                r#"{{"seed":{},"temperature":{:?},{},"stop":{},"max_tokens":{},"n_predict":{},"n_keep":0,"#,
                r#""n_discard":0,"ignore_eos":false,"stream":{},{},"timings_per_token":{},"#,
                r#""post_sampling_probs":false,"backend_sampling":false,"lora":[]}}"#,
            ),
            self.seed,
            f64::from(self.temperature),
            SAMPLING,
            Value::from(self.asked.stop.as_slice()),
            most,
            most,
            self.asked.stream,
            FORMAT,
            self.timings_per_token,
        )
    }
}
