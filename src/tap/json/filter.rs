//! Which members of a response the reducer keeps, looks into or leaves out.

/// Where a value stands, and so what becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The whole text, or each element of a list that is the whole text.
    Root,
    Item,
    /// A list that is the whole text.
    Batch,
    /// The response or the message that an event of the Responses or the Anthropic route wraps.
    Envelope,
    Choices,
    Choice,
    /// `message` or `delta` of a choice.
    Message,
    /// `delta` of an event without choices: an object on the Anthropic route, a text on the Responses route.
    Delta,
    BlockDelta,
    /// SGLang's extension.
    Extension,
    /// What SGLang's own route tells of a sequence.
    MetaInfo,
    /// A finish reason that is a name, or an object with one.
    Finish,
    FinishObject,
    /// Why a response of the Responses route is incomplete.
    Incomplete,
    /// LM Studio's or vllm-mlx's counts.
    Counts,
    /// Kept as it is, whatever it is.
    Keep,
    /// Kept if it is a string, a number or a literal.
    Scalar,
    /// Only whether it is an object or a string that is not empty: an error's text may quote a prompt.
    Kind,
    /// Only whether there is any text in it.
    Words,
    /// Part of a text search, but this value is no text itself: ids, types.
    NoWords,
    /// Only whether it is a list with a number in it.
    Numbers,
    /// Left out.
    Skip,
}

impl Place {
    /// Place of a member of an object that stands here, and its name. Members of a kept or searched object have none
    /// of our names.
    pub(super) fn member(self, name: &str) -> (Place, Option<&'static str>) {
        match self {
            Place::Keep => (Place::Keep, None),
            Place::Words | Place::NoWords => {
                if WORDS.contains(&name) {
                    (Place::Words, None)
                } else {
                    (Place::NoWords, None)
                }
            }
            _ => self
                .members()
                .iter()
                .find(|(known, _)| *known == name)
                .map_or((Place::Skip, None), |(known, place)| (*place, Some(*known))),
        }
    }

    /// The members of an object that stands here which are looked at.
    fn members(self) -> Members {
        match self {
            Place::Root | Place::Item => ROOT,
            Place::Envelope => ENVELOPE,
            Place::Choice => CHOICE,
            Place::Message => MESSAGE,
            Place::BlockDelta => BLOCK_DELTA,
            Place::Extension => EXTENSION,
            Place::MetaInfo => META_INFO,
            Place::FinishObject => FINISH_OBJECT,
            Place::Incomplete => INCOMPLETE,
            Place::Counts => COUNTS,
            _ => &[],
        }
    }

    /// Where a value stands whose first byte is known: some places mean one thing or another by the value's kind.
    pub(super) fn of_value(self, first: u8) -> Place {
        match (self, first) {
            (Place::Root, b'[') => Place::Batch,
            (Place::Delta, b'{') => Place::BlockDelta,
            (Place::Delta, _) => Place::Words,
            (Place::Finish, b'{') => Place::FinishObject,
            (Place::Finish, _) => Place::Scalar,
            _ => self,
        }
    }

    /// Place of a member whose name is longer than any of ours.
    pub(super) fn unknown_member(self) -> Place {
        match self {
            Place::Words | Place::NoWords => Place::NoWords,
            _ => Place::Skip,
        }
    }

    /// Place of an element of a list that stands here.
    pub(super) fn element(self) -> Place {
        match self {
            Place::Batch => Place::Item,
            Place::Choices => Place::Choice,
            Place::Keep | Place::Words | Place::NoWords | Place::Numbers => self,
            _ => Place::Skip,
        }
    }

    /// Whether a container that stands here is looked into.
    pub(super) fn opens(self, is_object: bool) -> bool {
        match self {
            Place::Batch | Place::Choices | Place::Numbers => !is_object,
            Place::Keep | Place::Words | Place::NoWords => true,
            _ => is_object && !self.members().is_empty(),
        }
    }

    /// Whether an opened container is written with its brackets.
    pub(super) fn is_written(self) -> bool {
        !matches!(self, Place::Words | Place::NoWords | Place::Numbers)
    }

    /// Whether a value that is left out still takes its position in the list.
    pub(super) fn keeps_position(self) -> bool {
        matches!(self, Place::Choice | Place::Item)
    }

    /// Whether only a mark of what was found is written.
    pub(super) fn is_search(self) -> bool {
        matches!(self, Place::Words | Place::Numbers | Place::Kind)
    }

    /// Whether a string, a number or a literal is copied.
    pub(super) fn copies_scalar(self) -> bool {
        matches!(self, Place::Keep | Place::Scalar)
    }
}

