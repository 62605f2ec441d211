//! Slow and plain readings of what the tap reads fast, to compare with.

use serde_json::Value;
use serde_json::value::RawValue;

use crate::tap::members::members;

/// One block of an event stream, as WHATWG HTML section 9.2.6 reads it.
#[derive(Debug)]
pub(super) struct Event<'a> {
    pub(super) bytes: &'a [u8],
    /// Its length without the blank line.
    pub(super) length: usize,
    pub(super) data: Option<Vec<u8>>,
    pub(super) event_name: Option<Vec<u8>>,
}

/// All blocks of a whole stream; the last one may lack its blank line.
pub(super) fn events(stream: &[u8]) -> Vec<Event<'_>> {
    let mut events = Vec::new();
    let mut start = 0;
    let mut data: Option<Vec<u8>> = None;
    let mut event_name = None;
    let mut at = 0;
    while at < stream.len() {
        let line_start = at;
        while at < stream.len() && !matches!(stream[at], b'\n' | b'\r') {
            at += 1;
        }
        let mut line = &stream[line_start..at];
        at += match &stream[at..] {
            [b'\r', b'\n', ..] => 2,
            [] => 0,
            _ => 1,
        };
        if line.is_empty() {
            events.push(Event {
                bytes: &stream[start..at],
                length: line_start - start,
                data: data.take(),
                event_name: event_name.take(),
            });
            start = at;
            continue;
        }
        if line_start == 0 {
            line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
        }
        let colon = line.iter().position(|byte| *byte == b':');
        let (name, value) = match colon {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => match &mut data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => data = Some(value.to_vec()),
            },
            b"event" => event_name = Some(value.to_vec()),
            _ => {}
        }
    }
    if start < stream.len() {
        events.push(Event {
            bytes: &stream[start..],
            length: stream.len() - start,
            data,
            event_name,
        });
    }
    events
}

/// Deepest text that is compared: the reducer makes null of what is deeper in a kept member.
const DEEPEST: usize = 24;

/// Longest member names of a text that is compared, in bytes with and without escapes by number: in a kept member the
/// reducer leaves out those that are longer than 160 bytes as written.
const LONGEST_NAMES: [usize; 2] = [26, 80];

/// Whether the reducer must keep of a text what a parser finds there. Of two members of one name the last one counts, but the
/// reducer does not see those that are of another kind than they should be.
pub(super) fn is_kept_whole(text: &[u8], parsed: &Value) -> bool {
    let written = std::str::from_utf8(text).unwrap_or_default().trim_ascii();
    let has_numbered = memchr::memmem::find(text, b"\\u").is_some();
    let longest = LONGEST_NAMES[usize::from(!has_numbered)];
    depth(parsed) <= DEEPEST && !has_longer_name(parsed, longest) && !has_duplicates(written)
}

fn has_longer_name(value: &Value, longest: usize) -> bool {
    match value {
        Value::Array(items) => items.iter().any(|item| has_longer_name(item, longest)),
        Value::Object(members) => members
            .iter()
            .any(|(name, inner)| name.len() > longest || has_longer_name(inner, longest)),
        _ => false,
    }
}

/// How deep the containers of a value stand in each other.
fn depth(value: &Value) -> usize {
    let deepest = match value {
        Value::Array(items) => items.iter().map(depth).max(),
        Value::Object(members) => members.values().map(depth).max(),
        _ => return 0,
    };
    1 + deepest.unwrap_or(0)
}

/// Whether an object in this JSON text has two members of one name.
pub(super) fn has_duplicates(text: &str) -> bool {
    if text.starts_with('{') {
        let Some(members) = members(text.as_bytes()) else {
            return true;
        };
        let mut names: Vec<_> = members.iter().map(|member| &member.name).collect();
        names.sort_unstable();
        names.windows(2).any(|pair| pair[0] == pair[1])
            || members.iter().any(|member| has_duplicates(member.value))
    } else if text.starts_with('[') {
        serde_json::from_str::<Vec<&RawValue>>(text).map_or(true, |items| {
            items.iter().any(|item| has_duplicates(item.get()))
        })
    } else {
        false
    }
}
