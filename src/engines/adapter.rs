//! The adapters, one per wire shape: who claims a payload, and how it is read.

use super::object::Object;
use super::{llamacpp, lmstudio, mlx_vlm, sglang, tensorrt_llm, tokenspeed, usage_details};
use super::{vllm, vllm_mlx};
use crate::record::{AcceptanceRecord, EngineName, Violation};

/// Reads one wire shape.
#[derive(Debug)]
pub(super) struct Adapter {
    pub(super) engine: EngineName,
    /// Whether the payload has this shape's signature.
    pub(super) claims: fn(&dyn Object) -> bool,
    read: fn(&dyn Object) -> Result<AcceptanceRecord, Violation>,
}

/// One payload as its adapter reads it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Reading {
    /// A record that keeps all identities.
    Valid(Box<AcceptanceRecord>),
    /// Claimed by this engine or by none, and broken.
    Malformed(Option<EngineName>, Violation),
    /// Claimed by more than one engine.
    Contested,
}

/// `speculative_decoding`, at the root or at a choice: AIPerf's adapters look at both places, and so do these.
pub(super) const SPECULATIVE_DECODING: &[Adapter] = &[
    Adapter {
        engine: EngineName::Vllm,
        claims: vllm::claims,
        read: vllm::read,
    },
    Adapter {
        engine: EngineName::TensorrtLlm,
        claims: tensorrt_llm::claims,
        read: tensorrt_llm::read,
    },
];

/// `speculative_decoding_stats` at a choice.
pub(super) const OLDER_CHOICE: &[Adapter] = &[Adapter {
    engine: EngineName::Vllm,
    claims: vllm::claims,
    read: vllm::read_older,
}];

/// `spec_tokens_details` in SGLang's extension.
pub(super) const SGLANG_DETAILS: &[Adapter] = &[Adapter {
    engine: EngineName::Sglang,
    claims: sglang::claims,
    read: sglang::read,
}];

/// `speculative_decoding_stats` in SGLang's extension, or in `meta_info`.
pub(super) const SGLANG_ORDERED: &[Adapter] = &[Adapter {
    engine: EngineName::Sglang,
    claims: sglang::ordered::claims,
    read: sglang::ordered::read,
}];

/// Root `meta_info`.
pub(super) const META_INFO: &[Adapter] = &[
    Adapter {
        engine: EngineName::Sglang,
        claims: sglang::claims,
        read: sglang::read,
    },
    Adapter {
        engine: EngineName::TokenSpeed,
        claims: tokenspeed::claims,
        read: tokenspeed::read,
    },
];

/// Root `timings`.
pub(super) const TIMINGS: &[Adapter] = &[
    Adapter {
        engine: EngineName::LlamaCpp,
        claims: llamacpp::claims,
        read: llamacpp::read,
    },
    Adapter {
        engine: EngineName::MlxVlm,
        claims: mlx_vlm::claims,
        read: mlx_vlm::read,
    },
];

/// Root `generation_metadata`.
pub(super) const GENERATION_METADATA: &[Adapter] = &[Adapter {
    engine: EngineName::VllmMlx,
    claims: vllm_mlx::claims,
    read: vllm_mlx::read,
}];

/// Root `stats`, or `usage`.
pub(super) const STATS: &[Adapter] = &[Adapter {
    engine: EngineName::LmStudio,
    claims: lmstudio::claims,
    read: lmstudio::read,
}];

/// `usage.completion_tokens_details`.
pub(super) const USAGE_DETAILS: &[Adapter] = &[Adapter {
    engine: EngineName::UsageDetails,
    claims: usage_details::claims,
    read: usage_details::read,
}];

/// Offers a payload to the adapters of its place; none if nobody claims it.
pub(super) fn offer(payload: &dyn Object, adapters: &[Adapter]) -> Option<Reading> {
    let mut claiming = adapters.iter().filter(|adapter| (adapter.claims)(payload));
    let adapter = claiming.next()?;
    if claiming.next().is_some() {
        return Some(Reading::Contested);
    }
    let record = (adapter.read)(payload).and_then(|record| record.check().map(|()| record));
    Some(match record {
        Ok(record) => Reading::Valid(Box::new(record)),
        Err(violation) => Reading::Malformed(Some(adapter.engine), violation),
    })
}

/// Offers what stands in a place that holds acceptance numbers and nothing else: one that nobody claims is malformed.
pub(super) fn interpret(payload: &dyn Object, adapters: &[Adapter]) -> Reading {
    let only = match adapters {
        [adapter] => Some(adapter.engine),
        _ => None,
    };
    offer(payload, adapters).unwrap_or(Reading::Malformed(only, Violation::BadNumber))
}
