//! The observation: what the tap learned of one exchange, as it stands in `/api/v1/requests` and in a records file.
//!
//! The tap makes one per exchange on an observed route, exactly once, and hands it to an [`ObservationSink`]. It holds
//! numbers, names and ids only: no prompt, no completion, no header value but the two request ids.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use ulid::{ULID_LEN, Ulid};

use crate::record::{AcceptanceRecord, Violation};

/// Longest model name, tag or id that is kept, in bytes; longer ones are cut at a character boundary.
pub const LONGEST_NAME: usize = 128;

/// Takes finished observations. Implementations are quick and never block: they are called on the data path.
pub trait ObservationSink: Send + Sync {
    /// Takes one observation; called exactly once per exchange on an observed route.
    fn record(&self, observation: Arc<Observation>);
}

/// What one exchange showed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Observation {
    /// spectap's own id, a ULID.
    pub id: String,
    /// The engine's id of the response (`id` or `request_id` in the body).
    pub request_id: Option<String>,
    /// The request's `X-Request-ID` header.
    pub x_request_id: Option<String>,
    /// Trace id of the request's `traceparent` header.
    pub trace_id: Option<String>,
    /// When the request's head had arrived.
    #[serde(with = "rfc3339")]
    pub started_at: SystemTime,
    /// When the exchange was over.
    #[serde(with = "rfc3339")]
    pub ended_at: SystemTime,
    /// Listen address of the lane.
    pub lane: String,
    /// Which inference route it was.
    pub route: Route,
    /// Model name of the response, else of the request.
    pub model: Option<String>,
    /// The client's own label, where tags are on.
    pub tag: Option<String>,
    /// Name of the run in which the request arrived.
    pub run: Option<String>,
    /// Whether the client asked for a stream.
    pub stream: bool,
    /// Sequences asked for (`n`).
    pub n: u32,
    /// Number of prompts (`prompt` as a list), 1 otherwise.
    pub prompts: u32,
    /// The client's own `stream_options.include_usage`.
    pub stream_options_asked: Option<bool>,
    /// Exchanges on observed routes in flight when this one arrived, itself included.
    pub in_flight: u64,
    /// Status of the response; absent when none came.
    pub status: Option<u16>,
    /// How the exchange ended.
    pub outcome: Outcome,
    /// What became of its acceptance numbers; null unless the status is 2xx.
    pub acceptance: Option<Acceptance>,
    /// Why there are none, or why they were dropped.
    pub reason: Option<Reason>,
    /// Finish reasons in the order of the choices.
    pub finish_reasons: Vec<String>,
    /// Properties with few fixed values, read from the request.
    pub facets: Facets,
    /// The usage object, last one of the response.
    pub usage: Usage,
    /// Times as AIPerf defines them, in milliseconds.
    pub timing: Timing,
    /// The engine's own timing members of `metrics`, as sent (names carry the unit).
    pub engine_metrics: BTreeMap<String, f64>,
    /// Content chunks seen: events with text, reasoning or a tool call; 1 for a reply that is not streamed and has any.
    pub content_chunks: u64,
    /// One record per generated sequence that reported; zero-step ones included.
    pub spec_decode_acceptance: Vec<AcceptanceRecord>,
}

impl Observation {
    /// Whether the exchange belongs to the `aiperf` view: complete, with content, one sequence.
    pub fn is_in_aiperf_view(&self) -> bool {
        self.outcome == Outcome::Complete && self.content_chunks > 0 && self.n == 1
    }

    /// Whether the response had a 2xx status, so that it counts in `n`.
    pub fn is_success(&self) -> bool {
        self.status
            .is_some_and(|status| (200..300).contains(&status))
    }
}

/// Which of the engine's paths a request met.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Route {
    /// `…/v1/chat/completions`
    ChatCompletions,
    /// `…/v1/completions`
    Completions,
    /// `…/v1/responses`
    Responses,
    /// `…/v1/messages`
    Messages,
    /// `…/inference/v1/generate` and `/generate`
    Generate,
    /// `/completion`
    CompletionNative,
    /// Everything else: passes unobserved.
    Other,
}

impl Route {
    /// The name in JSON and in the Prometheus label `route`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Whether exchanges on this route are observed.
    pub fn is_observed(self) -> bool {
        self != Route::Other
    }
}

/// How an exchange ended.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Outcome {
    /// The whole response went to the client.
    Complete,
    /// A status of 400 or above.
    ErrorStatus,
    /// A 2xx stream that carried an error event.
    ErrorEvent,
    /// The engine went away in the middle.
    Truncated,
    /// The client went away before the end.
    Cancelled,
}

impl Outcome {
    /// The name in JSON and in the Prometheus label `outcome`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// What became of an exchange's acceptance numbers.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Acceptance {
    /// At least one valid record with steps.
    Recorded,
    /// A valid payload, but speculation never ran.
    ZeroStep,
    /// No payload.
    Absent,
    /// A payload that breaks an identity or can't be read.
    Malformed,
    /// A payload that more than one engine claims, or two payloads for one sequence.
    Ambiguous,
    /// The response could not be looked at.
    Unobserved,
}

