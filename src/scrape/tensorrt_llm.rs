//! TensorRT-LLM's series, at `/prometheus/metrics`. Its `/metrics` is a JSON list that reading empties: never asked for.
//!
//! There is no counter of steps. The counters by position count the steps of finished requests (with
//! `return_perf_metrics`), so that those which drafted at position 0 are all of them.

use super::schema::{Meaning, Schema, gauge};

pub(super) const SCHEMA: Schema = Schema {
    engine: "tensorrt_llm",
    series: &[
        (
            "trtllm_spec_decode_num_draft_tokens_total",
            Meaning::Drafted,
        ),
        (
            "trtllm_spec_decode_num_accepted_tokens_total",
            Meaning::Accepted,
        ),
        (
            "trtllm_spec_decode_drafted_tokens_total",
            Meaning::DraftedAt("token_position"),
        ),
        (
            "trtllm_spec_decode_accepted_tokens_total",
            Meaning::AcceptedAt("token_position"),
        ),
        (
            "trtllm_spec_decode_acceptance_length",
            gauge("acceptance length of the last iteration"),
        ),
        (
            "trtllm_spec_decode_draft_overhead",
            gauge("share of the last iteration's time that drafting took"),
        ),
        (
            "trtllm_avg_decoded_tokens_per_iter",
            gauge("tokens per iteration, those without drafts included"),
        ),
        ("trtllm_request_success_total", Meaning::Requests),
    ],
    catch: Some(
        "steps, length and positions are of finished requests and need return_perf_metrics; drafted and accepted are of \
         iterations",
    ),
    positions_tell_k: false,
    version: Some(("/version", "version")),
};
