//! The table of series: which name on a page means what. Each engine has a file with its part.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::{llamacpp, lmdeploy, rapid_mlx, sglang, tensorrt_llm, tgi, tokenspeed, vllm, xllm};

/// What a series counts or shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Verify steps.
    Steps,
    /// Drafts put before the verifier.
    Drafted,
    /// Drafts that it kept.
    Accepted,
    /// Steps that accepted the draft at the position that this label names.
    AcceptedAt(&'static str),
    /// Steps that drafted at the position that this label names. Those at position 0 are all steps, where the engine counts
    /// none by itself.
    DraftedAt(&'static str),
    /// A histogram's buckets: steps that accepted at most so many drafts.
    StepsUpTo,
    /// Tokens generated.
    GenerationTokens,
    /// Requests ended.
    Requests,
    /// Requests under way.
    Running,
    /// When the counters began, in seconds since 1970.
    Created,
    /// Something that the engine computed itself, over a stretch that only it knows.
    Gauge {
        /// What it is, in words.
        about: &'static str,
        /// Whether it is the most drafts of a step, or one more.
        k: Option<u64>,
    },
}

/// A gauge that tells no k.
pub(super) const fn gauge(about: &'static str) -> Meaning {
    Meaning::Gauge { about, k: None }
}

/// The part of one engine.
pub(super) struct Schema {
    /// The engine's name; that of its records where it has such.
    pub(super) engine: &'static str,
    /// Names and meanings.
    pub(super) series: &'static [(&'static str, Meaning)],
    /// What its counters can't tell, or tell late; shown beside every figure.
    pub(super) catch: Option<&'static str>,
    /// Whether a series per position is there from the start for each of the k positions.
    pub(super) positions_tell_k: bool,
    /// Where it tells its version, and under which member.
    pub(super) version: Option<(&'static str, &'static str)>,
}

/// All parts.
pub(super) const ALL: [&Schema; 9] = [
    &vllm::SCHEMA,
    &tensorrt_llm::SCHEMA,
    &sglang::SCHEMA,
    &llamacpp::SCHEMA,
    &lmdeploy::SCHEMA,
    &tgi::SCHEMA,
    &tokenspeed::SCHEMA,
    &rapid_mlx::SCHEMA,
    &xllm::SCHEMA,
];

/// A name's engine and meaning.
pub(super) fn meaning(name: &str) -> Option<(&'static Schema, Meaning)> {
    static BY_NAME: LazyLock<HashMap<&'static str, (&'static Schema, Meaning)>> =
        LazyLock::new(|| {
            let all = ALL.iter().flat_map(|&schema| {
                let series = schema.series.iter();
                series.map(move |(name, meaning)| (*name, (schema, *meaning)))
            });
            all.collect()
        });
    BY_NAME.get(name).copied()
}

/// The part of the engine of this name.
pub(super) fn of_engine(engine: &str) -> Option<&'static Schema> {
    ALL.into_iter().find(|schema| schema.engine == engine)
}
