//! The file of the admin token: `serve` asks for what is in it, `report` sends it.

use std::fs;
use std::path::Path;

/// The token, the only line of the file.
///
/// # Errors
///
/// A sentence that says what is wrong with the file and what would be right.
pub fn read(path: &Path) -> Result<String, String> {
    let wrong = |problem: &str| {
        format!("{problem}; it must be a readable file with the token as its only line")
    };
    let text = fs::read_to_string(path).map_err(|cause| wrong(&cause.to_string()))?;
    let token = text.trim();
    if token.is_empty() || token.contains(char::is_whitespace) {
        return Err(wrong("it holds no single token"));
    }
    Ok(token.to_owned())
}
