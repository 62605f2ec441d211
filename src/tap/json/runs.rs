//! Runs of bytes in strings, names and numbers, at the speed of a byte search. Each takes what it can
//! from `at` on and returns where it stopped.

use memchr::memchr2;

use super::filter::Place;
use super::{Reducer, State};

/// Longest member name that is compared, in bytes as written; every name that we look for is shorter even if each
/// character is escaped. A longer one is nobody's.
pub(super) const LONGEST_MEMBER_NAME: usize = 160;

/// The two quotes of a name.
const QUOTES: usize = 2;

impl Reducer {
    /// To the end of the string that `at` is in; whether that was reached.
    fn string(&mut self, bytes: &[u8], mut at: usize) -> (usize, bool) {
        if std::mem::take(&mut self.escaped) {
            at += 1;
        }
        while let Some(found) = quote_or_escape(bytes, at) {
            at = found;
            if bytes[at] == b'"' {
                return (at + 1, true);
            }
            if at + 1 == bytes.len() {
                self.escaped = true;
                return (bytes.len(), false);
            }
            at += 2;
        }
        (bytes.len(), false)
    }

    pub(super) fn text(&mut self, bytes: &[u8], at: usize, is_copied: bool) -> usize {
        let (end, is_over) = self.string(bytes, at);
        if is_copied {
            self.copy.push(&bytes[at..end]);
        }
        if is_over {
            self.end_value();
        }
        end
    }

    pub(super) fn member_name(&mut self, bytes: &[u8], at: usize) -> usize {
        let (end, is_over) = self.string(bytes, at);
        let part = &bytes[at..end];
        let room = (LONGEST_MEMBER_NAME + QUOTES + 1).saturating_sub(self.raw_name.len());
        self.raw_name
            .extend_from_slice(&part[..part.len().min(room)]);
        if is_over {
            self.state = State::Colon;
            let container = self.stack.last().map_or(Place::Skip, |frame| frame.place);
            self.place = match &self.raw_name[..] {
                quoted if quoted.len() > LONGEST_MEMBER_NAME + QUOTES => container.unknown_member(),
                quoted if quoted.contains(&b'\\') => container.member(unescape(quoted).as_bytes()),
                [_, name @ .., _] => container.member(name),
                _ => Place::Skip,
            };
            self.raw_name.push(b':');
        }
        end
    }

    pub(super) fn atom(&mut self, bytes: &[u8], at: usize, is_copied: bool) -> usize {
        let found = end_of_atom(bytes, at);
        let end = found.unwrap_or(bytes.len());
        if is_copied {
            self.copy.push(&bytes[at..end]);
        }
        if found.is_some() {
            self.end_atom(is_copied);
        }
        end
    }

    pub(super) fn end_atom(&mut self, is_copied: bool) {
        if is_copied {
            self.copy.end_atom();
        }
        self.end_value();
    }
}

/// Where the first byte stands from `at` on that can't be part of a number or a literal.
pub(super) fn end_of_atom(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = &bytes[at..];
    // Most values of a reply are null.
    let known = if rest.starts_with(b"null") { 4 } else { 0 };
    let mut behind = rest[known..].iter();
    let length = behind.position(|&byte| !IN_ATOM[usize::from(byte)])?;
    Some(at + known + length)
}

/// The bytes of numbers and literals, those among them that JSON does not have.
const IN_ATOM: [bool; 256] = {
    let mut bytes = [false; 256];
    let mut byte = 0;
    while byte < bytes.len() {
        bytes[byte] = matches!(
            byte as u8,
            b'0'..=b'9' | b'a'..=b'z' | b'E' | b'N' | b'I' | b'.' | b'-' | b'+'
        );
        byte += 1;
    }
    bytes
};

/// Where the first quote or backslash stands from `at` on. Names and most texts are shorter than what a call of the
/// vectorized search pays for.
pub(in crate::tap) fn quote_or_escape(bytes: &[u8], mut at: usize) -> Option<usize> {
    for _ in 0..3 {
        let Some(word) = bytes.get(at..).and_then(|rest| rest.first_chunk()) else {
            break;
        };
        let word = u64::from_le_bytes(*word);
        let found = zero_bytes(word ^ repeated(b'"')) | zero_bytes(word ^ repeated(b'\\'));
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize / 8);
        }
        at += size_of::<u64>();
    }
    Some(at + memchr2(b'"', b'\\', bytes.get(at..)?)?)
}

const fn repeated(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

/// The high bit of each byte that is zero. Of those above the lowest one some may be set wrongly.
const fn zero_bytes(word: u64) -> u64 {
    word.wrapping_sub(repeated(0x01)) & !word & repeated(0x80)
}

/// A member name in quotes with its escapes resolved; one with a broken escape is nobody's.
fn unescape(quoted: &[u8]) -> String {
    serde_json::from_slice(quoted).unwrap_or_default()
}
