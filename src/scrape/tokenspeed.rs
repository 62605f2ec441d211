//! TokenSpeed's series: vLLM's three counters.

use super::schema::{Meaning, Schema};

pub(super) const SCHEMA: Schema = Schema {
    engine: "tokenspeed",
    series: &[
        ("tokenspeed:spec_decode_num_drafts_total", Meaning::Steps),
        (
            "tokenspeed:spec_decode_num_draft_tokens_total",
            Meaning::Drafted,
        ),
        (
            "tokenspeed:spec_decode_num_accepted_tokens_total",
            Meaning::Accepted,
        ),
        (
            "tokenspeed:generation_tokens_total",
            Meaning::GenerationTokens,
        ),
    ],
    catch: Some(
        "drafted is steps times the configured width, not what was put before the verifier",
    ),
    positions_tell_k: false,
    version: None,
};
