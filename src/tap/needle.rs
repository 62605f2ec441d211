//! Decides by a byte search whether an event must be parsed, or is one more piece of content.
//!
//! Most events of a stream carry a few tokens and nothing else. One pass over the bytes finds the member names that
//! matter and looks at what follows each; escaped quotes never match, so that text which imitates a payload costs
//! at most a parse. When in doubt, the answer is to parse.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};

/// What a pattern asks of the value behind it.
#[derive(Clone, Copy, PartialEq)]
enum Rule {
    /// Parse whatever follows.
    Always,
    /// Parse unless null follows.
    UnlessNull,
    /// Parse if this byte begins the value.
    If(u8),
    /// Parse if the container that follows is empty.
    IfEmpty,
    /// Text if it is a string that is not empty; else parse.
    Text(Kind),
    /// Text if it is a string that is not empty, else nothing: it stands beside another that may be text.
    OtherText(Kind),
    /// Content if it is a list of numbers that is not empty, on a route that has nothing else.
    Tokens,
    /// A delta, in which a message's text stands. Parse if it is empty.
    Delta,
    /// The event type of the Anthropic route that carries text.
    BlockDelta,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// Stands in a delta.
    Message,
    /// Stands in the choice itself.
    Plain,
}

const PATTERNS: &[(&str, Rule)] = &[
    ("\"usage\"", Rule::If(b'{')),
    ("\"metrics\"", Rule::If(b'{')),
    ("\"finish_reason\"", Rule::If(b'"')),
    ("\"error\"", Rule::UnlessNull),
    // An opener says who speaks and, on some engines, nothing else.
    ("\"role\"", Rule::If(b'"')),
    ("\"speculative_decoding\"", Rule::Always),
    ("\"speculative_decoding_stats\"", Rule::Always),
    ("\"sglext\"", Rule::Always),
    ("\"meta_info\"", Rule::Always),
    ("\"draft_n\"", Rule::Always),
    ("\"generation_metadata\"", Rule::If(b'{')),
    ("\"stats\"", Rule::If(b'{')),
    // Events of the Responses route repeat the whole text under the names of its parts.
    ("\"response.", Rule::Always),
    // An escape that may stand for a Latin letter: a member name may hide in it.
    ("\\u00", Rule::Always),
    ("\"choices\"", Rule::IfEmpty),
    ("\"delta\"", Rule::Delta),
    ("\"content\"", Rule::Text(Kind::Message)),
    ("\"text\"", Rule::Text(Kind::Plain)),
    ("\"reasoning\"", Rule::OtherText(Kind::Message)),
    ("\"reasoning_content\"", Rule::OtherText(Kind::Message)),
    ("\"token_ids\"", Rule::Tokens),
    ("\"content_block_delta\"", Rule::BlockDelta),
];

static SEARCH: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostFirst)
        .build(PATTERNS.iter().map(|(pattern, _)| pattern))
        .ok()
});

/// What the search says of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// It must be parsed.
    Parse,
    /// It is content and nothing else; where its text begins, behind the quote, if it has just one.
    Content { text_at: Option<usize> },
}

/// Whether the data of an event must be parsed; if not, it is content and nothing else.
pub fn must_parse(data: &[u8]) -> bool {
    look(data) == Look::Parse
}

/// Searches the data of an event.
pub(super) fn look(data: &[u8]) -> Look {
    let Some(search) = &*SEARCH else {
        return Look::Parse;
    };
    let text_at = |value: &[u8]| data.len() - value.len() + 1;
    let mut seen = Seen::default();
    for found in search.find_iter(data) {
        let rule = PATTERNS[found.pattern().as_usize()].1;
        let value = member_value(&data[found.end()..]);
        match (rule, value) {
            (Rule::Always, _) => return Look::Parse,
            (Rule::UnlessNull, value) => {
                if !value.is_some_and(|value| value.starts_with(b"null")) {
                    return Look::Parse;
                }
            }
            (Rule::BlockDelta, _) => seen.block_delta = true,
            // The same bytes as a value, not as a name.
            (_, None) => {}
            (Rule::If(byte), Some(value)) => {
                if value.first() == Some(&byte) {
                    return Look::Parse;
                }
            }
            (Rule::IfEmpty, Some(value)) => {
                if !is_filled(value, b'[', b']') {
                    return Look::Parse;
                }
                seen.choices = true;
            }
            (Rule::Delta, Some(value)) => {
                if !is_filled(value, b'{', b'}') {
                    return Look::Parse;
                }
                seen.delta = true;
            }
            (Rule::Text(kind), Some(value)) => {
                if !is_filled(value, b'"', b'"') {
                    return Look::Parse;
                }
                seen.note_text(kind, text_at(value));
            }
            (Rule::OtherText(kind), Some(value)) => {
                if is_filled(value, b'"', b'"') {
                    seen.note_text(kind, text_at(value));
                }
            }
            (Rule::Tokens, Some(value)) => seen.tokens |= is_list_of_numbers(value),
        }
    }
    if !seen.is_content() {
        return Look::Parse;
    }
    Look::Content {
        text_at: seen.text_at.filter(|_| seen.texts == 1),
    }
}

/// What one event has.
#[derive(Default)]
struct Seen {
    choices: bool,
    delta: bool,
    block_delta: bool,
    message_text: bool,
    plain_text: bool,
    tokens: bool,
    texts: usize,
    /// Where the last of the texts begins.
    text_at: Option<usize>,
}

impl Seen {
    fn note_text(&mut self, kind: Kind, at: usize) {
        self.texts += 1;
        self.text_at = Some(at);
        match kind {
            Kind::Message => self.message_text = true,
            Kind::Plain => self.plain_text = true,
        }
    }

    /// Token ids beside a delta may run ahead of its text: they are no content by themselves.
    fn is_content(&self) -> bool {
        if self.choices {
            if self.delta {
                self.message_text
            } else {
                self.plain_text || self.tokens
            }
        } else {
            self.block_delta && self.plain_text
        }
    }
}

/// What follows the colon behind a member name; none where there is no colon.
fn member_value(behind_name: &[u8]) -> Option<&[u8]> {
    behind_name
        .trim_ascii_start()
        .strip_prefix(b":")
        .map(<[u8]>::trim_ascii_start)
}

/// Whether a value begins as a list whose first element is a number.
fn is_list_of_numbers(value: &[u8]) -> bool {
    value.strip_prefix(b"[").is_some_and(|inner| {
        inner
            .trim_ascii_start()
            .first()
            .is_some_and(u8::is_ascii_digit)
    })
}

/// Whether a value begins with `open` and something follows before `close`.
fn is_filled(value: &[u8], open: u8, close: u8) -> bool {
    value.strip_prefix(&[open]).is_some_and(|inner| {
        // White space in a string is text.
        let inner = if open == b'"' {
            inner
        } else {
            inner.trim_ascii_start()
        };
        inner.first().is_some_and(|byte| *byte != close)
    })
}

#[cfg(test)]
mod tests;
