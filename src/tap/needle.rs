//! Decides by a byte search whether an event must be parsed, or is one more piece of content.
//!
//! Most events of a stream carry a few tokens and nothing else. One pass over the bytes finds the member names that
//! matter and looks at what follows each; escaped quotes never match, so that text which imitates a payload costs
//! at most a parse. When in doubt, the answer is to parse.
//!
//! A [`Needle`] is the search over one stream. It remembers what content looked like, so that most events need no pass.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};

use template::{Hole, HoleKind, Template};

mod template;

/// Shapes of events that are remembered: several sequences come by turns, each with its index.
const MOST_TEMPLATES: usize = 4;

/// The search over the events of one stream.
#[derive(Debug, Default)]
pub struct Needle {
    templates: Vec<Template>,
    /// The template that goes next.
    oldest: usize,
}

impl Needle {
    /// The same as [`must_parse`].
    pub fn must_parse(&mut self, data: &[u8]) -> bool {
        if self.templates.iter().any(|template| template.fits(data)) {
            return false;
        }
        let Found::Content(hole) = search(data) else {
            return true;
        };
        if let Some(template) = hole.and_then(|hole| Template::of(data, hole)) {
            if self.templates.len() < MOST_TEMPLATES {
                self.templates.push(template);
            } else {
                self.templates[self.oldest] = template;
                self.oldest = (self.oldest + 1) % MOST_TEMPLATES;
            }
        }
        false
    }
}

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

/// Whether the data of an event must be parsed; if not, it is content and nothing else.
pub fn must_parse(data: &[u8]) -> bool {
    matches!(search(data), Found::More)
}

/// What the search makes of an event.
enum Found {
    /// It is content and nothing else. The hole: the first value that makes it that.
    Content(Option<Hole>),
    /// It may hold more, or no content at all.
    More,
}

fn search(data: &[u8]) -> Found {
    let Some(search) = &*SEARCH else {
        return Found::More;
    };
    let mut seen = Seen::default();
    for found in search.find_iter(data) {
        let rule = PATTERNS[found.pattern().as_usize()].1;
        let value = member_value(&data[found.end()..]);
        match (rule, value) {
            (Rule::Always, _) => return Found::More,
            (Rule::UnlessNull, value) => {
                if !value.is_some_and(|value| value.starts_with(b"null")) {
                    return Found::More;
                }
            }
            (Rule::BlockDelta, _) => seen.block_delta = true,
            // The same bytes as a value, not as a name.
            (_, None) => {}
            (Rule::If(byte), Some(value)) => {
                if value.first() == Some(&byte) {
                    return Found::More;
                }
            }
            (Rule::IfEmpty, Some(value)) => {
                if !is_filled(value, b'[', b']') {
                    return Found::More;
                }
                seen.choices = true;
            }
            (Rule::Delta, Some(value)) => {
                if !is_filled(value, b'{', b'}') {
                    return Found::More;
                }
                seen.delta = true;
            }
            (Rule::Text(kind), Some(value)) => {
                if !is_filled(value, b'"', b'"') {
                    return Found::More;
                }
                seen.note_text(kind);
                seen.note_hole(data, value, HoleKind::Text);
            }
            (Rule::OtherText(kind), Some(value)) => {
                if is_filled(value, b'"', b'"') {
                    seen.note_text(kind);
                    seen.note_hole(data, value, HoleKind::Text);
                }
            }
            (Rule::Tokens, Some(value)) => {
                if is_list_of_numbers(value) {
                    seen.tokens = true;
                    seen.note_hole(data, value, HoleKind::Numbers);
                }
            }
        }
    }
    if seen.is_content() {
        Found::Content(seen.hole)
    } else {
        Found::More
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
    hole: Option<Hole>,
}

impl Seen {
    /// `value` is the end of `data`, from the value's first byte on.
    fn note_hole(&mut self, data: &[u8], value: &[u8], kind: HoleKind) {
        let start = data.len() - value.len() + 1;
        self.hole.get_or_insert(Hole { start, kind });
    }

    fn note_text(&mut self, kind: Kind) {
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
