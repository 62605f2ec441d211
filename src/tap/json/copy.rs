//! The pruned copy that a reducer writes, bounded.

use std::borrow::Cow;

use super::Unreadable;
use super::parse::parse;
use super::tree::Node;

/// Largest pruned copy, in bytes.
pub const LARGEST_COPY: usize = 1 << 20;

/// Bytes for which a copy has room from the start: those of most replies.
const USUAL_COPY: usize = 1 << 10;

#[derive(Debug)]
pub(super) struct PrunedCopy {
    bytes: Vec<u8>,
    is_full: bool,
    /// Where the last number or literal begins.
    atom: usize,
}

impl Default for PrunedCopy {
    fn default() -> Self {
        Self {
            bytes: Vec::with_capacity(USUAL_COPY),
            is_full: false,
            atom: 0,
        }
    }
}

impl PrunedCopy {
    /// Adds bytes; nothing more once the bound is reached.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if self.bytes.len() + bytes.len() > LARGEST_COPY {
            self.is_full = true;
            self.bytes = Vec::new();
        }
        if !self.is_full {
            self.bytes.extend_from_slice(bytes);
        }
    }

    /// A number or a literal comes.
    pub(super) fn begin_atom(&mut self) {
        self.atom = self.bytes.len();
    }

    /// It is complete. Python writes numbers that are none by names that JSON does not have: they become null.
    pub(super) fn end_atom(&mut self) {
        if let Some(b"NaN" | b"Infinity" | b"-Infinity") = self.bytes.get(self.atom..) {
            self.bytes.truncate(self.atom);
            self.push(b"null");
        }
    }

    /// Whether the bound was reached: what is left is worth nothing.
    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Parses the copy and shows its tree.
    pub(super) fn read<R>(&self, read: impl FnOnce(Node<'_>) -> R) -> Result<R, Unreadable> {
        if self.bytes.is_empty() {
            return Ok(read(Node::Null));
        }
        // A foreign or cut character in a name must not cost the numbers.
        let text = match std::str::from_utf8(&self.bytes) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(&self.bytes),
        };
        parse(&text).map(read)
    }
}
