//! What an event of a stripped stream is, and how a moved member goes back into a finish event.

use bytes::Bytes;
use memchr::memmem;
use serde::Deserialize;

use super::details::{self, Extension};
use super::injection::Added;
use super::members::{Member, members};
use super::needle::Needle;
use super::sse::Block;

/// The kind of one block.
#[derive(Debug)]
pub(super) enum Kind {
    /// A comment, or an empty block.
    NoData,
    /// The first event of the stream, with a usage object although it carries choices: usage comes unasked.
    FirstWithUsage,
    /// An event with a finish reason.
    Finish(Finish),
    /// An event that only the injection caused.
    Caused { moved: Moved, comments: Bytes },
    /// An event of the client's own that the injection added something to: the block without it.
    Mended(Bytes),
    /// The same, but it can't be taken out.
    Unmendable,
    /// Anything else.
    Other,
}

/// Members that moved onto the caused event, as written: name, colon and value.
#[derive(Debug, Default)]
pub(super) struct Moved {
    /// The value of `system_fingerprint`, as written.
    pub(super) fingerprint: Option<String>,
    /// The value of `timings`, as written.
    timings: Option<String>,
}

/// A finish event: where its root object ends, and what it lacks.
#[derive(Debug)]
pub(super) struct Finish {
    /// Bytes from the root's closing brace to the end of the block.
    brace_from_end: usize,
    lacks_fingerprint: bool,
    lacks_timings: bool,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    finish_reason: serde_json::Value,
}

/// Tells what a block is. `first`: no data event came before it. `added`: what the injection can have caused. `needle`: the
/// stream's own.
pub(super) fn classify(block: &Block<'_>, first: bool, added: Added, needle: &mut Needle) -> Kind {
    let Some(data) = block.data() else {
        // A block that was too large to be looked at is some event.
        return if block.bytes.is_some() {
            Kind::NoData
        } else {
            Kind::Other
        };
    };
    if !needle.must_parse(&data) {
        return Kind::Other;
    }
    let Some(root) = members(&data) else {
        return Kind::Other;
    };
    let bytes = block.bytes.unwrap_or_default();
    let last = |name: &str| {
        root.iter()
            .rev()
            .find(|member| member.name == name)
            .map(|member| member.value)
    };
    let has_usage = last("usage").is_some_and(|usage| usage.starts_with('{'));
    let choices = last("choices").filter(|choices| *choices != "null" && !is_empty_array(choices));
    let extension = match details::extension(&root) {
        found if added.details => found,
        _ => Extension::Without,
    };
    let Some(choices) = choices else {
        let usage_is_caused = has_usage && added.strip_usage;
        let is_caused = match extension {
            Extension::Without => usage_is_caused && !is_native(&root),
            Extension::Only => usage_is_caused || !has_usage,
            Extension::Shared => false,
        };
        return match extension {
            _ if is_caused => Kind::Caused {
                moved: Moved {
                    fingerprint: written(last("system_fingerprint")),
                    timings: written(last("timings")),
                },
                comments: comments(bytes),
            },
            Extension::Without => Kind::Other,
            Extension::Only | Extension::Shared => mended(bytes, &data),
        };
    };
    if extension != Extension::Without {
        mended(bytes, &data)
    } else if first && has_usage && added.strip_usage {
        Kind::FirstWithUsage
    } else if let (true, Some(brace_from_end)) = (finishes(choices), closing_brace_from_end(bytes))
    {
        Kind::Finish(Finish {
            brace_from_end,
            lacks_fingerprint: last("system_fingerprint").is_none(),
            lacks_timings: last("timings").is_none(),
        })
    } else {
        Kind::Other
    }
}

fn written(value: Option<&str>) -> Option<String> {
    value.filter(|value| *value != "null").map(str::to_owned)
}

/// The block without SGLang's numbers. `data`: its data, which must be one line of it.
fn mended(block: &[u8], data: &[u8]) -> Kind {
    let at = data.as_ptr().addr().wrapping_sub(block.as_ptr().addr());
    let is_part = at
        .checked_add(data.len())
        .is_some_and(|end| end <= block.len());
    match details::cut(data).filter(|_| is_part) {
        Some(cut) => Kind::Mended(
            [&block[..at + cut.start], &block[at + cut.end..]]
                .concat()
                .into(),
        ),
        None => Kind::Unmendable,
    }
}

