//! A reply is the same however its bytes are cut, and no bytes make the observer panic.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test may panic anywhere"
)]

mod reply_support;

use proptest::prelude::*;
use reply_support::{Kind, cut, first_response, fixture, observe, without_times};

const CAPTURES: &[&str] = &[
    "ngram-summary/chat-stream-include-usage",
    "ngram-summary/generate-stream-include-usage",
    "ngram-summary/messages-stream",
    "ngram-summary/responses-stream",
    "ngram-detailed/chat-stream-tool-named-include-usage",
    "ngram-summary-per-request-metrics/chat-nonstream",
    "ngram-summary/chat-nonstream-logprobs",
    "ngram-summary/messages-nonstream",
    "ngram-summary/responses-nonstream",
];

const SAMPLES: &[&str] = &[
    "framing/crlf.sse",
    "framing/bom.sse",
    "framing/multi_line_data.sse",
    "framing/non_json_data.sse",
    "framing/truncated_mid_json.sse",
    "trtllm/chat_stream.sse",
    "sglang/chat_stream_include_usage.sse",
    "sglang/generate_native_stream.sse",
    "sglang/generate_native.json",
    "llamacpp/chat_stream_include_usage.sse",
    "llamacpp/completion_native_stream.sse",
    "mlx_vlm/chat_stream.sse",
    "vllm_mlx/chat.json",
    "lmstudio/v0_chat_stats.json",
    "tokenspeed/generate_negative.json",
    "openai/stream.sse",
];

fn bodies() -> Vec<(Kind, Vec<u8>)> {
    let captures = CAPTURES.iter().map(|name| {
        let bytes = fixture(format!("captures/vllm-0.32.0/{name}.http"));
        let (_, content_type, body) = first_response(&bytes);
        if content_type.starts_with("text/event-stream") {
            (Kind::Stream, body)
        } else {
            (Kind::Json, body)
        }
    });
    let samples = SAMPLES.iter().map(|name| {
        let kind = if name.ends_with(".json") {
            Kind::Json
        } else {
            Kind::Stream
        };
        (kind, fixture(format!("samples/{name}")))
    });
    captures.chain(samples).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn chunking_changes_no_reply(
        (kind, body) in proptest::sample::select(bodies()),
        cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..60),
    ) {
        let cuts = cuts.iter().map(|index| index.index(body.len() + 1)).collect();
        let whole = without_times(observe(kind, [&body[..]]));
        prop_assert_eq!(without_times(observe(kind, cut(&body, cuts))), whole);
    }

    #[test]
    fn damaged_bodies_are_survived_and_chunking_changes_no_reply(
        (kind, mut body) in proptest::sample::select(bodies()),
        damage in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..8),
        cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..20),
    ) {
        for (at, byte) in damage {
            let at = at.index(body.len());
            body[at] = byte;
        }
        let cuts = cuts.iter().map(|index| index.index(body.len() + 1)).collect();
        let whole = without_times(observe(kind, [&body[..]]));
        prop_assert_eq!(without_times(observe(kind, cut(&body, cuts))), whole);
    }

    #[test]
    fn any_bytes_are_survived(
        pieces in proptest::collection::vec(
            prop_oneof![
                proptest::collection::vec(any::<u8>(), 0..12),
                proptest::sample::select(vec![
                    "data: ", "\n\n", "\r", "{", "}", "[", "]", ":", ",", "\"", "\\", "\"usage\"", "\"choices\"",
                    "\"speculative_decoding\"", "\"metrics\"", "\"num_draft_tokens\"", "[DONE]", "\"timings\"", "\"draft_n\"", "\"meta_info\"", "\"sglext\"",
                    "\"spec_verify_ct\"", "\"delta\"", "\"index\"", "NaN", "-Infinity", "1e999", "-", "null",
                ]).prop_map(|piece| piece.as_bytes().to_vec()),
            ],
            0..60,
        ),
    ) {
        let bytes = pieces.concat();
        for kind in [Kind::Stream, Kind::Json] {
            let whole = without_times(observe(kind, [&bytes[..]]));
            let pieces = pieces.iter().map(Vec::as_slice);
            prop_assert_eq!(without_times(observe(kind, pieces)), whole);
        }
    }
}
