//! The figures by AIPerf's names: tag, label, unit, and where AIPerf shows them.

/// One figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figure {
    /// AIPerf's tag, the key in JSON.
    pub tag: &'static str,
    /// AIPerf's label.
    pub label: &'static str,
    /// Unit of its values.
    pub unit: &'static str,
    /// In AIPerf's console table, or only in its files.
    pub in_console: bool,
}

const fn shown(tag: &'static str, label: &'static str, unit: &'static str) -> Figure {
    Figure {
        tag,
        label,
        unit,
        in_console: true,
    }
}

const fn exported(tag: &'static str, label: &'static str, unit: &'static str) -> Figure {
    Figure {
        tag,
        label,
        unit,
        in_console: false,
    }
}

/// Speculative decoding, in AIPerf's order.
pub const SPEC_DECODE: [Figure; 12] = [
    shown(
        "spec_decode_acceptance_length",
        "Acceptance Length",
        "ratio",
    ),
    shown(
        "spec_decode_token_weighted_acceptance_length",
        "Token-Weighted Acceptance Length",
        "ratio",
    ),
    shown(
        "spec_decode_draft_acceptance_rate",
        "Draft Acceptance Rate",
        "%",
    ),
    shown(
        "spec_decode_overall_draft_acceptance_rate",
        "Overall Draft Acceptance Rate",
        "%",
    ),
    shown(
        "spec_decode_accepted_per_verified",
        "Accepted per Verified",
        "ratio",
    ),
    shown("spec_decode_steps", "Spec Decode Steps", "count"),
    shown(
        "spec_decode_zero_step_requests",
        "Zero-Step Requests",
        "requests",
    ),
    exported(
        "spec_decode_accepted_draft_tokens",
        "Accepted Draft Tokens",
        "tokens",
    ),
    exported("spec_decode_draft_tokens", "Draft Tokens", "tokens"),
    exported(
        "total_spec_decode_steps",
        "Total Spec Decode Steps",
        "count",
    ),
    exported(
        "total_accepted_draft_tokens",
        "Total Accepted Draft Tokens",
        "tokens",
    ),
    exported("total_draft_tokens", "Total Draft Tokens", "tokens"),
];

/// Times, lengths and throughput of the traffic.
pub const TRAFFIC: [Figure; 11] = [
    shown("time_to_first_token", "Time to First Token", "ms"),
    shown("inter_token_latency", "Inter Token Latency", "ms"),
    shown("inter_chunk_latency", "Inter Chunk Latency", "ms"),
    shown("request_latency", "Request Latency", "ms"),
    shown("output_sequence_length", "Output Sequence Length", "tokens"),
    shown("input_sequence_length", "Input Sequence Length", "tokens"),
    shown(
        "output_token_throughput",
        "Output Token Throughput",
        "tokens/sec",
    ),
    shown(
        "input_token_throughput",
        "Input Token Throughput",
        "tokens/sec",
    ),
    shown(
        "total_token_throughput",
        "Total Token Throughput",
        "tokens/sec",
    ),
    shown("request_throughput", "Request Throughput", "requests/sec"),
    shown("request_count", "Request Count", "requests"),
];
