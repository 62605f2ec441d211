//! xLLM's series on its brpc page: names without a prefix.

use super::schema::{Meaning, Schema, gauge};

pub(super) const SCHEMA: Schema = Schema {
    engine: "xllm",
    series: &[
        ("speculative_num_drafts_total", Meaning::Steps),
        ("speculative_num_draft_tokens_total", Meaning::Drafted),
        ("speculative_num_accepted_tokens_total", Meaning::Accepted),
        (
            "speculative_num_accepted_tokens_per_pos",
            Meaning::AcceptedAt("position"),
        ),
        (
            "speculative_mean_tokens_per_decode_step",
            gauge("tokens per decode step, as the engine averages it"),
        ),
    ],
    catch: None,
    positions_tell_k: false,
    version: None,
};