impl Acceptance {
    /// The name in JSON and in the Prometheus label `acceptance`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Why there are no acceptance numbers. A closed list; `docs/metrics.md` has a line for each.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[expect(
    missing_docs,
    reason = "docs/metrics.md explains each, and a test compares the two lists"
)]
pub enum Reason {
    // absent
    #[serde(rename = "n_gt_1")]
    #[strum(serialize = "n_gt_1")]
    NGt1,
    MultiPrompt,
    StopString,
    BeamSearch,
    Aborted,
    Cancelled,
    Truncated,
    NoUsageEvent,
    LevelOff,
    NotDrafted,
    PrefillLeg,
    RouteWithoutPayload,
    InjectOff,
    InjectSkipped,
    ErrorEvent,
    Unknown,
    // unobserved
    Encoding,
    NotJson,
    EventTooLarge,
    ObserverFailed,
    // ambiguous
    AmbiguousSignature,
    TwoPayloads,
    // malformed
    IdentitySum,
    IdentityWeighted,
    IdentityPerStep,
    AcceptedGtDrafted,
    HistogramLength,
    ZeroStepsWithDrafts,
    BadNumber,
}

impl Reason {
    /// The name in JSON and in the Prometheus label `reason`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl From<Violation> for Reason {
    fn from(violation: Violation) -> Self {
        match violation {
            Violation::IdentitySum => Reason::IdentitySum,
            Violation::IdentityWeighted => Reason::IdentityWeighted,
            Violation::IdentityPerStep => Reason::IdentityPerStep,
            Violation::AcceptedGtDrafted => Reason::AcceptedGtDrafted,
            Violation::HistogramLength => Reason::HistogramLength,
            Violation::ZeroStepsWithDrafts => Reason::ZeroStepsWithDrafts,
            Violation::BadNumber => Reason::BadNumber,
        }
    }
}

/// Properties of a request with few fixed values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facets {
    /// Band of the sampling temperature.
    pub temperature: TemperatureBand,
    /// What shape the reply must have.
    pub format: OutputFormat,
}

/// Band of the sampling temperature.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TemperatureBand {
    /// The request was not read.
    #[default]
    #[serde(rename = "unknown")]
    Unknown,
    /// Not given: the engine's default.
    #[serde(rename = "default")]
    Default,
    /// Greedy.
    #[serde(rename = "0")]
    Zero,
    /// Above 0, up to 0.7.
    #[serde(rename = "up_to_0.7")]
    UpTo07,
    /// Above 0.7.
    #[serde(rename = "above_0.7")]
    Above07,
}

/// What shape the reply must have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputFormat {
    /// The request was not read.
    #[default]
    Unknown,
    /// Free text.
    None,
    /// Any JSON object.
    Json,
    /// A schema or a grammar.
    Schema,
    /// Tools are offered.
    Tools,
}

/// Token counts of the usage object; a member that was not sent is absent, never 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the prompt.
    pub prompt_tokens: Option<u64>,
    /// Tokens generated, reasoning included.
    pub completion_tokens: Option<u64>,
    /// Prompt tokens that came from the prefix cache.
    pub cached_tokens: Option<u64>,
    /// Generated tokens that were reasoning.
    pub reasoning_tokens: Option<u64>,
}

/// Times of an exchange in milliseconds, as AIPerf defines them but seen from the tap; absent where undefined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// Request head to response head.
    pub time_to_first_byte_ms: Option<f64>,
    /// Request head to first content chunk; streamed responses only.
    pub time_to_first_token_ms: Option<f64>,
    /// (request latency − time to first token) / (completion tokens − 1); streamed, at least two tokens.
    pub inter_token_latency_ms: Option<f64>,
    /// Mean gap between content chunks; streamed, at least two chunks.
    pub inter_chunk_latency_ms: Option<f64>,
    /// Request head to last content chunk (the whole body where it is not streamed).
    pub request_latency_ms: Option<f64>,
    /// Time to open the engine's connection; 0 when a kept one was used.
    pub upstream_connect_ms: Option<f64>,
}

/// Cuts a name to [`LONGEST_NAME`] bytes at a character boundary.
pub fn cut_name(name: &str) -> String {
    name[..name.floor_char_boundary(LONGEST_NAME)].to_owned()
}

/// A new id for an exchange that ended at this time: a ULID. Nobody needs to be kept from guessing it.
pub fn new_id(ended_at: SystemTime) -> String {
    let since_1970 = ended_at.duration_since(SystemTime::UNIX_EPOCH);
    let milliseconds = since_1970.map_or(0, |since| since.as_millis());
    let milliseconds = u64::try_from(milliseconds).unwrap_or(u64::MAX);
    let id = Ulid::from_parts(milliseconds, fastrand::u128(..));
    id.array_to_str(&mut [0; ULID_LEN]).to_owned()
}

/// Points in time as RFC 3339 with microseconds, for `#[serde(with = …)]`.
pub(crate) mod rfc3339 {
    use std::time::SystemTime;

    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(crate) fn serialize<S: Serializer>(
        time: &SystemTime,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&humantime::format_rfc3339_micros(*time))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<SystemTime, D::Error> {
        let text = String::deserialize(deserializer)?;
        humantime::parse_rfc3339(&text).map_err(D::Error::custom)
    }
}
