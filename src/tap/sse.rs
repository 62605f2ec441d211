//! Splits a stream of server-sent events into its blocks as the bytes pass, at any chunking.
//!
//! A block is everything up to and including its blank line: the bytes that a stripper takes out or leaves, and the
//! event that an observer reads. A block that lies in one chunk is handed out as a slice of it; only a block that is
//! not finished yet is copied, up to a cap. Rules: WHATWG HTML, section 9.2.5 "Parsing an event stream".

use std::borrow::Cow;
use std::fmt;

use memchr::{memchr, memchr2};

/// The usual cap on one block, in bytes; a larger one is skipped to its end.
pub const LARGEST_EVENT: usize = 1 << 20;

/// Room that the buffer keeps between blocks; what one large event needed beyond it is given back.
const KEPT_CAPACITY: usize = 16 << 10;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The incremental splitter of one stream.
pub struct Splitter {
    cap: usize,
    /// The unfinished block so far.
    buffer: Vec<u8>,
    /// The unfinished block is over the cap, its bytes are gone.
    skipping: bool,
    /// The current line has no byte yet.
    line_is_empty: bool,
    /// The last byte seen was a CR that ended a line, so that an LF right behind it is part of the same line end.
    last_was_cr: bool,
    /// The unfinished block begins with the LF of the CR LF that ended the block before.
    leading_lf: bool,
    /// No block was handed out yet: a byte order mark may stand in front.
    at_stream_start: bool,
    /// Lines of the unfinished block that have ended.
    lines: usize,
}

/// One block of the stream.
pub struct Block<'a> {
    /// Offset in the fed chunk just after the block; 0 from [`Splitter::finish`].
    pub end: usize,
    /// The block with its line ends; none when it was larger than the cap and skipped.
    pub bytes: Option<&'a [u8]>,
    /// Whether the first byte is an LF that belongs to the block before: that one was complete at a lone CR at the end
    /// of a chunk, and the next chunk showed that it was half of a CR LF. Who takes out the block before takes out
    /// this LF too.
    pub leading_lf: bool,
    at_stream_start: bool,
    /// Lines, the blank one apart.
    lines: usize,
}

/// Shows no byte of the stream: it is somebody's text.
impl fmt::Debug for Splitter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Splitter")
            .field("cap", &self.cap)
            .field("pending", &self.buffer.len())
            .field("skipping", &self.skipping)
            .finish_non_exhaustive()
    }
}

impl Default for Splitter {
    fn default() -> Self {
        Self::new(LARGEST_EVENT)
    }
}

impl Splitter {
    /// A splitter that holds at most `cap` bytes of one block, see [`LARGEST_EVENT`].
    pub fn new(cap: usize) -> Self {
        Self {
            cap,
            buffer: Vec::new(),
            skipping: false,
            line_is_empty: true,
            last_was_cr: false,
            leading_lf: false,
            at_stream_start: true,
            lines: 0,
        }
    }

