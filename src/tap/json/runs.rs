//! Runs of bytes in strings, names, numbers and skipped containers, at the speed of a byte search. Each takes what it can
//! from `at` on and returns where it stopped.

use memchr::{memchr2, memchr3};

use super::filter::Place;
use super::{Reducer, State};

/// Longest member name that is compared, in bytes as written; every name that we look for is shorter even if each
/// character is escaped. A longer one is nobody's.
const LONGEST_MEMBER_NAME: usize = 160;

impl Reducer {
    /// To the end of the string that `at` is in; whether that was reached.
    fn string(&mut self, bytes: &[u8], mut at: usize) -> (usize, bool) {
        if std::mem::take(&mut self.escaped) {
            at += 1;
        }
        while let Some(distance) = memchr2(b'"', b'\\', &bytes[at..]) {
            at += distance;
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
        let part = &bytes[at..end - usize::from(is_over)];
        let room = (LONGEST_MEMBER_NAME + 1).saturating_sub(self.raw_name.len());
        self.raw_name
            .extend_from_slice(&part[..part.len().min(room)]);
        if is_over {
            self.state = State::Colon;
            let container = self.stack.last().map_or(Place::Skip, |frame| frame.place);
            (self.place, self.name) = if self.raw_name.len() > LONGEST_MEMBER_NAME {
                (container.unknown_member(), None)
            } else if self.raw_name.contains(&b'\\') {
                container.member(&unescape(&self.raw_name))
            } else {
                container.member(std::str::from_utf8(&self.raw_name).unwrap_or_default())
            };
        }
        end
    }

    pub(super) fn atom(&mut self, bytes: &[u8], at: usize, is_copied: bool) -> usize {
        let length = bytes[at..].iter().position(
            |byte| !matches!(byte, b'0'..=b'9' | b'a'..=b'z' | b'E' | b'N' | b'I' | b'.' | b'-' | b'+'),
        );
        let end = length.map_or(bytes.len(), |length| at + length);
        if is_copied {
            self.copy.push(&bytes[at..end]);
        }
        if length.is_some() {
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

    pub(super) fn skip(
        &mut self,
        bytes: &[u8],
        mut at: usize,
        open: u8,
        mut depth: u64,
        mut in_string: bool,
    ) -> usize {
        // `]` and `}` stand two behind `[` and `{`.
        let close = open + 2;
        while at < bytes.len() {
            if in_string {
                let (end, is_over) = self.string(bytes, at);
                in_string = !is_over;
                at = end;
                continue;
            }
            let Some(distance) = memchr3(b'"', open, close, &bytes[at..]) else {
                at = bytes.len();
                break;
            };
            let byte = bytes[at + distance];
            at += distance + 1;
            if byte == b'"' {
                in_string = true;
            } else if byte == open {
                depth += 1;
            } else {
                depth -= 1;
                if depth == 0 {
                    self.end_value();
                    return at;
                }
            }
        }
        self.state = State::Skip {
            open,
            depth,
            in_string,
        };
        at
    }
}

/// A member name with its escapes resolved; one with a broken escape is nobody's.
fn unescape(raw: &[u8]) -> String {
    let quoted = [b"\"", raw, b"\""].concat();
    serde_json::from_slice(&quoted).unwrap_or_default()
}
