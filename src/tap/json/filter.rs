//! Which members of a response the reducer keeps, looks into or leaves out.

/// Where a value stands, and so what becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The whole text.
    Root,
    /// The response or the message that an event of the Responses or the Anthropic route wraps.
    Envelope,
    Choices,
    Choice,
    /// `message` or `delta` of a choice.
    Message,
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
            _ => {
                let members = match self {
                    Place::Root => ROOT,
                    Place::Envelope => ENVELOPE,
                    Place::Choice => CHOICE,
                    Place::Message => MESSAGE,
                    _ => &[],
                };
                members
                    .iter()
                    .find(|(known, _)| *known == name)
                    .map_or((Place::Skip, None), |(known, place)| (*place, Some(*known)))
            }
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
            Place::Choices => Place::Choice,
            Place::Keep | Place::Words | Place::NoWords | Place::Numbers => self,
            _ => Place::Skip,
        }
    }

    /// Whether a container that stands here is looked into.
    pub(super) fn opens(self, is_object: bool) -> bool {
        match self {
            Place::Root | Place::Envelope | Place::Choice | Place::Message => is_object,
            Place::Choices | Place::Numbers => !is_object,
            Place::Keep | Place::Words | Place::NoWords => true,
            Place::Scalar | Place::Kind | Place::Skip => false,
        }
    }

    /// Whether an opened container is written with its brackets.
    pub(super) fn is_written(self) -> bool {
        !matches!(self, Place::Words | Place::NoWords | Place::Numbers)
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
    // Responses and Anthropic routes, and the native routes of llama.cpp and SGLang.
    ("response", Place::Envelope),
    ("message", Place::Envelope),
    ("delta", Place::Words),
    ("content", Place::Words),
    ("text", Place::Words),
    ("output", Place::Words),
];

const ENVELOPE: Members = &[
    ("id", Place::Scalar),
    ("model", Place::Scalar),
    ("usage", Place::Keep),
    ("metrics", Place::Keep),
    ("error", Place::Kind),
];

const CHOICE: Members = &[
    ("index", Place::Scalar),
    ("finish_reason", Place::Scalar),
    ("stop_reason", Place::Scalar),
    ("speculative_decoding", Place::Keep),
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
