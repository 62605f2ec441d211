//! Reduces a JSON text to the members that facts need, as its bytes pass, without collecting it.
//!
//! A [`Reducer`] writes a pruned copy: names, usage, metrics and what stands at each choice; of text only whether
//! there is any. It takes the same memory for a reply of 2 KB and one of 200 MB. What is left out is checked for its
//! strings and brackets only; the pruned copy is small and goes through a full parser afterwards.

mod copy;
mod filter;

use memchr::{memchr2, memchr3};
use serde_json::Value;

use copy::PrunedCopy;
use filter::Place;

pub use copy::LARGEST_COPY;

/// Deepest container that is looked into, counted from the root. Deeper ones are skipped (in a kept subtree they become
/// null), so that neither our stack nor the parser's grows with the text. No member that we read is half as deep.
const DEEPEST: usize = 32;

/// Longest member name that is compared, in bytes as written; every name that we look for is shorter even if each
/// character is escaped. A longer one is nobody's.
const LONGEST_MEMBER_NAME: usize = 160;

/// Why a text gave nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// It is not JSON.
    #[error("not JSON: unexpected byte at offset {offset}")]
    NotJson {
        /// Where the first byte stands that can't be.
        offset: u64,
    },
    /// It ended in the middle.
    #[error("the JSON text ends in the middle")]
    Unfinished,
    /// A number or an escape that is kept is broken.
    #[error("a kept value is not JSON")]
    BadValue,
    /// What facts need is larger than [`LARGEST_COPY`].
    #[error("the members to keep are larger than {LARGEST_COPY} bytes")]
    TooLarge,
}

/// The incremental scanner of one JSON text.
#[derive(Debug)]
pub struct Reducer {
    state: State,
    stack: Vec<Frame>,
    copy: PrunedCopy,
    /// Bytes seen in earlier calls.
    consumed: u64,
    /// Where the coming value stands.
    place: Place,
    /// Its member name, if it is one of ours.
    name: Option<&'static str>,
    /// The member name as written.
    raw_name: Vec<u8>,
    /// The byte before was a backslash in a string: the next one doesn't end it.
    escaped: bool,
    search: Option<Search>,
}

/// A value of which only a mark is written, once it is over.
#[derive(Clone, Copy, Debug)]
struct Search {
    /// Containers open around it.
    depth: usize,
    name: Option<&'static str>,
    found: Option<&'static [u8]>,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    is_object: bool,
    place: Place,
    has_member: bool,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// A value must come.
    Value,
    /// Just behind `[`: a value or the end.
    FirstElement,
    /// Just behind `{`: a member or the end.
    FirstMember,
    /// Behind a comma in an object: a member.
    NextMember,
    MemberName,
    Colon,
    /// Behind a value: a comma or the end of the container.
    AfterValue,
    Text {
        is_copied: bool,
    },
    /// Just behind the first quote of a text that is searched for.
    TextStart,
    /// In a number or a literal.
    Atom {
        is_copied: bool,
    },
    /// In a container that nobody needs, with so many of its own kind open.
    Skip {
        open: u8,
        depth: u64,
        in_string: bool,
    },
    /// The root value is complete.
    Done,
    Failed(Unreadable),
}

impl Default for Reducer {
    fn default() -> Self {
        Self::new()
    }
}

impl Reducer {
    /// A scanner at the start of a text.
    pub fn new() -> Self {
        Self {
            state: State::Value,
            stack: Vec::new(),
            copy: PrunedCopy::default(),
            consumed: 0,
            place: Place::Root,
            name: None,
            raw_name: Vec::new(),
            escaped: false,
            search: None,
        }
    }

