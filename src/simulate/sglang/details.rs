//! The acceptance numbers of one sequence as SGLang counts them: steps and kept drafts as they were, proposed drafts as
//! they would have been at full length, and a histogram as long as the best step needs.

use serde_json::Value;

use crate::simulate::log::SequenceEntry;
use crate::simulate::settings::Model;

/// Puts the numbers of sequences as SGLang does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Details {
    /// Drafts of a step at full length.
    k: usize,
}

/// What SGLang knows of one sequence.
struct Known {
    rate: f64,
    length: f64,
    correct: u32,
    proposed: usize,
    steps: usize,
    histogram: Value,
}

impl Details {
    pub(super) fn new(model: &Model) -> Self {
        Self {
            k: model.acceptance.k(),
        }
    }

    /// `None` where no step ran.
    fn known(self, sequence: &SequenceEntry) -> Option<Known> {
        let steps = sequence.accepted.len();
        if steps == 0 || self.k == 0 {
            return None;
        }
        let correct = sequence.accepted.iter().sum();
        let proposed = steps * self.k;
        let best = sequence.accepted.iter().max().copied().unwrap_or_default();
        let mut histogram = vec![0_u32; best as usize + 1];
        for kept in &sequence.accepted {
            if let Some(bucket) = histogram.get_mut(*kept as usize) {
                *bucket += 1;
            }
        }
        Some(Known {
            rate: f64::from(correct) / proposed as f64,
            length: sequence.completion_tokens as f64 / steps as f64,
            correct,
            proposed,
            steps,
            histogram: Value::from(histogram),
        })
    }

    /// The object of `sglext`: every member there, zero where SGLang has nothing.
    pub(super) fn object(self, sequence: &SequenceEntry) -> Option<String> {
        let known = self.known(sequence)?;
        Some(format!(
            concat!(
                r#"{{"spec_accept_rate":{:?},"spec_accept_length":{:?},"spec_cap_length":0.0,"#,
                r#""spec_block_accept_length":0.0,"spec_num_correct_drafts":{},"spec_num_proposed_drafts":{},"#,
                r#""spec_verify_ct":{},"spec_correct_drafts_histogram":{},"spec_cap_lens_histogram":[]}}"#,
            ),
            known.rate, known.length, known.correct, known.proposed, known.steps, known.histogram,
        ))
    }

    /// The members that join `meta_info`, with the comma before them; nothing where no step ran.
    pub(super) fn members(self, sequence: &SequenceEntry) -> Option<String> {
        let known = self.known(sequence)?;
        Some(format!(
            concat!(
                r#","spec_accept_rate":{:?},"spec_accept_length":{:?},"spec_num_correct_drafts":{},"#,
                r#""spec_num_proposed_drafts":{},"spec_verify_ct":{},"spec_correct_drafts_histogram":{}"#,
            ),
            known.rate, known.length, known.correct, known.proposed, known.steps, known.histogram,
        ))
    }
}