/// Whether the event holds data that the engine sends without being asked for usage.
fn is_native(root: &[Member<'_>]) -> bool {
    root.iter()
        .any(|member| matches!(&*member.name, "error" | "sglext") && member.value != "null")
}

fn finishes(choices: &str) -> bool {
    let choices: Vec<Choice> = serde_json::from_str(choices).unwrap_or_default();
    choices
        .iter()
        .any(|choice| choice.finish_reason.is_string())
}

fn is_empty_array(value: &str) -> bool {
    value
        .strip_prefix('[')
        .is_some_and(|rest| rest.trim_ascii_start() == "]")
}

/// Whether the beginning of a block may still become the caused event: its choices are empty or not yet seen.
pub(super) fn may_be_caused(beginning: &[u8]) -> bool {
    let Some(found) = memmem::find(beginning, b"\"choices\"") else {
        return true;
    };
    let after = beginning[found + b"\"choices\"".len()..].trim_ascii_start();
    let Some(value) = after.strip_prefix(b":") else {
        return true;
    };
    let value = value.trim_ascii_start();
    match value.strip_prefix(b"[") {
        Some(inside) => matches!(inside.trim_ascii_start().first(), None | Some(b']')),
        None => true,
    }
}

/// The comment lines of a block, with a blank line behind them if there are any: they are not the injection's.
fn comments(block: &[u8]) -> Bytes {
    if !block.starts_with(b":")
        && memmem::find(block, b"\n:").is_none()
        && memmem::find(block, b"\r:").is_none()
    {
        return Bytes::new();
    }
    let mut kept = Vec::new();
    for line in lines(block) {
        if line.starts_with(b":") {
            kept.extend_from_slice(line);
        }
    }
    if !kept.is_empty() {
        let end = lines(block).last().unwrap_or(b"\n");
        kept.extend_from_slice(if end.trim_ascii().is_empty() {
            end
        } else {
            b"\n"
        });
    }
    kept.into()
}

/// The lines of a block with their line ends.
fn lines(block: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = block;
    std::iter::from_fn(move || {
        let end = match memchr::memchr2(b'\n', b'\r', rest) {
            Some(at) if rest[at..].starts_with(b"\r\n") => at + 2,
            Some(at) => at + 1,
            None if rest.is_empty() => return None,
            None => rest.len(),
        };
        let (line, after) = rest.split_at(end);
        rest = after;
        Some(line)
    })
}

/// Distance of the last closing brace of the last data line from the block's end.
fn closing_brace_from_end(block: &[u8]) -> Option<usize> {
    let mut offset = 0;
    let mut found = None;
    for line in lines(block) {
        if line.starts_with(b"data:")
            || line.starts_with(b"\xEF\xBB\xBFdata:")
            || line.starts_with(b"\ndata:")
        {
            found = line
                .iter()
                .rposition(|&byte| byte == b'}')
                .map(|at| offset + at)
                .or(found);
        }
        offset += line.len();
    }
    found.map(|at| block.len() - at)
}

impl Finish {
    /// Whether anything that may have moved is missing here.
    pub(super) fn may_get_back(&self) -> bool {
        self.lacks_fingerprint || self.lacks_timings
    }

    /// Whether the closing brace is among the last `length` bytes of the block.
    pub(super) fn ends_within(&self, length: usize) -> bool {
        self.brace_from_end <= length
    }

    /// More bytes belong to the block's end than were seen when it was classified.
    pub(super) fn grow_end(&mut self, bytes: usize) {
        self.brace_from_end += bytes;
    }

    /// The event with what moved put back as its last members.
    pub(super) fn restore(&self, event: Vec<Bytes>, moved: &Moved) -> Vec<Bytes> {
        let mut text = String::new();
        if let Some(value) = moved
            .fingerprint
            .as_ref()
            .filter(|_| self.lacks_fingerprint)
        {
            text.push_str(",\"system_fingerprint\":");
            text.push_str(value);
        }
        if let Some(value) = moved.timings.as_ref().filter(|_| self.lacks_timings) {
            text.push_str(",\"timings\":");
            text.push_str(value);
        }
        self.insert(event, text)
    }

    /// The event with a fingerprint that is known beforehand.
    pub(super) fn restore_fingerprint(&self, event: Vec<Bytes>, value: &str) -> Vec<Bytes> {
        let written = serde_json::Value::from(value).to_string();
        self.restore(
            event,
            &Moved {
                fingerprint: Some(written),
                timings: None,
            },
        )
    }

    /// Puts `text` before the root's closing brace. `event` are the last bytes of the block, the brace among them:
    /// see [`Finish::ends_within`].
    fn insert(&self, mut event: Vec<Bytes>, text: String) -> Vec<Bytes> {
        if text.is_empty() {
            return event;
        }
        let mut from_end = self.brace_from_end;
        let mut tail = Vec::new();
        while let Some(mut piece) = event.pop() {
            if from_end > piece.len() {
                from_end -= piece.len();
                tail.push(piece);
                continue;
            }
            tail.push(piece.split_off(piece.len() - from_end));
            event.push(piece);
            event.push(text.into());
            break;
        }
        event.extend(tail.into_iter().rev());
        event
    }
}
