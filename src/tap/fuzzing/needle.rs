//! The byte search that decides whether an event is parsed, against a parse of the same event.

use serde_json::Value;
use serde_json::value::RawValue;

use super::{Input, reference};
use crate::tap::members::members;
use crate::tap::needle::{Needle, must_parse};
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

/// Searches an event's data. Promises: where the search says that it is content and nothing else, a parser says so
/// too, as long as the names stand where engines put them; what a stream's search remembers of an event changes no answer to
/// the next one.
///
/// The text is the data. `how` and `cuts` say which piece of it is another one in the next event.
pub fn needle(data: &[u8]) {
    let Some(input) = Input::read(data) else {
        return;
    };
    remembered(input);
    if must_parse(input.text) {
        return;
    }
    let Ok(text) = std::str::from_utf8(input.text) else {
        return;
    };
    if !matches!(serde_json::from_str(text), Ok(Value::Object(_)))
        || reference::has_duplicates(text.trim_ascii())
        || !is_as_engines_write(text.trim_ascii(), Place::Root)
    {
        return;
    }
    assert!(is_plain_content(input.text), "more or less than content");
}

/// One event after the other through one search: the text, and the text with pieces of it in places where others stood.
fn remembered(input: Input<'_>) {
    let mut random = fastrand::Rng::with_seed(u64::from(input.how) << 8 | u64::from(input.cuts));
    let mut piece = |longest: usize| {
        let start = random.usize(0..=input.text.len());
        start..start + random.usize(0..=longest.min(input.text.len() - start))
    };
    let mut needle = Needle::default();
    for _ in 0..8 {
        let (from, to) = (piece(24), piece(24));
        let event = [
            &input.text[..to.start],
            &input.text[from],
            &input.text[to.end..],
        ]
        .concat();
        for event in [input.text, &event] {
            assert_eq!(
                needle.must_parse(event),
                must_parse(event),
                "remembered wrongly"
            );
        }
    }
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
