//! llama.cpp's series, with `--metrics`, since PR 26389: vLLM's schema without labels, there from the start. Numbers have
//! six significant digits, so that a counter beyond a million moves in jumps.

use super::schema::{Meaning, Schema};

pub(super) const SCHEMA: Schema = Schema {
    engine: "llamacpp",
    series: &[
        ("llamacpp:spec_decode_num_drafts_total", Meaning::Steps),
        (
            "llamacpp:spec_decode_num_draft_tokens_total",
            Meaning::Drafted,
        ),
        (
            "llamacpp:spec_decode_num_accepted_tokens_total",
            Meaning::Accepted,
        ),
        (
            "llamacpp:spec_decode_num_accepted_tokens_per_pos_total",
            Meaning::AcceptedAt("position"),
        ),
        ("llamacpp:tokens_predicted_total", Meaning::GenerationTokens),
        ("llamacpp:requests_processing", Meaning::Running),
    ],
    catch: Some("counters have six significant digits: beyond a million they move in jumps"),
    positions_tell_k: false,
    version: Some(("/props", "build_info")),
};