type Members = &'static [(&'static str, Place)];

const ROOT: Members = &[
    ("id", Place::Scalar),
    ("request_id", Place::Scalar),
    ("index", Place::Scalar),
    ("model", Place::Scalar),
    ("object", Place::Scalar),
    ("type", Place::Scalar),
    ("system_fingerprint", Place::Scalar),
    ("created", Place::Scalar),
    ("usage", Place::Keep),
    ("metrics", Place::Keep),
    ("timings", Place::Keep),
    ("error", Place::Kind),
    ("choices", Place::Choices),
    ("sglext", Place::Extension),
    ("meta_info", Place::MetaInfo),
    ("generation_metadata", Place::Counts),
    ("stats", Place::Counts),
    // Responses and Anthropic routes, and the native routes of llama.cpp and SGLang.
    ("response", Place::Envelope),
    ("message", Place::Envelope),
    ("status", Place::Scalar),
    ("incomplete_details", Place::Incomplete),
    ("stop_reason", Place::Scalar),
    ("stop_type", Place::Scalar),
    ("tokens_evaluated", Place::Scalar),
    ("tokens_predicted", Place::Scalar),
    ("delta", Place::Delta),
    ("content", Place::Words),
    ("text", Place::Words),
    ("output", Place::Words),
];

const ENVELOPE: Members = &[
    ("id", Place::Scalar),
    ("model", Place::Scalar),
    ("usage", Place::Keep),
    ("metrics", Place::Keep),
    ("status", Place::Scalar),
    ("incomplete_details", Place::Incomplete),
    ("error", Place::Kind),
];

const CHOICE: Members = &[
    ("index", Place::Scalar),
    ("finish_reason", Place::Scalar),
    ("stop_reason", Place::Scalar),
    ("speculative_decoding", Place::Keep),
    ("speculative_decoding_stats", Place::Keep),
    // Nothing is read of them but that they are there: they tell the engine.
    ("matched_stop", Place::Scalar),
    ("avg_decoded_tokens_per_iter", Place::Scalar),
    ("message", Place::Message),
    ("delta", Place::Message),
    ("text", Place::Words),
    ("token_ids", Place::Numbers),
];

const MESSAGE: Members = &[
    ("content", Place::Words),
    ("reasoning", Place::Words),
    ("reasoning_content", Place::Words),
    ("tool_calls", Place::Words),
    ("function_call", Place::Words),
];

const BLOCK_DELTA: Members = &[
    ("stop_reason", Place::Scalar),
    ("text", Place::Words),
    ("partial_json", Place::Words),
    ("thinking", Place::Words),
];

/// The rest of it are token ids and routing tables, megabytes of them.
const EXTENSION: Members = &[
    ("spec_tokens_details", Place::Keep),
    ("speculative_decoding_stats", Place::Keep),
];

/// The rest of it are log probabilities and hidden states.
const META_INFO: Members = &[
    ("id", Place::Scalar),
    ("finish_reason", Place::Finish),
    ("prompt_tokens", Place::Scalar),
    ("completion_tokens", Place::Scalar),
    ("cached_tokens", Place::Scalar),
    ("reasoning_tokens", Place::Scalar),
    ("spec_verify_ct", Place::Keep),
    ("spec_accept_rate", Place::Keep),
    ("spec_num_correct_drafts", Place::Keep),
    ("spec_num_proposed_drafts", Place::Keep),
    ("spec_correct_drafts_histogram", Place::Keep),
    ("spec_accepted_drafts", Place::Keep),
    ("spec_proposed_drafts", Place::Keep),
    ("spec_accept_token_num", Place::Keep),
    ("spec_draft_token_num", Place::Keep),
    ("spec_accept_histogram", Place::Keep),
    ("spec_accepted_tokens", Place::Keep),
    ("spec_draft_tokens", Place::Keep),
    ("speculative_decoding_stats", Place::Keep),
];

/// The name alone: what matched may be a stop string.
const FINISH_OBJECT: Members = &[("type", Place::Scalar)];

const INCOMPLETE: Members = &[("reason", Place::Scalar)];

const COUNTS: Members = &[
    ("mtp_drafts", Place::Keep),
    ("mtp_accepted", Place::Keep),
    ("total_draft_tokens_count", Place::Keep),
    ("accepted_draft_tokens_count", Place::Keep),
    ("rejected_draft_tokens_count", Place::Keep),
    ("ignored_draft_tokens_count", Place::Keep),
];

/// Members inside a searched value whose strings are generated text.
const WORDS: &[&str] = &[
    "text",
    "content",
    "name",
    "arguments",
    "input",
    "partial_json",
    "thinking",
    "reasoning",
];
