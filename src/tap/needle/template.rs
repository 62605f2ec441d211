//! What came before is likely to come again: the events of a stream differ in their text and in nothing else. A [`Template`]
//! is an event that the byte search called content, without its text. Another event that has the same bytes around a text
//! is content as well, and that takes two comparisons and a look at the text.
//!
//! Why the search would say the same. Its patterns begin with a quote or a backslash and have no further quote but at their
//! end, and what it looks at behind a name ends with the first byte of the value. Around the text nothing differs. In the
//! text each quote and each backslash, and the quote in front of it, is looked at: no pattern begins there. None that
//! begins before can end there, since it would hold that quote in front. And both texts, or lists of numbers, begin
//! as filled ones do.

use super::PATTERNS;
use crate::tap::json::quote_or_escape;

/// Where a value of an event stands that may be another one next time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hole {
    /// Just behind the quote or bracket that opens the value.
    pub(super) start: usize,
    pub(super) kind: HoleKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HoleKind {
    /// A text.
    Text,
    /// A list of numbers.
    Numbers,
}

/// An event of content without its text.
#[derive(Debug)]
pub(super) struct Template {
    before: Vec<u8>,
    kind: HoleKind,
    after: Vec<u8>,
}

impl Template {
    /// A template of an event that the search calls content; none if its text is not one that says nothing.
    pub(super) fn of(data: &[u8], hole: Hole) -> Option<Self> {
        let length = match hole.kind {
            HoleKind::Text => data[hole.start..].iter().position(|&byte| byte == b'"')?,
            HoleKind::Numbers => data[hole.start..].iter().position(|&byte| byte == b']')?,
        };
        let end = hole.start + length;
        is_inert(data, hole.start, end, hole.kind).then(|| Self {
            before: data[..hole.start].to_vec(),
            kind: hole.kind,
            after: data[end..].to_vec(),
        })
    }

    /// Whether an event is content since it differs in its text alone.
    pub(super) fn fits(&self, data: &[u8]) -> bool {
        let Some(end) = data.len().checked_sub(self.after.len()) else {
            return false;
        };
        data.starts_with(&self.before)
            && data.ends_with(&self.after)
            && is_inert(data, self.before.len(), end, self.kind)
    }
}

/// Whether what stands there is a filled value in which no pattern begins or ends.
fn is_inert(data: &[u8], start: usize, end: usize, kind: HoleKind) -> bool {
    let Some(value) = data.get(start..end).filter(|value| !value.is_empty()) else {
        return false;
    };
    match kind {
        HoleKind::Text => !begins_pattern(&data[start - 1..]) && is_inert_text(data, start, end),
        HoleKind::Numbers => {
            value[0].is_ascii_digit()
                && value
                    .iter()
                    .all(|byte| matches!(byte, b'0'..=b'9' | b',' | b' '))
        }
    }
}

/// Whether no pattern begins at an escape or an escaped quote of a text, and it has no other quote.
fn is_inert_text(data: &[u8], mut at: usize, end: usize) -> bool {
    while let Some(found) = quote_or_escape(&data[..end], at) {
        let escaped = found + 1;
        if data[found] == b'"'
            || escaped == end
            || begins_pattern(&data[found..])
            || begins_pattern(&data[escaped..])
        {
            return false;
        }
        at = escaped + 1;
    }
    true
}

/// Whether a pattern stands at the beginning.
fn begins_pattern(data: &[u8]) -> bool {
    let may_begin = data
        .get(1)
        .is_some_and(|&byte| SECOND_BYTES[usize::from(byte)]);
    may_begin
        && PATTERNS
            .iter()
            .any(|(pattern, _)| data.starts_with(pattern.as_bytes()))
}

/// The bytes with which a pattern goes on behind its first.
const SECOND_BYTES: [bool; 256] = {
    let mut bytes = [false; 256];
    let mut at = 0;
    while at < PATTERNS.len() {
        bytes[PATTERNS[at].0.as_bytes()[1] as usize] = true;
        at += 1;
    }
    bytes
};
