//! LMDeploy's series: vLLM's schema, with labels `engine` and `model_name`. Those by position appear late.

use super::schema::{Meaning, Schema, gauge};

pub(super) const SCHEMA: Schema = Schema {
    engine: "lmdeploy",
    series: &[
        ("lmdeploy:spec_decode_num_drafts_total", Meaning::Steps),
        (
            "lmdeploy:spec_decode_num_draft_tokens_total",
            Meaning::Drafted,
        ),
        (
            "lmdeploy:spec_decode_num_accepted_tokens_total",
            Meaning::Accepted,
        ),
        (
            "lmdeploy:spec_decode_num_accepted_tokens_per_pos_total",
            Meaning::AcceptedAt("position"),
        ),
        (
            "lmdeploy:spec_decode_mean_accept_rate",
            gauge("acceptance rate, as the engine averages it"),
        ),
        (
            "lmdeploy:spec_decode_mean_accept_length",
            gauge("acceptance length, as the engine averages it"),
        ),
        (
            "lmdeploy:generation_tokens_total",
            Meaning::GenerationTokens,
        ),
        ("lmdeploy:request_success_total", Meaning::Requests),
    ],
    catch: None,
    positions_tell_k: false,
    version: None,
};
