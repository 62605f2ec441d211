//! Blots out what can't be equal in two responses: date, ids, `created`, and times where they are told.

use super::wire;

/// Blots out, in place and length, the date, ids and `created`.
pub(crate) fn ids(response: &[u8]) -> String {
    let mut text = String::from_utf8_lossy(response).into_owned();
    blot(&mut text, "\r\ndate: ", |c| c != '\r');
    blot(&mut text, "\r\nx-request-id: ", |c| c.is_ascii_hexdigit());
    blot(&mut text, "\"created\":", |c| c.is_ascii_digit());
    for prefix in ["chatcmpl-", "cmpl-", "generate-tokens-", "modelperm-"] {
        // A name that the client gave, such as abc-123, is no run of sixteen digits and stays.
        blot(&mut text, &format!("\"{prefix}"), |c| c.is_ascii_hexdigit());
    }
    text
}

/// As [`ids`], and also times; since those differ in length, the framing is undone.
pub(crate) fn ids_and_times(response: &[u8]) -> String {
    let end = response
        .windows(4)
        .position(|part| part == b"\r\n\r\n")
        .unwrap()
        + 4;
    let mut text = ids(&[&response[..end], wire::body_of(response).as_bytes()].concat());
    let times = [
        "time_to_first_token_ms",
        "generation_time_ms",
        "queue_time_ms",
        "mean_itl_ms",
        "tokens_per_second",
    ];
    if times.iter().any(|name| {
        text.contains(&format!("\"{name}\":")) && !text.contains(&format!("\"{name}\":null"))
    }) {
        erase(&mut text, "\r\ncontent-length: ", |c| c.is_ascii_digit());
    }
    for name in times {
        erase(&mut text, &format!("\"{name}\":"), |c| {
            c.is_ascii_digit() || ".e-+".contains(c)
        });
    }
    text
}

/// Replaces the run of matching characters after each `before` by as many `#`; at least ten, or it stays.
fn blot(text: &mut String, before: &str, matching: fn(char) -> bool) {
    replace(text, before, matching, |run| {
        if run.len() < 10 {
            run.to_owned()
        } else {
            "#".repeat(run.len())
        }
    });
}

/// Replaces the run of matching characters after each `before` by a single `#`.
pub(crate) fn erase(text: &mut String, before: &str, matching: fn(char) -> bool) {
    replace(text, before, matching, |run| {
        if run.is_empty() {
            String::new()
        } else {
            "#".to_owned()
        }
    });
}

fn replace(
    text: &mut String,
    before: &str,
    matching: fn(char) -> bool,
    by: impl Fn(&str) -> String,
) {
    let mut from = 0;
    while let Some(found) = text[from..].find(before) {
        let start = from + found + before.len();
        let run: String = text[start..].chars().take_while(|c| matching(*c)).collect();
        let new = by(&run);
        text.replace_range(start..start + run.len(), &new);
        from = start + new.len();
    }
}
