//! Skips a container that nobody needs: log probabilities, token ids, megabytes of them.
//!
//! Quotes, escapes and brackets stand so close there that a search for the next one, again and again, costs more than to
//! mark those of a whole block at once.

use super::{Reducer, State};

/// Bytes of a block. The compiler makes vector instructions of what is done to all of them.
const BLOCK: usize = 32;

impl Reducer {
    /// Takes what it can from `at` on, and gives back where it stopped.
    pub(super) fn skip(
        &mut self,
        bytes: &[u8],
        at: usize,
        open: u8,
        mut depth: u64,
        mut in_string: bool,
    ) -> usize {
        // `]` and `}` stand two behind `[` and `{`.
        let close = open + 2;
        // The byte behind a backslash means nothing.
        let mut meant_from = at + usize::from(std::mem::take(&mut self.escaped));
        for start in (at..bytes.len()).step_by(BLOCK) {
            let marked = marks(&bytes[start..], [b'"', b'\\', open, close]);
            for (place, mut word) in (start..).step_by(size_of::<u64>()).zip(marked) {
                while word != 0 {
                    let found = place + word.trailing_zeros() as usize / 8;
                    word &= word - 1;
                    if found < meant_from {
                        continue;
                    }
                    match bytes[found] {
                        b'"' => in_string = !in_string,
                        b'\\' if in_string => meant_from = found + 2,
                        _ if in_string => {}
                        byte if byte == open => depth += 1,
                        byte if byte == close => {
                            depth -= 1;
                            if depth == 0 {
                                self.end_value();
                                return found + 1;
                            }
                        }
                        _ => {}
                    }
                }
            }
        }
        self.escaped = meant_from > bytes.len();
        self.state = State::Skip {
            open,
            depth,
            in_string,
        };
        bytes.len()
    }
}

/// A one for each of the first bytes that is among `wanted`, eight to a word, the first lowest.
fn marks(bytes: &[u8], wanted: [u8; 4]) -> [u64; BLOCK / 8] {
    let mut block = [0; BLOCK];
    match bytes.first_chunk() {
        Some(whole) => block = *whole,
        None => block[..bytes.len()].copy_from_slice(bytes),
    }
    let [first, second, third, fourth] = wanted;
    let mut marks = [0; BLOCK];
    for (mark, byte) in marks.iter_mut().zip(block) {
        let is_wanted = (byte == first) | (byte == second) | (byte == third) | (byte == fourth);
        *mark = u8::from(is_wanted);
    }
    let (words, _) = marks.as_chunks();
    std::array::from_fn(|word| u64::from_le_bytes(words[word]))
}
