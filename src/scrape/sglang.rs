//! SGLang's series, with `--enable-metrics`. Accepted drafts are counted nowhere: there are steps and generated tokens, of
//! requests that finished by themselves, and gauges of the last stretch of the decode log that freeze when it idles.

use super::schema::{Meaning, Schema, gauge};

pub(super) const SCHEMA: Schema = Schema {
    engine: "sglang",
    series: &[
        ("sglang:spec_verify_calls_total", Meaning::Steps),
        ("sglang:generation_tokens_total", Meaning::GenerationTokens),
        ("sglang:num_requests_total", Meaning::Requests),
        ("sglang:num_running_reqs", Meaning::Running),
        (
            "sglang:spec_accept_length",
            gauge(
                "acceptance length of the last decode-log interval, bonus token included; freezes when idle",
            ),
        ),
        (
            "sglang:spec_accept_rate",
            gauge("acceptance rate of the last decode-log interval, against the configured width"),
        ),
        (
            "sglang:spec_cap_length",
            gauge("scheduled verify window of the last interval, bonus slot included"),
        ),
        (
            "sglang:spec_block_accept_length",
            gauge("uncapped acceptance length of the last interval"),
        ),
        (
            "sglang:spec_num_draft_tokens",
            Meaning::Gauge {
                about: "configured width, bonus slot included",
                k: Some(1),
            },
        ),
        ("sglang:spec_num_steps", gauge("configured draft steps")),
    ],
    catch: Some(
        "counters move only when a request finishes by itself, accepted drafts are not counted, and the gauges are of the \
         last decode-log interval",
    ),
    positions_tell_k: false,
    version: Some(("/server_info", "version")),
};
