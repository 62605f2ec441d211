//! What belongs to one of several sequences, and is only put in order or summed up when the response is over.

use std::collections::BTreeMap;

use crate::observation::{Usage, cut_name};

/// Most sequences that are told apart.
const MOST_SEQUENCES: usize = 1024;

/// The sequences' facts by index.
#[derive(Debug, Default)]
pub(super) struct Sequences {
    finish_reasons: BTreeMap<u64, String>,
    usage: BTreeMap<u64, Usage>,
}

impl Sequences {
    pub(super) fn finish(&mut self, index: u64, reason: &str) {
        put(&mut self.finish_reasons, index, cut_name(reason));
    }

    /// Notes what a sequence tells of its own tokens so far, where no usage object speaks for the response.
    pub(super) fn note_usage(&mut self, index: u64, usage: Usage) {
        put(&mut self.usage, index, usage);
    }

    /// The sequences' tokens together; a count that one of them lacks is unknown.
    pub(super) fn usage(&self) -> Usage {
        let total = |count: fn(&Usage) -> Option<u64>| {
            self.usage
                .values()
                .map(count)
                .try_fold(0u64, |sum, count| sum.checked_add(count?))
                .filter(|_| !self.usage.is_empty())
        };
        Usage {
            prompt_tokens: total(|usage| usage.prompt_tokens),
            completion_tokens: total(|usage| usage.completion_tokens),
            cached_tokens: total(|usage| usage.cached_tokens),
            reasoning_tokens: total(|usage| usage.reasoning_tokens),
        }
    }

    pub(super) fn into_finish_reasons(self) -> Vec<String> {
        self.finish_reasons.into_values().collect()
    }
}

fn put<T>(of_sequences: &mut BTreeMap<u64, T>, index: u64, fact: T) {
    if of_sequences.len() < MOST_SEQUENCES || of_sequences.contains_key(&index) {
        of_sequences.insert(index, fact);
    }
}
