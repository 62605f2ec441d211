//! vLLM's series. Labels `engine` (data-parallel rank) and `model_name`; absent with `--disable-log-stats` and without
//! speculation. `_created` gauges may stand beside the counters, and positions 0 to k − 1 are there from the start.

use super::schema::{Meaning, Schema, gauge};

pub(super) const SCHEMA: Schema = Schema {
    engine: "vllm",
    series: &[
        ("vllm:spec_decode_num_drafts_total", Meaning::Steps),
        ("vllm:spec_decode_num_drafts_created", Meaning::Created),
        ("vllm:spec_decode_num_draft_tokens_total", Meaning::Drafted),
        (
            "vllm:spec_decode_num_accepted_tokens_total",
            Meaning::Accepted,
        ),
        (
            "vllm:spec_decode_num_accepted_tokens_per_pos_total",
            Meaning::AcceptedAt("position"),
        ),
        ("vllm:generation_tokens_total", Meaning::GenerationTokens),
        ("vllm:request_success_total", Meaning::Requests),
        ("vllm:num_requests_running", Meaning::Running),
        // Builds of before 0.9 had these instead.
        (
            "vllm:spec_decode_mean_accepted_length",
            gauge("acceptance length of the last interval"),
        ),
        (
            "vllm:spec_decode_draft_acceptance_rate",
            gauge("acceptance rate of the last interval"),
        ),
    ],
    catch: None,
    positions_tell_k: true,
    version: Some(("/version", "version")),
};
