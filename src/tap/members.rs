//! Members of a JSON object with the place of their bytes, for who must change one and leave all others as they are.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::Deserializer;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

/// Members for which there is room from the start: as many as most requests have at most.
const USUAL_LENGTH: usize = 8;

/// One member: its decoded name and its value's raw text.
#[derive(Debug)]
pub(super) struct Member<'a> {
    pub(super) name: Cow<'a, str>,
    /// The value as written, without white space around it.
    pub(super) value: &'a str,
}

/// The members of the object that `text` is, in their order, repeated names included. None when it is anything else
/// than one JSON object.
pub(super) fn members(text: &[u8]) -> Option<Vec<Member<'_>>> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let members = deserializer.deserialize_map(Collect).ok()?;
    deserializer.end().ok()?;
    Some(members)
}

/// The text that a member's value is; none if it is no string.
pub(super) fn text(value: &str) -> Option<Cow<'_, str>> {
    let inner = value.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        serde_json::from_str(value).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inner))
    }
}

/// Where `part`, a slice of `whole`, lies in it.
pub(super) fn place(whole: &[u8], part: &str) -> Range<usize> {
    let start = part.as_ptr().addr() - whole.as_ptr().addr();
    start..start + part.len()
}

struct Collect;

impl<'de> Visitor<'de> for Collect {
    type Value = Vec<Member<'de>>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::with_capacity(USUAL_LENGTH);
        while let Some(Name(name)) = map.next_key()? {
            let value: &RawValue = map.next_value()?;
            members.push(Member {
                name,
                value: value.get(),
            });
        }
        Ok(members)
    }
}

/// A member's name; borrowed unless it holds an escape.
#[derive(serde::Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_the_original_bytes() {
        let text = br#" { "a" : 1.50 , "\u0062" : { } , "a":"x" } "#;
        let found = members(text).unwrap();
        let seen: Vec<_> = found.iter().map(|m| (&*m.name, m.value)).collect();
        assert_eq!(seen, [("a", "1.50"), ("b", "{ }"), ("a", "\"x\"")]);
        let range = place(text, found[1].value);
        assert_eq!(&text[range], b"{ }");
    }

    #[test]
    fn anything_but_one_object_is_none() {
        for text in ["", "[1]", "{\"a\":1", "{\"a\":1}x", "{\"a\":NaN}", "null"] {
            assert!(members(text.as_bytes()).is_none(), "{text}");
        }
    }
}