    /// Reads the next bytes of the text, cut anywhere.
    pub fn feed(&mut self, bytes: &[u8]) {
        let mut at = 0;
        while at < bytes.len() {
            at = match self.state {
                State::Failed(_) => return,
                State::MemberName => self.member_name(bytes, at),
                State::Text { is_copied } => self.text(bytes, at, is_copied),
                State::TextStart => {
                    if bytes[at] != b'"' {
                        self.note(MARK);
                    }
                    // The byte is read again as part of the text: it may end it.
                    self.state = State::Text { is_copied: false };
                    at
                }
                State::Atom { is_copied } => self.atom(bytes, at, is_copied),
                State::Skip {
                    open,
                    depth,
                    in_string,
                } => self.skip(bytes, at, open, depth, in_string),
                _ => {
                    if !matches!(bytes[at], b' ' | b'\t' | b'\r' | b'\n') {
                        self.structure(bytes[at], self.consumed + at as u64);
                    }
                    at + 1
                }
            };
            if self.copy.is_full() {
                self.state = State::Failed(Unreadable::TooLarge);
            }
        }
        self.consumed += bytes.len() as u64;
    }

    /// The end of the text: the pruned copy, parsed. The last of several members of one name wins, as in most parsers.
    /// A text that is JSON but no object gives null.
    ///
    /// # Errors
    ///
    /// The first thing that was wrong with the text.
    pub fn finish(mut self) -> Result<Value, Unreadable> {
        if matches!(self.state, State::Atom { .. }) {
            // Nothing but the end says that a number is complete.
            self.end_value();
        }
        match self.state {
            State::Done => self.copy.parse(),
            State::Failed(why) => Err(why),
            _ => Err(Unreadable::Unfinished),
        }
    }

    /// Bytes held for this text.
    pub fn held(&self) -> usize {
        self.copy.len() + self.raw_name.len() + self.stack.len() * size_of::<Frame>()
    }
}

/// Stands for any text that was found.
const MARK: &[u8] = b"\"+\"";

/// Stands for any object that was found.
const OBJECT_MARK: &[u8] = b"{}";

// Structure: one byte outside of strings, numbers and skipped containers.
impl Reducer {
    fn structure(&mut self, byte: u8, offset: u64) {
        let frame = self.stack.last().copied();
        match (self.state, byte, frame) {
            (State::FirstElement, b']', _) | (State::FirstMember, b'}', _) => self.close(),
            (State::FirstMember | State::NextMember, b'"', _) => {
                self.raw_name.clear();
                self.state = State::MemberName;
            }
            (State::Colon, b':', _) => self.state = State::Value,
            (State::Value | State::FirstElement, _, _) => self.begin_value(byte, offset),
            (State::AfterValue, b',', Some(frame)) if frame.is_object => {
                self.state = State::NextMember;
            }
            (State::AfterValue, b',', Some(frame)) => {
                self.place = frame.place.element();
                self.name = None;
                self.state = State::Value;
            }
            (State::AfterValue, b'}', Some(frame)) if frame.is_object => self.close(),
            (State::AfterValue, b']', Some(frame)) if !frame.is_object => self.close(),
            _ => self.state = State::Failed(Unreadable::NotJson { offset }),
        }
    }

    fn begin_value(&mut self, byte: u8, offset: u64) {
        let place = self.place;
        if place.is_search() && self.search.is_none() {
            self.search = Some(Search {
                depth: self.stack.len(),
                name: self.name,
                found: None,
            });
        }
        match byte {
            b'{' | b'[' => self.open(byte, place),
            b'"' if place.copies_scalar() => {
                self.write_name(self.name);
                self.copy.push(b"\"");
                self.state = State::Text { is_copied: true };
            }
            b'"' if matches!(place, Place::Words | Place::Kind) => self.state = State::TextStart,
            b'"' => {
                self.keep_position(place);
                self.state = State::Text { is_copied: false };
            }
            b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => {
                let is_copied = place.copies_scalar();
                if is_copied {
                    self.write_name(self.name);
                    self.copy.push(&[byte]);
                } else if place == Place::Numbers && byte.is_ascii_digit() {
                    self.note(MARK);
                }
                self.keep_position(place);
                self.state = State::Atom { is_copied };
            }
            _ => self.state = State::Failed(Unreadable::NotJson { offset }),
        }
    }

