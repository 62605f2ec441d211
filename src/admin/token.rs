//! The token that the admin port asks for. One that comes from a file is read again for each question, so that a
//! rotated secret holds at once and without a restart.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// A token, fixed or in a file.
#[derive(Debug)]
pub struct Token {
    last: Mutex<Last>,
    file: Option<File>,
}

#[derive(Debug)]
struct File {
    path: PathBuf,
    /// Reads it, or says what is wrong with it.
    read: fn(&Path) -> Result<String, String>,
}

struct Last {
    text: String,
    /// The file could not be read the last time, and that was told.
    is_told: bool,
}

impl std::fmt::Debug for Last {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("(a secret)")
    }
}

impl From<String> for Token {
    /// A token that never changes.
    fn from(text: String) -> Self {
        Self {
            last: Mutex::new(Last {
                text,
                is_told: false,
            }),
            file: None,
        }
    }
}

impl Token {
    /// The token of a file that was read once with success. While the file can't be read, as in the middle of a
    /// rotation, the token last read holds; that is logged once.
    pub fn in_file(path: PathBuf, read: fn(&Path) -> Result<String, String>, text: String) -> Self {
        Self {
            file: Some(File { path, read }),
            ..Self::from(text)
        }
    }

    /// Whether this is the token, in a time that tells nothing about where the two differ. An empty token is nobody's.
    pub(super) fn is(&self, given: &[u8]) -> bool {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(File { path, read }) = &self.file {
            match read(path) {
                Ok(text) => {
                    *last = Last {
                        text,
                        is_told: false,
                    }
                }
                Err(problem) => {
                    if !std::mem::replace(&mut last.is_told, true) {
                        tracing::warn!(
                            "{} (--admin-token-file): {problem}; the token read before still holds",
                            path.display()
                        );
                    }
                }
            }
        }
        same(last.text.as_bytes(), given)
    }
}

/// Compares without an early end.
fn same(token: &[u8], given: &[u8]) -> bool {
    if token.is_empty() || token.len() != given.len() {
        return false;
    }
    let difference = token
        .iter()
        .zip(given)
        .fold(0, |difference, (ours, theirs)| difference | (ours ^ theirs));
    std::hint::black_box(difference) == 0
}

#[cfg(test)]
mod tests {
    use super::same;

    #[test]
    fn only_the_whole_token_is_the_token_and_an_empty_one_is_none() {
        assert!(same(b"s3cret", b"s3cret"));
        for wrong in ["s3cre", "s3cret2", "S3cret", "", "t3cret"] {
            assert!(!same(b"s3cret", wrong.as_bytes()), "{wrong}");
        }
        assert!(!same(b"", b""));
    }
}
