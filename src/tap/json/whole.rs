//! Members and numbers that stand whole in the bytes that are fed, written as engines write them. Nearly all do, and they
//! are read in one go; what is cut, blank, escaped or broken goes through the states byte by byte and comes to the same.

use super::filter::Place;
use super::runs::{LONGEST_MEMBER_NAME, end_of_atom, quote_or_escape};
use super::{Reducer, State};

impl Reducer {
    /// Reads from `at` on as far as it can. Gives back where it stopped, which is `at` if it could not.
    pub(super) fn whole(&mut self, bytes: &[u8], at: usize) -> usize {
        let Some(frame) = self.stack.last_mut() else {
            return at;
        };
        // What a text search sees goes through the states.
        if self.search.is_some() {
            return at;
        }
        match self.state {
            State::FirstMember | State::NextMember => self.whole_members(bytes, at),
            State::AfterValue if frame.is_object => self.whole_members(bytes, at),
            State::FirstElement | State::Value
                if !frame.is_object && frame.place == Place::Keep =>
            {
                self.whole_numbers(bytes, at)
            }
            _ => at,
        }
    }

    /// Reads the elements of a kept list that are digits and have a comma behind them.
    fn whole_numbers(&mut self, bytes: &[u8], at: usize) -> usize {
        let mut end = at;
        loop {
            let digits = bytes[end..].iter().take_while(|byte| byte.is_ascii_digit());
            let behind = end + digits.count();
            if behind == end || bytes.get(behind) != Some(&b',') {
                break;
            }
            end = behind + 1;
        }
        if end > at {
            self.write_name();
            self.copy.push(&bytes[at..end - 1]);
            self.state = State::Value;
        }
        end
    }

    fn whole_members(&mut self, bytes: &[u8], mut at: usize) -> usize {
        let Some(frame) = self.stack.last_mut() else {
            return at;
        };
        // What is kept and stands together is copied together.
        let mut kept = at..at;
        let mut is_behind_value = matches!(self.state, State::AfterValue);
        loop {
            let start = match bytes[at..] {
                [b'"', ..] if !is_behind_value => at,
                [b',', b'"', ..] if is_behind_value => at + 1,
                [b',', b' ', b'"', ..] if is_behind_value => at + 2,
                _ => break,
            };
            let Some((name, colon)) = plain_name(bytes, start) else {
                break;
            };
            let value = match bytes[colon..] {
                [b':', b' ', _, ..] => colon + 2,
                [b':', _, ..] => colon + 1,
                _ => break,
            };
            let member = frame.place.member(name);
            let place = member.of_value(bytes[value]);
            let end = match bytes[value] {
                _ if place.is_search() => None,
                b'"' => end_of_string(bytes, value),
                b'0'..=b'9' | b't' | b'f' | b'n' => end_of_atom(bytes, value),
                b'-' if bytes.get(value + 1).is_some_and(u8::is_ascii_digit) => {
                    end_of_atom(bytes, value)
                }
                b'{' | b'[' => None,
                _ => break,
            };
            let Some(end) = end else {
                self.raw_name.clear();
                self.raw_name.extend_from_slice(&bytes[start..=colon]);
                self.place = member;
                self.state = State::Value;
                at = value;
                break;
            };
            if place.copies_scalar() {
                let is_next = kept.end + 1 == start && frame.has_member;
                if !is_next {
                    self.copy.push(&bytes[kept]);
                    if std::mem::replace(&mut frame.has_member, true) {
                        self.copy.push(b",");
                    }
                    kept = start..start;
                }
                if colon + 1 != value {
                    self.copy.push(&bytes[kept.start..=colon]);
                    kept.start = value;
                }
                kept.end = end;
            }
            self.state = State::AfterValue;
            is_behind_value = true;
            at = end;
        }
        self.copy.push(&bytes[kept]);
        at
    }
}

/// The name whose first quote stands at `start`, and where its colon should be; none if it is cut, has an escape or is
/// longer than any of ours.
fn plain_name(bytes: &[u8], start: usize) -> Option<(&[u8], usize)> {
    let end = quote_or_escape(bytes, start + 1)?;
    let name = &bytes[start + 1..end];
    (bytes[end] == b'"' && name.len() <= LONGEST_MEMBER_NAME).then_some((name, end + 1))
}

/// Just behind the string whose first quote stands at `start`; none if it is cut.
fn end_of_string(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        at = quote_or_escape(bytes, at)?;
        if bytes[at] == b'"' {
            return Some(at + 1);
        }
        at += 2;
    }
}
