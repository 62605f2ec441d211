//! What the reducer does at one byte outside of strings, numbers and skipped containers.

use super::filter::Place;
use super::{Frame, Reducer, Search, State, Unreadable};

/// Deepest container that is looked into, counted from the root. Deeper ones are skipped (in a kept subtree they become
/// null), so that neither our stack nor the parser's grows with the text. No member that we read is half as deep.
const DEEPEST: usize = 32;

/// Stands for any text that was found.
pub(super) const MARK: &[u8] = b"\"+\"";

/// Stands for any object that was found.
const OBJECT_MARK: &[u8] = b"{}";

impl Reducer {
    pub(super) fn structure(&mut self, byte: u8, offset: u64) {
        let frame = self.stack.last().copied();
        match (self.state, byte, frame) {
            (State::FirstElement, b']', _) | (State::FirstMember, b'}', _) => self.close(),
            (State::FirstMember | State::NextMember, b'"', _) => {
                self.raw_name.clear();
                self.raw_name.push(b'"');
                self.state = State::MemberName;
            }
            (State::Colon, b':', _) => self.state = State::Value,
            (State::Value | State::FirstElement, _, _) => self.begin_value(byte, offset),
            (State::AfterValue, b',', Some(frame)) if frame.is_object => {
                self.state = State::NextMember;
            }
            (State::AfterValue, b',', Some(frame)) => {
                self.place = frame.place.element();
                self.state = State::Value;
            }
            (State::AfterValue, b'}', Some(frame)) if frame.is_object => self.close(),
            (State::AfterValue, b']', Some(frame)) if !frame.is_object => self.close(),
            _ => self.state = State::Failed(Unreadable::NotJson { offset }),
        }
    }

    fn begin_value(&mut self, byte: u8, offset: u64) {
        let place = self.place.of_value(byte);
        if place.is_search() && self.search.is_none() {
            self.write_name();
            self.search = Some(Search {
                depth: self.stack.len(),
                found: None,
            });
        }
        match byte {
            b'{' | b'[' => self.open(byte, place),
            b'"' if place.copies_scalar() => {
                self.write_name();
                self.copy.push(b"\"");
                self.state = State::Text { is_copied: true };
            }
            b'"' if matches!(place, Place::Words | Place::Kind) => self.state = State::TextStart,
            b'"' => {
                self.keep_position(place);
                self.state = State::Text { is_copied: false };
            }
            b'-' | b'0'..=b'9' | b't' | b'f' | b'n' | b'N' | b'I' => {
                let is_copied = place.copies_scalar();
                if is_copied {
                    self.write_name();
                    self.copy.begin_atom();
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
                self.write_name();
                self.copy.push(&[open]);
            }
            self.stack.push(Frame {
                is_object,
                place,
                has_member: false,
            });
            self.place = place.element();
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
                self.write_name();
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
    pub(super) fn end_value(&mut self) {
        if let Some(search) = self.search {
            if search.depth == self.stack.len() {
                self.search = None;
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

    pub(super) fn note(&mut self, mark: &'static [u8]) {
        if let Some(search) = &mut self.search {
            search.found = Some(mark);
        }
    }

    /// The comma in front of a member or an element, and a member's name.
    pub(super) fn write_name(&mut self) {
        if let Some(frame) = self.stack.last_mut() {
            if std::mem::replace(&mut frame.has_member, true) {
                self.copy.push(b",");
            }
            if frame.is_object {
                self.copy.push(&self.raw_name);
            }
        }
    }

    /// A choice, or an element of a batch, that is no object still takes its position in the list.
    fn keep_position(&mut self, place: Place) {
        if place.keeps_position() {
            self.write_name();
            self.copy.push(b"null");
        }
    }
}
