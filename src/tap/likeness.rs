//! Most events of a stream are the one before with another piece of text. Who compares them byte by byte need not search
//! each for names: that an event is content and nothing else follows from its likeness to one that is.

use std::fmt;
use std::ops::Range;

use memchr::memchr2;

use super::needle::{Look, look};

/// Longest event that is kept for comparison, in bytes: a few hundred are usual.
const LONGEST_KEPT: usize = 2048;

/// The last event of a stream that was content and nothing else.
#[derive(Default)]
pub struct LastContent {
    event: Vec<u8>,
    /// Where its text stands, without the quotes.
    text: Range<usize>,
}

/// Shows no byte of the stream: it is somebody's text.
impl fmt::Debug for LastContent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("LastContent")
            .field("length", &self.event.len())
            .finish_non_exhaustive()
    }
}

impl LastContent {
    /// Whether the data of an event must be parsed; if not, it is content and nothing else. As
    /// [`must_parse`](super::needle::must_parse), and remembers what it has seen.
    pub fn must_parse(&mut self, data: &[u8]) -> bool {
        if self.resembles(data) {
            return false;
        }
        match look(data) {
            Look::Parse => true,
            Look::Content { text_at } => {
                if let Some(start) = text_at.filter(|_| data.len() <= LONGEST_KEPT)
                    && let Some(length) = text_length(&data[start..])
                {
                    self.event.clear();
                    self.event.extend_from_slice(data);
                    self.text = start..start + length;
                }
                false
            }
        }
    }

    /// Whether it is the same event but for the text, and has some.
    fn resembles(&self, data: &[u8]) -> bool {
        let (before, behind) = (&self.event[..self.text.start], &self.event[self.text.end..]);
        // Nothing is kept so far where nothing is before the text.
        !before.is_empty()
            && data.len() > before.len() + behind.len()
            && data.starts_with(before)
            && data.ends_with(behind)
            && text_length(&data[before.len()..]) == Some(data.len() - before.len() - behind.len())
    }
}

/// Length of a JSON string from behind its opening quote to before its closing one (RFC 8259 section 7); none if it has
/// no end.
fn text_length(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr2(b'"', b'\\', text.get(at..)?)?;
        if text[at] == b'"' {
            return Some(at);
        }
        at += 2;
    }
}

#[cfg(test)]
mod tests;
