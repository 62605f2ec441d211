//! Times and lengths of the exchanges, whether or not they carried acceptance numbers.

use serde::{Deserialize, Serialize};

use super::distribution::Distribution;
use crate::observation::Observation;

/// Distributions over the complete exchanges with content; times in milliseconds, as AIPerf defines them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Traffic {
    /// Request to first content chunk; streamed only.
    pub time_to_first_token: Distribution,
    /// Time per output token after the first; streamed only.
    pub inter_token_latency: Distribution,
    /// Each exchange's mean gap between content chunks (AIPerf pools the single gaps instead).
    pub inter_chunk_latency: Distribution,
    /// Request to last content chunk.
    pub request_latency: Distribution,
    /// Completion tokens of the usage object.
    pub output_sequence_length: Distribution,
    /// Prompt tokens of the usage object.
    pub input_sequence_length: Distribution,
}

impl Traffic {
    /// Adds a complete exchange with content.
    pub(super) fn add(&mut self, observation: &Observation) {
        let timing = &observation.timing;
        self.time_to_first_token
            .push_known(timing.time_to_first_token_ms);
        self.inter_token_latency
            .push_known(timing.inter_token_latency_ms);
        self.inter_chunk_latency
            .push_known(timing.inter_chunk_latency_ms);
        self.request_latency.push_known(timing.request_latency_ms);
        let tokens = |count: Option<u64>| count.map(|count| count as f64);
        self.output_sequence_length
            .push_known(tokens(observation.usage.completion_tokens));
        self.input_sequence_length
            .push_known(tokens(observation.usage.prompt_tokens));
    }

    /// Adds what another one holds.
    pub fn merge(&mut self, other: &Traffic) {
        for (own, others) in self
            .distributions_mut()
            .into_iter()
            .zip(other.distributions())
        {
            own.merge(others);
        }
    }

    /// The distributions in the order of their fields.
    pub fn distributions(&self) -> [&Distribution; 6] {
        [
            &self.time_to_first_token,
            &self.inter_token_latency,
            &self.inter_chunk_latency,
            &self.request_latency,
            &self.output_sequence_length,
            &self.input_sequence_length,
        ]
    }

    /// The distributions in the order of their fields.
    pub(super) fn distributions_mut(&mut self) -> [&mut Distribution; 6] {
        [
            &mut self.time_to_first_token,
            &mut self.inter_token_latency,
            &mut self.inter_chunk_latency,
            &mut self.request_latency,
            &mut self.output_sequence_length,
            &mut self.input_sequence_length,
        ]
    }
}
