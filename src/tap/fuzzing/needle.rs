//! The byte search that decides whether an event is parsed, against a parse of the same event.

use serde_json::Value;
use serde_json::value::RawValue;

use super::{Input, reference};
use crate::tap::likeness::LastContent;
use crate::tap::members::members;
use crate::tap::needle::must_parse;
use crate::tap::reply::fuzzing::is_plain_content;

/// The event type of the Anthropic route that carries text.
const BLOCK_DELTA: &str = "\"content_block_delta\"";

/// Where the value of a member stands.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Root,
    Choices,
    Choice,
    Delta,
    /// Anywhere else: none of the names that the search knows may stand in it.
    Elsewhere,
}

/// Searches the data of events. Promises: where the search, or the likeness to the event before, says that one is content
/// and nothing else, a parser says so too, as long as the names stand where engines put them.
///
/// Each line of the text is an event, and all of it is one as well. `how` and `cuts` have no meaning.
pub fn needle(data: &[u8]) {
    let Some(input) = Input::read(data) else {
        return;
    };
    let mut last = LastContent::default();
    for event in input.text.split(|byte| *byte == b'\n') {
        if !last.must_parse(event) {
            is_content(event);
        }
    }
    if !must_parse(input.text) {
        is_content(input.text);
    }
}

fn is_content(event: &[u8]) {
    let Ok(text) = std::str::from_utf8(event) else {
        return;
    };
    if !matches!(serde_json::from_str(text), Ok(Value::Object(_)))
        || reference::has_duplicates(text.trim_ascii())
        || !is_as_engines_write(text.trim_ascii(), Place::Root)
    {
        return;
    }
    assert!(is_plain_content(event), "more or less than content");
}

/// Whether every name that the search knows stands in its place.
fn is_as_engines_write(text: &str, place: Place) -> bool {
    if text.starts_with('[') {
        let element = match place {
            Place::Choices => Place::Choice,
            _ => Place::Elsewhere,
        };
        let items: Vec<&RawValue> = serde_json::from_str(text).unwrap_or_default();
        return items
            .iter()
            .all(|item| is_as_engines_write(item.get(), element));
    }
    if !text.starts_with('{') {
        // A choice is an object.
        return place != Place::Choice;
    }
    if place == Place::Choices {
        return false;
    }
    let members = members(text.as_bytes()).unwrap_or_default();
    let has = |name: &str| members.iter().any(|member| member.name == name);
    if place == Place::Root && has("choices") && has("delta") {
        return false;
    }
    members.iter().all(|member| {
        let name = &*member.name;
        let inner = match (place, name) {
            (Place::Root, "choices") => Place::Choices,
            (Place::Choice, "delta") => Place::Delta,
            // The Anthropic route's.
            (Place::Root, "delta") => Place::Delta,
            _ => Place::Elsewhere,
        };
        let is_block_delta = place == Place::Root && name == "type" && member.value == BLOCK_DELTA;
        // With an escaped quote in front, a text can end like that.
        (is_block_delta || !member.value.contains(&BLOCK_DELTA[1..]))
            && stands_right(place, name)
            && is_as_engines_write(member.value, inner)
    })
}

/// Whether a member of this name may stand here. `stop_reason` says something only beside a finish reason.
fn stands_right(place: Place, name: &str) -> bool {
    match name {
        "choices" => place == Place::Root,
        "delta" => matches!(place, Place::Root | Place::Choice),
        "content" | "reasoning" | "reasoning_content" | "role" => place == Place::Delta,
        "text" => matches!(place, Place::Choice | Place::Delta),
        "finish_reason" | "token_ids" => place == Place::Choice,
        "stop_reason" | "stop_type" | "message" | "response" => false,
        // One of the names may follow the quote. Where names are tokens, in log probabilities, their values are numbers.
        _ => !name.contains('"'),
    }
}
