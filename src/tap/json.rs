//! Reduces a JSON text to the members that facts need, as its bytes pass, without collecting it.
//!
//! A [`Reducer`] writes a pruned copy: names, usage, metrics and what stands at each choice; of text only whether
//! there is any. It takes the same memory for a reply of 2 KB and one of 200 MB. What is left out is checked for its
//! strings and brackets only; the pruned copy is small and goes through a full parser afterwards.

mod copy;
mod filter;
mod parse;
mod runs;
mod skip;
mod structure;
mod tree;
mod whole;

#[cfg(any(test, feature = "fuzzing"))]
use serde_json::Value;

use copy::PrunedCopy;
use filter::Place;
use tree::Node;

use crate::engines::Json;

pub use copy::LARGEST_COPY;
pub(super) use runs::quote_or_escape;

/// Bytes for which a member's name has room from the start.
const USUAL_NAME: usize = 48;

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
    /// Its member name as written, with its quotes and its colon.
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
            raw_name: Vec::with_capacity(USUAL_NAME),
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
                        self.note(structure::MARK);
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
                    let whole = self.whole(bytes, at);
                    if whole > at {
                        whole
                    } else {
                        if !self.is_blank(bytes[at]) {
                            self.structure(bytes[at], self.consumed + at as u64);
                        }
                        at + 1
                    }
                }
            };
            if self.copy.is_full() {
                self.state = State::Failed(Unreadable::TooLarge);
            }
        }
        self.consumed += bytes.len() as u64;
    }

    /// White space, or part of a byte order mark in front of the text.
    fn is_blank(&self, byte: u8) -> bool {
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => true,
            0xEF | 0xBB | 0xBF => self.stack.is_empty() && matches!(self.state, State::Value),
            _ => false,
        }
    }

    /// The end of the text: shows what was kept of it. The last of several members of one name wins, as in most parsers.
    /// A text that is JSON but neither object nor list gives null; in a list, what is no object is null.
    ///
    /// # Errors
    ///
    /// The first thing that was wrong with the text.
    pub fn read<R>(self, read: impl FnOnce(Json<'_>) -> R) -> Result<R, Unreadable> {
        self.tree(|tree| read(tree.json()))
    }

    /// The end of the text: what was kept of it, as `serde_json` has it.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(super) fn finish(self) -> Result<Value, Unreadable> {
        self.tree(|tree| Value::from(tree))
    }

    fn tree<R>(mut self, read: impl FnOnce(Node<'_>) -> R) -> Result<R, Unreadable> {
        if let State::Atom { is_copied } = self.state {
            // Nothing but the end says that a number is complete.
            self.end_atom(is_copied);
        }
        match self.state {
            State::Done => self.copy.read(read),
            State::Failed(why) => Err(why),
            _ => Err(Unreadable::Unfinished),
        }
    }

    /// Bytes held for this text.
    pub fn held(&self) -> usize {
        self.copy.len() + self.raw_name.len() + self.stack.len() * size_of::<Frame>()
    }
}

#[cfg(test)]
mod tests;
