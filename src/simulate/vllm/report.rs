//! What a vLLM response tells beside the text: usage, fingerprint and the `metrics` object, in vLLM's member order.

use super::quoted;
use crate::simulate::generation::Finish;
use crate::simulate::log::SequenceEntry;
use crate::simulate::play::Play;
use crate::simulate::request::{Asked, Route};
use crate::simulate::settings::{Level, Model, Settings};

/// What one response tells beside the text.
pub(super) struct Report {
    /// The model's name as a JSON string.
    pub(super) model: String,
    /// Usage on every event of a stream.
    pub(super) usage_on_each: bool,
    /// A usage event at the end of a stream.
    pub(super) usage_event: bool,
    /// The fingerprint as a JSON string.
    pub(super) fingerprint: Option<String>,
    level: Level,
    k: usize,
    times: bool,
    details: bool,
    route: Route,
}

impl Report {
    pub(super) fn new(settings: &Settings, model: &Model, asked: &Asked) -> Self {
        let generate = asked.route == Route::Generate;
        let forced = settings.force_include_usage && !generate;
        // Only a response of one sequence tells how it was made.
        let alone = asked.sequences() == 1 && !asked.beam_search && asked.route != Route::ChatBatch;
        Self {
            model: quoted(&model.name),
            usage_on_each: forced || (asked.include_usage && asked.continuous_usage && !generate),
            usage_event: forced || asked.include_usage,
            fingerprint: settings.fingerprint.as_deref().map(quoted),
            level: if alone { settings.level } else { Level::None },
            k: model.acceptance.k(),
            times: settings.per_request_metrics && alone && !generate,
            details: settings.prompt_tokens_details,
            route: asked.route,
        }
    }

    /// The counts that every usage object begins with.
    pub(super) fn counts(prompt: usize, completion: usize) -> String {
        format!(
            r#""prompt_tokens":{prompt},"total_tokens":{total},"completion_tokens":{completion}"#,
            total = prompt + completion
        )
    }

    /// Usage on an event that is not the last.
    pub(super) fn running_usage(&self, prompt: usize, completion: usize) -> String {
        let details = if self.route == Route::Chat {
            r#","completion_tokens_details":null"#
        } else {
            ""
        };
        format!(
            r#","usage":{{{}{details}}}"#,
            Self::counts(prompt, completion)
        )
    }

    /// The usage object of the usage event, nulls left out.
    pub(super) fn final_usage(&self, play: &Play) -> String {
        let details = match (self.details, self.route) {
            (false, _) => "",
            (true, Route::Generate | Route::Completions) => {
                r#","prompt_tokens_details":{"cached_tokens":0}"#
            }
            (true, _) => r#","prompt_tokens_details":{"cached_tokens":0,"created_cache_tokens":0}"#,
        };
        format!(
            "{{{}{details}}}",
            Self::counts(play.prompt_tokens(), play.completion_tokens())
        )
    }

    /// The usage object of a response in one piece, every member there.
    pub(super) fn whole_usage(&self, play: &Play) -> String {
        let details = match (self.details, self.route) {
            (false, _) => "null",
            (true, Route::Generate | Route::Completions) => {
                r#"{"cached_tokens":0,"created_cache_tokens":null,"multimodal_tokens":null}"#
            }
            (true, _) => r#"{"cached_tokens":0,"created_cache_tokens":0,"multimodal_tokens":null}"#,
        };
        format!(
            r#"{{{},"prompt_tokens_details":{details},"completion_tokens_details":null}}"#,
            Self::counts(play.prompt_tokens(), play.completion_tokens())
        )
    }

    /// Whether the response tells the acceptance numbers. A sequence that ended by a stop string or an abort was ended
    /// from outside of the engine's core, which then hands out none.
    pub(super) fn has_payload(&self, play: &Play) -> bool {
        let cut = matches!(
            play.finish(0),
            Some(Finish::StopString(_) | Finish::Abort) | None
        );
        self.level != Level::None && self.k > 0 && !cut
    }

