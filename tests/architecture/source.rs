//! Just enough reading of Rust source for `tests/architecture.rs`: comments, texts, and the modules that code names.

use std::collections::BTreeSet;

/// The source with its comments blanked out; texts stay.
pub(crate) fn code_only(source: &str) -> String {
    blank(source, false)
}

/// The source with comments and the insides of texts blanked out.
pub(crate) fn code_without_text(source: &str) -> String {
    blank(source, true)
}

fn blank(source: &str, texts_too: bool) -> String {
    let mut code = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let (length, keep) = if rest.starts_with("//") {
            (rest.find('\n').unwrap_or(rest.len()), false)
        } else if rest.starts_with("/*") {
            (block_comment(rest), false)
        } else if let Some(length) = raw_text(rest, &code) {
            (length, !texts_too)
        } else if first == '"' {
            (text(rest), !texts_too)
        } else if let Some(length) = character(rest) {
            (length, !texts_too)
        } else {
            (first.len_utf8(), true)
        };
        if keep {
            code.push_str(&rest[..length]);
        } else {
            code.push(' ');
        }
        rest = &rest[length..];
    }
    code
}

/// Length of a block comment, those inside it included.
fn block_comment(source: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < source.len() {
        let rest = &source.as_bytes()[at..];
        if rest.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    source.len()
}

/// Length of a `r"…"` or `r#"…"#` text, if one begins here; a name that merely ends in `r` is none.
fn raw_text(source: &str, before: &str) -> Option<usize> {
    let after_r = source.strip_prefix('r')?;
    // The `b` and `c` of `br"…"` and `cr"…"` are part of the text's opening, not of a name.
    let mut previous = before.chars().rev();
    match previous.next() {
        Some('b' | 'c') if !previous.next().is_some_and(is_name) => {}
        Some(other) if is_name(other) => return None,
        _ => {}
    }
    let hashes = after_r.len() - after_r.trim_start_matches('#').len();
    let inside = after_r[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let start = source.len() - inside.len();
    Some(
        inside
            .find(&end)
            .map_or(source.len(), |at| start + at + end.len()),
    )
}

/// Length of a `"…"` text.
fn text(source: &str) -> usize {
    let mut escaped = false;
    for (at, character) in source.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    source.len()
}

/// Length of a `'c'` literal, if one begins here; a lifetime is none.
fn character(source: &str) -> Option<usize> {
    let inside = source.strip_prefix('\'')?;
    if let Some(escape) = inside.strip_prefix('\\') {
        let escaped = escape.chars().next()?.len_utf8();
        return escape[escaped..].find('\'').map(|at| 2 + escaped + at + 1);
    }
    let length = inside.chars().next()?.len_utf8();
    inside[length..].starts_with('\'').then_some(length + 2)
}

fn is_name(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// The names that code reaches from the crate's root: `crate::a`, `crate::{a, b::c}`, and `super::…` from a module
/// `depth` levels below the root, where it climbs that far.
pub(crate) fn named_modules(code: &str, depth: usize) -> BTreeSet<String> {
    let pieces = pieces(code);
    let mut named = BTreeSet::new();
    let mut at = 0;
    while at < pieces.len() {
        match pieces[at] {
            "crate" => at = reached(&pieces, at + 1, &mut named),
            "in" if pieces.get(at + 1) == Some(&"crate") => at += 1,
            "super" => {
                let mut climbed = 1;
                while pieces.get(at + 1) == Some(&"::") && pieces.get(at + 2) == Some(&"super") {
                    climbed += 1;
                    at += 2;
                }
                at += 1;
                if climbed >= depth {
                    at = reached(&pieces, at, &mut named);
                }
            }
            _ => at += 1,
        }
    }
    named
}

/// Collects what stands after `crate` or the last `super`; returns where to read on.
fn reached(pieces: &[&str], at: usize, named: &mut BTreeSet<String>) -> usize {
    if pieces.get(at) != Some(&"::") {
        return at;
    }
    let Some(&next) = pieces.get(at + 1) else {
        return at + 1;
    };
    if next != "{" {
        named.insert(next.to_owned());
        return at + 1;
    }
    // In a list only the first name of each entry stands at the root.
    let (mut depth, mut entry_begins, mut at) = (1_usize, true, at + 2);
    while depth > 0 && at < pieces.len() {
        match pieces[at] {
            "{" => depth += 1,
            "}" => depth -= 1,
            "," => entry_begins |= depth == 1,
            name if entry_begins => {
                named.insert(name.to_owned());
                entry_begins = false;
            }
            _ => {}
        }
        at += 1;
    }
    at
}

/// Names, `::`, and single other characters; white space falls away.
fn pieces(code: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if is_name(first) {
            rest.find(|character| !is_name(character))
                .unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        pieces.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    pieces
}

/// All words of a source, lower case: names are taken apart at underscores and at capitals.
pub(crate) fn words(code: &str) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    let mut word = String::new();
    for character in code.chars().chain([' ']) {
        let ends = !character.is_alphanumeric()
            || (character.is_uppercase() && word.chars().last().is_some_and(char::is_lowercase));
        if ends && !word.is_empty() {
            words.insert(std::mem::take(&mut word).to_lowercase());
        }
        if character.is_alphanumeric() {
            word.push(character);
        }
    }
    words
}