    fn open(&mut self, open: u8, place: Place) {
        let is_object = open == b'{';
        if place.opens(is_object) && self.stack.len() < DEEPEST {
            if place.is_written() {
                self.write_name(self.name);
                self.copy.push(&[open]);
            }
            self.stack.push(Frame {
                is_object,
                place,
                has_member: false,
            });
            self.place = place.element();
            self.name = None;
            self.state = if is_object {
                State::FirstMember
            } else {
                State::FirstElement
            };
            return;
        }
        match place {
            Place::Kind if is_object => self.note(OBJECT_MARK),
            Place::Keep => {
                self.write_name(self.name);
                self.copy.push(b"null");
            }
            _ => self.keep_position(place),
        }
        self.state = State::Skip {
            open,
            depth: 1,
            in_string: false,
        };
    }

    fn close(&mut self) {
        if let Some(frame) = self.stack.pop() {
            if frame.place.is_written() {
                self.copy.push(if frame.is_object { b"}" } else { b"]" });
            }
            self.end_value();
        }
    }

    /// Behind a complete value.
    fn end_value(&mut self) {
        if let Some(search) = self.search {
            if search.depth == self.stack.len() {
                self.search = None;
                self.write_name(search.name);
                self.copy.push(search.found.unwrap_or(b"null"));
            } else if search.found.is_some() {
                self.skip_rest_of_search(search.depth);
                return;
            }
        }
        self.state = if self.stack.is_empty() {
            State::Done
        } else {
            State::AfterValue
        };
    }

    /// One find is enough: the rest of the searched container is skipped.
    fn skip_rest_of_search(&mut self, depth: usize) {
        let is_object = self.stack[depth].is_object;
        let open = self.stack.split_off(depth);
        self.state = State::Skip {
            open: if is_object { b'{' } else { b'[' },
            depth: open.iter().filter(|f| f.is_object == is_object).count() as u64,
            in_string: false,
        };
    }

    fn note(&mut self, mark: &'static [u8]) {
        if let Some(search) = &mut self.search {
            search.found = Some(mark);
        }
    }

    /// The comma in front of a member or an element, and a member's name.
    fn write_name(&mut self, name: Option<&'static str>) {
        if let Some(frame) = self.stack.last_mut() {
            if std::mem::replace(&mut frame.has_member, true) {
                self.copy.push(b",");
            }
            if frame.is_object {
                self.copy.push(b"\"");
                self.copy
                    .push(name.map_or(&self.raw_name[..], str::as_bytes));
                self.copy.push(b"\":");
            }
        }
    }

    /// A choice that is no object still takes its position in the list.
    fn keep_position(&mut self, place: Place) {
        if place == Place::Choice {
            self.write_name(None);
            self.copy.push(b"null");
        }
    }
}

// Runs of bytes: each takes what it can from `at` on and returns where it stopped.
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

    fn text(&mut self, bytes: &[u8], at: usize, is_copied: bool) -> usize {
        let (end, is_over) = self.string(bytes, at);
        if is_copied {
            self.copy.push(&bytes[at..end]);
        }
        if is_over {
            self.end_value();
        }
        end
    }

    fn member_name(&mut self, bytes: &[u8], at: usize) -> usize {
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

    fn atom(&mut self, bytes: &[u8], at: usize, is_copied: bool) -> usize {
        let length = bytes[at..].iter().position(
            |byte| !matches!(byte, b'0'..=b'9' | b'a'..=b'z' | b'E' | b'.' | b'-' | b'+'),
        );
        let end = length.map_or(bytes.len(), |length| at + length);
        if is_copied {
            self.copy.push(&bytes[at..end]);
        }
        if length.is_some() {
            self.end_value();
        }
        end
    }

    fn skip(
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

#[cfg(test)]
mod tests;
