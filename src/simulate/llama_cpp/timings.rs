//! llama.cpp's `timings`: how long prompt and text took, and how many drafts were made and kept, if any were made.

use crate::simulate::play::Times;

/// The numbers of one sequence, so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timings {
    pub(super) prompt_tokens: usize,
    /// Tokens sent.
    pub(super) predicted: usize,
    pub(super) drafted: u32,
    pub(super) accepted: u32,
    pub(super) times: Times,
}

/// llama.cpp counts whole microseconds and never less than one.
fn milliseconds(time: f64) -> f64 {
    (time * 1_000.0).round().max(1.0) / 1_000.0
}

impl Timings {
    /// As a JSON object.
    pub(super) fn object(&self) -> String {
        let prompt_ms = milliseconds(self.times.to_first_token);
        let prompt_tokens = self.prompt_tokens.max(1) as f64;
        let predicted_ms = milliseconds(self.times.generation);
        // The first token is the prompt's work.
        let (per_token, per_second) = match self.predicted.saturating_sub(1) {
            0 => (0.0, 0.0),
            later => {
                let later = later as f64;
                (predicted_ms / later, 1_000.0 / predicted_ms * later)
            }
        };
        let drafts = if self.drafted > 0 {
            format!(
                r#","draft_n":{},"draft_n_accepted":{}"#,
                self.drafted, self.accepted
            )
        } else {
            String::new()
        };
        format!(
            concat!(
                r#"{{"cache_n":0,"prompt_n":{},"prompt_ms":{:?},"prompt_per_token_ms":{:?},"prompt_per_second":{:?},"#,
                r#""predicted_n":{},"predicted_ms":{:?},"predicted_per_token_ms":{:?},"predicted_per_second":{:?}{}}}"#,
            ),
            self.prompt_tokens,
            prompt_ms,
            prompt_ms / prompt_tokens,
            1_000.0 / prompt_ms * prompt_tokens,
            self.predicted,
            predicted_ms,
            per_token,
            per_second,
            drafts,
        )
    }
}