    /// The `metrics` object of a stream, nulls left out; `None` when the key is left out.
    pub(super) fn stream_metrics(&self, play: &Play) -> Option<String> {
        let mut members: Vec<String> = Vec::new();
        if self.times {
            let named = self
                .times(play)
                .into_iter()
                .filter_map(|(name, value)| Some((name, value?)));
            members.extend(named.map(|(name, value)| format!(r#""{name}":{value:?}"#)));
        }
        if let Some(payload) = self.payload(play, "", "") {
            members.push(payload);
        }
        (!members.is_empty()).then(|| format!("{{{}}}", members.join(",")))
    }

    /// The `metrics` object of a response in one piece, every member there; `null` when there is nothing to tell.
    pub(super) fn whole_metrics(&self, play: &Play) -> String {
        let payload = self.payload(
            play,
            r#","per_step_accepted":null"#,
            r#","per_step_drafted":null"#,
        );
        if !self.times && payload.is_none() {
            return "null".to_owned();
        }
        let mut members: Vec<String> = self
            .times(play)
            .into_iter()
            .map(|(name, value)| match value.filter(|_| self.times) {
                Some(value) => format!(r#""{name}":{value:?}"#),
                None => format!(r#""{name}":null"#),
            })
            .collect();
        members.push(payload.unwrap_or_else(|| r#""speculative_decoding":null"#.to_owned()));
        format!("{{{}}}", members.join(","))
    }

    fn times(&self, play: &Play) -> [(&'static str, Option<f64>); 5] {
        let times = play.times();
        [
            ("time_to_first_token_ms", Some(times.to_first_token)),
            ("generation_time_ms", Some(times.generation)),
            ("queue_time_ms", Some(0.0)),
            ("mean_itl_ms", times.between_tokens),
            ("tokens_per_second", Some(times.tokens_per_second)),
        ]
    }

    fn payload(&self, play: &Play, no_accepted: &str, no_drafted: &str) -> Option<String> {
        let sequence = play
            .sequences()
            .first()
            .filter(|_| self.has_payload(play))?;
        let SequenceEntry {
            accepted, drafted, ..
        } = sequence;
        let steps = accepted.len();
        let (kept, proposed) = (accepted.iter().sum::<u32>(), drafted.iter().sum::<u32>());
        let mean = if steps == 0 {
            1.0
        } else {
            1.0 + f64::from(kept) / steps as f64
        };
        let rate = if proposed == 0 {
            0.0
        } else {
            f64::from(kept) / f64::from(proposed)
        };
        let mut histogram = vec![0_u32; self.k + 1];
        for kept in accepted {
            if let Some(bucket) = histogram.get_mut(*kept as usize) {
                *bucket += 1;
            }
        }
        let (per_step_accepted, per_step_drafted) = if self.level == Level::Detailed && steps > 0 {
            (
                format!(r#","per_step_accepted":{}"#, list(accepted)),
                format!(r#","per_step_drafted":{}"#, list(drafted)),
            )
        } else {
            (no_accepted.to_owned(), no_drafted.to_owned())
        };
        Some(format!(
            concat!(
                r#""speculative_decoding":{{"mean_acceptance_length":{:?},"draft_acceptance_rate":{:?},"#,
                r#""acceptance_histogram":{},"num_spec_steps":{},"num_accepted_draft_tokens":{},"#,
                r#""num_draft_tokens":{},"num_spec_tokens":{}{}{}}}"#,
            ),
            mean,
            rate,
            list(&histogram),
            steps,
            kept,
            proposed,
            self.k,
            per_step_accepted,
            per_step_drafted,
        ))
    }
}

/// Numbers as a JSON list.
pub(super) fn list(numbers: &[u32]) -> String {
    let numbers: Vec<_> = numbers.iter().map(u32::to_string).collect();
    format!("[{}]", numbers.join(","))
}

/// `stop_reason`: the string or the token that ended a sequence.
pub(super) fn stop_reason(finish: &Finish) -> String {
    match finish {
        Finish::StopString(stop) => quoted(stop),
        Finish::StopToken(id) => id.to_string(),
        Finish::Length | Finish::Stop | Finish::Abort => "null".to_owned(),
    }
}
