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
    /// Place of a member of an object that stands here.
    pub(super) fn member(self, name: &[u8]) -> Place {
        match self {
            Place::Keep => Place::Keep,
            Place::Words | Place::NoWords => word(name),
            Place::Root | Place::Item => root(name),
            Place::Envelope => envelope(name),
            Place::Choice => choice(name),
            Place::Message => message(name),
            Place::BlockDelta => block_delta(name),
            Place::Extension => extension(name),
            Place::MetaInfo => meta_info(name),
            // The name alone: what matched may be a stop string.
            Place::FinishObject if name == b"type" => Place::Scalar,
            Place::Incomplete if name == b"reason" => Place::Scalar,
            Place::Counts => counts(name),
            _ => Place::Skip,
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
            Place::Delta | Place::Finish | Place::Scalar | Place::Kind | Place::Skip => false,
            _ => is_object,
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

fn root(name: &[u8]) -> Place {
    match name {
        b"id" | b"request_id" | b"index" | b"model" | b"object" | b"type" | b"created" => {
            Place::Scalar
        }
        b"system_fingerprint" => Place::Scalar,
        b"usage" | b"metrics" | b"timings" => Place::Keep,
        b"error" => Place::Kind,
        b"choices" => Place::Choices,
        b"sglext" => Place::Extension,
        b"meta_info" => Place::MetaInfo,
        b"generation_metadata" | b"stats" => Place::Counts,
        // Responses and Anthropic routes, and the native routes of llama.cpp and SGLang.
        b"response" | b"message" => Place::Envelope,
        b"status" | b"stop_reason" | b"stop_type" => Place::Scalar,
        b"tokens_evaluated" | b"tokens_predicted" => Place::Scalar,
        b"incomplete_details" => Place::Incomplete,
        b"delta" => Place::Delta,
        b"content" | b"text" | b"output" => Place::Words,
        _ => Place::Skip,
    }
}

fn envelope(name: &[u8]) -> Place {
    match name {
        b"id" | b"model" | b"status" => Place::Scalar,
        b"usage" | b"metrics" => Place::Keep,
        b"incomplete_details" => Place::Incomplete,
        b"error" => Place::Kind,
        _ => Place::Skip,
    }
}

fn choice(name: &[u8]) -> Place {
    match name {
        b"index" | b"finish_reason" | b"stop_reason" => Place::Scalar,
        b"speculative_decoding" | b"speculative_decoding_stats" => Place::Keep,
        // Nothing is read of them but that they are there: they tell the engine.
        b"matched_stop" | b"avg_decoded_tokens_per_iter" => Place::Scalar,
        b"message" | b"delta" => Place::Message,
        b"text" => Place::Words,
        b"token_ids" => Place::Numbers,
        _ => Place::Skip,
    }
}

fn message(name: &[u8]) -> Place {
    match name {
        b"content" | b"reasoning" | b"reasoning_content" => Place::Words,
        b"tool_calls" | b"function_call" => Place::Words,
        _ => Place::Skip,
    }
}

fn block_delta(name: &[u8]) -> Place {
    match name {
        b"stop_reason" => Place::Scalar,
        b"text" | b"partial_json" | b"thinking" => Place::Words,
        _ => Place::Skip,
    }
}

/// The rest of it are token ids and routing tables, megabytes of them.
fn extension(name: &[u8]) -> Place {
    match name {
        b"spec_tokens_details" | b"speculative_decoding_stats" => Place::Keep,
        _ => Place::Skip,
    }
}

/// The rest of it are log probabilities and hidden states.
fn meta_info(name: &[u8]) -> Place {
    match name {
        b"id" => Place::Scalar,
        b"finish_reason" => Place::Finish,
        b"prompt_tokens" | b"completion_tokens" | b"cached_tokens" | b"reasoning_tokens" => {
            Place::Scalar
        }
        b"spec_verify_ct"
        | b"spec_accept_rate"
        | b"spec_num_correct_drafts"
        | b"spec_num_proposed_drafts"
        | b"spec_correct_drafts_histogram"
        | b"spec_accepted_drafts"
        | b"spec_proposed_drafts"
        | b"spec_accept_token_num"
        | b"spec_draft_token_num"
        | b"spec_accept_histogram"
        | b"spec_accepted_tokens"
        | b"spec_draft_tokens"
        | b"speculative_decoding_stats" => Place::Keep,
        _ => Place::Skip,
    }
}

fn counts(name: &[u8]) -> Place {
    match name {
        b"mtp_drafts"
        | b"mtp_accepted"
        | b"total_draft_tokens_count"
        | b"accepted_draft_tokens_count"
        | b"rejected_draft_tokens_count"
        | b"ignored_draft_tokens_count" => Place::Keep,
        _ => Place::Skip,
    }
}

/// Members inside a searched value whose strings are generated text.
fn word(name: &[u8]) -> Place {
    match name {
        b"text" | b"content" | b"name" | b"arguments" | b"input" | b"partial_json"
        | b"thinking" | b"reasoning" => Place::Words,
        _ => Place::NoWords,
    }
}
