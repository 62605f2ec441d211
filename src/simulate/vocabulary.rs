//! The words that a simulated model speaks: one word is one token.

use fastrand::Rng;

/// Token ids start here, so that they look like those of a real vocabulary.
const FIRST_ID: u32 = 1_000;

/// The id of the token by which a model ends.
pub(super) const END: u32 = 2;

/// Each with the space that stands before it, two of them with more than one byte per letter.
const WORDS: [&str; 48] = [
    " the",
    " a",
    " step",
    " draft",
    " token",
    " model",
    " target",
    " verifies",
    " keeps",
    " and",
    " then",
    " one",
    " more",
    " of",
    " each",
    " run",
    " in",
    " order",
    " while",
    " batch",
    " grows",
    ".",
    ",",
    " cache",
    " reads",
    " fast",
    " slow",
    " path",
    " answer",
    " question",
    " between",
    " client",
    " server",
    " stream",
    " sends",
    " back",
    " small",
    " large",
    " müde",
    " 世界",
    " with",
    " without",
    " count",
    " share",
    " mean",
    " length",
    " rate",
    "\n",
];

/// A token: its id and its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    /// The id that `/inference/v1/generate` sends.
    pub(super) id: u32,
    /// The text that the OpenAI routes send.
    pub(super) text: &'static str,
}

/// Draws the next token.
pub(super) fn draw(rng: &mut Rng) -> Token {
    let index = rng.usize(0..WORDS.len());
    Token {
        id: FIRST_ID + index as u32,
        text: WORDS[index],
    }
}

/// The text of a token; `None` for an id that [`draw`] never gives.
pub(super) fn text(id: u32) -> Option<&'static str> {
    if id == END {
        return Some("");
    }
    let index = usize::try_from(id.checked_sub(FIRST_ID)?).ok()?;
    WORDS.get(index).copied()
}

/// How many tokens a prompt counts: its words, at least one.
pub(super) fn count(text: &str) -> usize {
    text.split_whitespace().count().max(1)
}
