//! Parses a pruned copy into its tree. The copy's brackets, commas and quotes are right, since the reducer wrote them; its
//! numbers, literals and escapes stand as they came.

use std::borrow::Cow;

use super::Unreadable;
use super::runs::quote_or_escape;
use super::tree::{Members, Node, Nodes};

/// Members for which an object has room from the start, and elements for which a list has: as many as most have.
const USUAL_LENGTH: usize = 10;

/// Longest run of digits that surely is a `u64`.
const MOST_DIGITS: usize = 19;

/// Parses all of `text`.
///
/// # Errors
///
/// [`Unreadable::BadValue`] if a number, a literal or an escape is broken.
pub(super) fn parse(text: &str) -> Result<Node<'_>, Unreadable> {
    let mut parser = Parser {
        text,
        has_controls: text
            .bytes()
            .fold(false, |found, byte| found | (byte < b' ')),
        at: 0,
        is_broken: false,
    };
    let root = parser.value();
    if parser.is_broken {
        Err(Unreadable::BadValue)
    } else {
        Ok(root)
    }
}

struct Parser<'t> {
    text: &'t str,
    /// Somewhere in the text are control characters, which no JSON string may hold.
    has_controls: bool,
    at: usize,
    /// Something was wrong: what was made so far is worth nothing.
    is_broken: bool,
}

impl<'t> Parser<'t> {
    /// The byte that comes; 0, which the copy has nowhere outside of texts, at the end.
    fn next(&self) -> u8 {
        self.text.as_bytes().get(self.at).copied().unwrap_or(0)
    }

    /// Nothing here goes deeper than the reducer, which stops at 32.
    fn value(&mut self) -> Node<'t> {
        match self.next() {
            b'{' => Node::Object(self.object()),
            b'[' => Node::List(self.list()),
            b'"' => Node::Text(self.string()),
            _ => self.atom(),
        }
    }

    fn object(&mut self) -> Members<'t> {
        let mut members = Vec::new();
        while self.goes_on(b'}', members.is_empty()) {
            if members.is_empty() {
                members.reserve(USUAL_LENGTH);
            }
            let name = self.string();
            self.expect(b':');
            members.push((name, self.value()));
        }
        Members(members)
    }

    fn list(&mut self) -> Nodes<'t> {
        let mut nodes = Vec::new();
        while self.goes_on(b']', nodes.is_empty()) {
            if nodes.is_empty() {
                nodes.reserve(USUAL_LENGTH);
            }
            nodes.push(self.value());
        }
        Nodes(nodes)
    }

    /// Steps over the opening bracket, the comma or the closing bracket; whether there is more before that one.
    fn goes_on(&mut self, close: u8, at_start: bool) -> bool {
        if at_start {
            self.at += 1;
        }
        if self.next() == close {
            self.at += 1;
            return false;
        }
        if !at_start {
            self.expect(b',');
        }
        !self.is_broken
    }

    fn expect(&mut self, byte: u8) {
        self.is_broken |= self.next() != byte;
        self.at += 1;
    }

    /// What was wrong stands for an empty text.
    fn string(&mut self) -> Cow<'t, str> {
        let bytes = self.text.as_bytes();
        let start = self.at;
        let mut at = start + 1;
        let mut is_plain = !self.has_controls;
        while let Some(found) = quote_or_escape(bytes, at) {
            if bytes[found] == b'"' {
                self.at = found + 1;
                let read = if is_plain {
                    self.text.get(start + 1..found).map(Cow::Borrowed)
                } else {
                    let unescaped = serde_json::from_slice(&bytes[start..=found]).ok();
                    unescaped.map(Cow::Owned)
                };
                self.is_broken |= read.is_none();
                return read.unwrap_or_default();
            }
            is_plain = false;
            at = found + 2;
        }
        self.is_broken = true;
        Cow::default()
    }

    fn atom(&mut self) -> Node<'t> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let ends = |length| matches!(rest.get(length), None | Some(b',' | b']' | b'}'));
        let (length, node) = match rest {
            [b'n', b'u', b'l', b'l', ..] if ends(4) => (4, Node::Null),
            [b't', b'r', b'u', b'e', ..] if ends(4) => (4, Node::Bool(true)),
            [b'f', b'a', b'l', b's', b'e', ..] if ends(5) => (5, Node::Bool(false)),
            _ => {
                let mut integer = 0u64;
                let mut digits = 0;
                while let Some(digit @ b'0'..=b'9') = rest.get(digits) {
                    integer = integer.wrapping_mul(10).wrapping_add((digit - b'0').into());
                    digits += 1;
                }
                let has_extra_zero = digits > 1 && rest[0] == b'0';
                if matches!(digits, 1..=MOST_DIGITS) && !has_extra_zero && ends(digits) {
                    (digits, Node::Number(integer.into()))
                } else {
                    let length = (digits..=rest.len()).find(|&length| ends(length));
                    let length = length.unwrap_or(rest.len());
                    let number = serde_json::from_slice(&rest[..length]).ok();
                    self.is_broken |= number.is_none();
                    (length, number.map_or(Node::Null, Node::Number))
                }
            }
        };
        self.at += length;
        node
    }
}
