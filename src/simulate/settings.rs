//! What a simulated engine is told before it starts.

use std::path::PathBuf;
use std::time::Duration;

use super::acceptance::Acceptance;
use super::faults::Faults;
use super::generation::Generation;

/// Which server the simulated engine behaves like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineKind {
    /// vLLM 0.32.0, checked byte by byte against captures of a real server.
    Vllm,
    /// TensorRT-LLM's OpenAI server with per-request speculation numbers.
    TensorrtLlm,
    /// SGLang 0.5.23: its OpenAI routes and its own `/generate`.
    Sglang,
    /// llama.cpp's server: its OpenAI routes and its own `/completion`.
    LlamaCpp,
}

impl EngineKind {
    /// The name that a person types and reads.
    pub fn name(self) -> &'static str {
        match self {
            Self::Vllm => "vllm",
            Self::TensorrtLlm => "trtllm",
            Self::Sglang => "sglang",
            Self::LlamaCpp => "llamacpp",
        }
    }

    /// The `system_fingerprint` of a fresh server; `None` where the engine has none.
    pub fn fingerprint(self) -> Option<&'static str> {
        match self {
            Self::Vllm => Some("vllm-0.32.0-5c435f56"),
            Self::LlamaCpp => Some("b11434-9f1c2d7e"),
            Self::TensorrtLlm | Self::Sglang => None,
        }
    }
}

/// How much of speculation a response tells: vLLM's `--per-request-spec-decode-metrics`. The other engines tell all
/// they know, or nothing at [`Level::None`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Nothing per request.
    None,
    /// Counts and histogram.
    Summary,
    /// Counts, histogram and the numbers of every step in order.
    Detailed,
}

/// One model that the engine serves.
#[derive(Clone, Debug)]
pub struct Model {
    /// The name that requests use.
    pub name: String,
    /// Where `/v1/models` says that the model was loaded from.
    pub root: String,
    /// How well its drafts do; empty: the engine does not speculate for it.
    pub acceptance: Acceptance,
}

impl Model {
    /// A model whose root is its name.
    pub fn new(name: impl Into<String>, acceptance: Acceptance) -> Self {
        let name = name.into();
        Self {
            root: name.clone(),
            name,
            acceptance,
        }
    }
}

/// Everything that a simulated engine is told before it starts.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Which server to be.
    pub engine: EngineKind,
    /// The models served, at least one; `/v1/models` lists them in this order.
    pub models: Vec<Model>,
    /// Seed of every draw; together with a request's arrival number it fixes the response.
    pub seed: u64,
    /// Time from a request's arrival to its first token.
    pub prefill_time: Duration,
    /// Time of one verify step; zero: as fast as possible.
    pub step_time: Duration,
    /// How much of speculation a response tells.
    pub level: Level,
    /// The `system_fingerprint` of vLLM and llama.cpp; `None` as with vLLM's `--fingerprint-mode none`.
    pub fingerprint: Option<String>,
    /// vLLM's `--enable-force-include-usage`, SGLang's `--stream-response-default-include-usage`.
    pub force_include_usage: bool,
    /// The key that the generating routes ask for.
    pub api_key: Option<String>,
    /// vLLM's `--enable-request-id-headers`.
    pub request_id_headers: bool,
    /// vLLM's `--sse-keep-alive-interval`, llama.cpp's `--sse-ping-interval` (30 s where `None`).
    pub sse_keep_alive_interval: Option<Duration>,
    /// vLLM's `--enable-per-request-metrics`: times beside the acceptance numbers.
    pub per_request_metrics: bool,
    /// vLLM's `--enable-prompt-tokens-details`.
    pub prompt_tokens_details: bool,
    /// A draft length that moves. TensorRT-LLM says null for `num_spec_tokens` then, SGLang goes on to say how many
    /// tokens it would have drafted at full length.
    pub adaptive: bool,
    /// SGLang as it was before it left nulls out of its chat chunks: every member there, `"usage":null` on each.
    pub sglang_chunks_with_nulls: bool,
    /// Prompt and completion together never exceed so many tokens.
    pub max_model_len: usize,
    /// An idle connection is closed after this time; uvicorn's default is 5 s.
    pub keep_alive: Duration,
    /// A file that gets one JSON line per request.
    pub log_file: Option<PathBuf>,
    /// What goes wrong on purpose; for tests.
    pub faults: Faults,
    /// Answers every request with this instead of drawing one; for tests.
    pub script: Option<Generation>,
}

impl Settings {
    /// An engine that answers as fast as it can, with the numbers of every kind switched on as a user would.
    pub fn new(engine: EngineKind, models: Vec<Model>) -> Self {
        Self {
            engine,
            models,
            seed: 0,
            prefill_time: Duration::ZERO,
            step_time: Duration::ZERO,
            level: Level::Summary,
            fingerprint: engine.fingerprint().map(str::to_owned),
            force_include_usage: false,
            api_key: None,
            request_id_headers: false,
            sse_keep_alive_interval: None,
            per_request_metrics: false,
            prompt_tokens_details: false,
            adaptive: false,
            sglang_chunks_with_nulls: false,
            max_model_len: 32_768,
            keep_alive: Duration::from_secs(5),
            log_file: None,
            faults: Faults::default(),
            script: None,
        }
    }
}