    /// Feeds one chunk; calls back for each block that ends in it.
    ///
    /// A block is complete at its second line end, even if that is a lone CR at the end of the chunk, so that nothing
    /// waits for a byte that may never come; see [`Block::leading_lf`] for the LF that then follows.
    pub fn feed(&mut self, chunk: &[u8], mut on_block: impl FnMut(Block<'_>)) {
        if chunk.is_empty() {
            return;
        }
        let mut block_start = 0;
        let mut line_start = 0;
        if std::mem::take(&mut self.last_was_cr) && chunk[0] == b'\n' {
            line_start = 1;
            self.leading_lf |= self.buffer.is_empty() && !self.skipping;
        }
        let mut scan_from = line_start;
        while let Some(distance) = memchr2(b'\n', b'\r', &chunk[scan_from..]) {
            let line_end = scan_from + distance;
            let ends_block = line_end == line_start && self.line_is_empty;
            let mut next = line_end + 1;
            if chunk[line_end] == b'\r' {
                match chunk.get(next) {
                    Some(b'\n') => next += 1,
                    Some(_) => {}
                    None => self.last_was_cr = true,
                }
            }
            self.line_is_empty = true;
            line_start = next;
            scan_from = next;
            if ends_block {
                self.hand_out(
                    &chunk[block_start..next],
                    line_end - block_start,
                    next,
                    &mut on_block,
                );
                block_start = next;
            } else {
                self.lines += 1;
            }
        }
        if line_start < chunk.len() {
            self.line_is_empty = false;
        }
        self.keep(&chunk[block_start..]);
    }

    /// The end of the stream: hands out an unfinished last block, if any. The specification drops it; an observer
    /// reads it all the same, because an engine may leave out the last blank line.
    pub fn finish(&mut self, mut on_block: impl FnMut(Block<'_>)) {
        self.lines += usize::from(!self.line_is_empty);
        if self.skipping || !self.buffer.is_empty() {
            self.hand_out(&[], 0, 0, &mut on_block);
        }
        self.line_is_empty = true;
        self.last_was_cr = false;
    }

    /// Most bytes of one block that are held.
    pub fn cap(&self) -> usize {
        self.cap
    }

    /// Bytes of the unfinished block so far; its start is `pending().len()` before the end of what was fed. Empty
    /// while a block over the cap is skipped.
    pub fn pending(&self) -> &[u8] {
        &self.buffer
    }

    /// Whether the unfinished block begins with an LF of the block before, see [`Block::leading_lf`].
    pub fn pending_has_leading_lf(&self) -> bool {
        self.leading_lf
    }

    /// Whether the unfinished block is over the cap and passes unread.
    pub fn is_skipping(&self) -> bool {
        self.skipping
    }

    /// Whether a block of this length is over the cap. The length is counted without the blank line's own end and
    /// without a leading LF, so that the answer doesn't depend on the chunking.
    fn is_too_large(&self, length: usize) -> bool {
        length.saturating_sub(usize::from(self.leading_lf)) > self.cap
    }

    fn keep(&mut self, rest: &[u8]) {
        if self.skipping || rest.is_empty() {
            return;
        }
        if self.is_too_large(self.buffer.len() + rest.len()) {
            self.skipping = true;
            self.buffer = Vec::new();
        } else {
            self.buffer.extend_from_slice(rest);
        }
    }

    /// Hands out what is buffered and `tail` as one block; `length` is the tail's without the blank line's end.
    fn hand_out(
        &mut self,
        tail: &[u8],
        length: usize,
        end: usize,
        on_block: &mut impl FnMut(Block<'_>),
    ) {
        let dropped = self.skipping || self.is_too_large(self.buffer.len() + length);
        if !dropped && !self.buffer.is_empty() {
            self.buffer.extend_from_slice(tail);
        }
        let bytes = if dropped {
            None
        } else if self.buffer.is_empty() {
            Some(tail)
        } else {
            Some(&self.buffer[..])
        };
        on_block(Block {
            end,
            bytes,
            leading_lf: self.leading_lf,
            at_stream_start: self.at_stream_start,
            lines: self.lines,
        });
        self.lines = 0;
        self.buffer.clear();
        self.buffer.shrink_to(KEPT_CAPACITY);
        self.skipping = false;
        self.leading_lf = false;
        self.at_stream_start = false;
    }
}

impl<'a> Block<'a> {
    /// The data lines joined with LF, without their line ends. None when there is no data line (a comment, an empty
    /// block) or when the block was skipped.
    pub fn data(&self) -> Option<Cow<'a, [u8]>> {
        // Nearly every block is one line of data.
        if self.lines == 1
            && let Some(bytes) = self.bytes
            && let Some(value) = bytes.strip_prefix(b"data:")
        {
            let end = value
                .iter()
                .rposition(|byte| !matches!(byte, b'\n' | b'\r'))
                .map_or(0, |last| last + 1);
            let value = &value[..end];
            return Some(Cow::Borrowed(value.strip_prefix(b" ").unwrap_or(value)));
        }
        let mut values = self
            .fields()
            .filter(|(name, _)| *name == b"data")
            .map(|(_, value)| value);
        let first = values.next()?;
        Some(match values.next() {
            None => Cow::Borrowed(first),
            Some(second) => {
                let mut joined = first.to_vec();
                for value in std::iter::once(second).chain(values) {
                    joined.push(b'\n');
                    joined.extend_from_slice(value);
                }
                Cow::Owned(joined)
            }
        })
    }

    /// Value of the last `event` line.
    pub fn event_name(&self) -> Option<&'a [u8]> {
        self.fields()
            .filter(|(name, _)| *name == b"event")
            .last()
            .map(|(_, value)| value)
    }

    /// Name and value of each line; comments have an empty name.
    fn fields(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let mut rest = self.bytes.unwrap_or_default();
        if self.leading_lf {
            rest = rest.get(1..).unwrap_or_default();
        }
        if self.at_stream_start {
            rest = rest.strip_prefix(BYTE_ORDER_MARK).unwrap_or(rest);
        }
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let end = memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
            let line = &rest[..end];
            // A CR LF is seen as an end and an empty line; an empty line is no field, so that does no harm.
            rest = rest.get(end + 1..).unwrap_or_default();
            Some(match memchr(b':', line) {
                Some(colon) => {
                    let value = &line[colon + 1..];
                    (&line[..colon], value.strip_prefix(b" ").unwrap_or(value))
                }
                None => (line, &[][..]),
            })
        })
    }
}

#[cfg(test)]
mod tests;
