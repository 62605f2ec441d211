//! Injection by byte splice: the client's JSON stays as it is, byte for byte, but for the one member that makes the
//! engine report. Re-serialising would change number spelling and member order, and with them prefix-cache keys and
//! signatures.

use std::ops::Range;

use bytes::{Bytes, BytesMut};

use super::members::{Member, members, place};
use super::skip::Skip;

/// What a client that did not ask for usage gets to see of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, clap::ValueEnum)]
pub enum ExposeUsage {
    /// Only what it asked for: what the injection caused is taken out again.
    #[default]
    AsRequested,
    /// The usage event stays in.
    Always,
}

/// What the client's own options call for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// The request goes as it came: it asks for usage itself, or its wish is respected.
    Leave,
    /// It is left although the numbers would need the option.
    Skip(Skip),
    /// Replace these places. `strip`: take out again what the option causes.
    Inject { edits: Vec<Edit>, strip: bool },
}

/// One replaced place of the client's body.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Edit {
    pub(super) place: Range<usize>,
    pub(super) text: &'static str,
}

const WHOLE_MEMBER: &str = r#","stream_options":{"include_usage":true}"#;
const WHOLE_VALUE: &str = r#"{"include_usage":true}"#;
const FIRST_OPTION: &str = r#""include_usage":true"#;
const NEXT_OPTION: &str = r#","include_usage":true"#;

/// Plans the splice for a streamed request. `root` are the members of `body`; `is_vllm`: the engine is known as vLLM.
pub(super) fn plan(body: &[u8], root: &[Member<'_>], expose: ExposeUsage, is_vllm: bool) -> Plan {
    let named = |name| root.iter().filter(move |member| member.name == name);
    if named("stream").count() > 1 || named("stream_options").count() > 1 {
        return Plan::Skip(Skip::DuplicateMember);
    }
    let strip = expose == ExposeUsage::AsRequested;
    let Some(options) = named("stream_options").next() else {
        let Some(end) = closing_brace(body, 0..body.len()) else {
            return Plan::Skip(Skip::NotJson);
        };
        return Plan::Inject {
            edits: vec![Edit {
                place: end..end,
                text: WHOLE_MEMBER,
            }],
            strip,
        };
    };
    let value = place(body, options.value);
    if options.value == "null" {
        return Plan::Inject {
            edits: vec![Edit {
                place: value,
                text: WHOLE_VALUE,
            }],
            strip,
        };
    }
    let Some(inner) = members(options.value.as_bytes()) else {
        return Plan::Skip(Skip::OptionsShape);
    };
    plan_options(body, &inner, value, expose, is_vllm)
}

fn plan_options(
    body: &[u8],
    inner: &[Member<'_>],
    value: Range<usize>,
    expose: ExposeUsage,
    is_vllm: bool,
) -> Plan {
    let named = |name| inner.iter().filter(move |member| member.name == name);
    if named("include_usage").count() > 1 || named("continuous_usage_stats").count() > 1 {
        return Plan::Skip(Skip::DuplicateMember);
    }
    let include_usage = named("include_usage").next();
    let continuous = named("continuous_usage_stats").next();
    let strip = expose == ExposeUsage::AsRequested;
    match include_usage.map(|member| member.value) {
        Some("true") => return Plan::Leave,
        Some("false") if !strip => return Plan::Leave,
        Some("false" | "null") | None => {}
        Some(_) => return Plan::Skip(Skip::OptionsShape),
    }
    let mut edits = Vec::new();
    match continuous {
        Some(member) if member.value == "true" => {
            if !strip {
                return Plan::Leave;
            }
            if !is_vllm {
                return Plan::Skip(Skip::ContinuousUsage);
            }
            edits.push(Edit {
                place: place(body, member.value),
                text: "false",
            });
        }
        Some(member) if !matches!(member.value, "false" | "null") => {
            return Plan::Skip(Skip::OptionsShape);
        }
        _ => {}
    }
    match include_usage {
        Some(member) => edits.push(Edit {
            place: place(body, member.value),
            text: "true",
        }),
        None => {
            let Some(end) = closing_brace(body, value) else {
                return Plan::Skip(Skip::OptionsShape);
            };
            let text = if inner.is_empty() {
                FIRST_OPTION
            } else {
                NEXT_OPTION
            };
            edits.push(Edit {
                place: end..end,
                text,
            });
        }
    }
    Plan::Inject { edits, strip }
}

/// Where the closing brace of the object in `within` stands.
pub(super) fn closing_brace(body: &[u8], within: Range<usize>) -> Option<usize> {
    body[within.clone()]
        .iter()
        .rposition(|&byte| byte == b'}')
        .map(|offset| within.start + offset)
}

/// The body with its edits done; they don't overlap, and those of one place keep their order.
pub(super) fn splice(body: &[u8], mut edits: Vec<Edit>) -> Bytes {
    edits.sort_by_key(|edit| edit.place.start);
    let grown: usize = edits.iter().map(|edit| edit.text.len()).sum();
    let mut spliced = BytesMut::with_capacity(body.len() + grown);
    let mut copied = 0;
    for edit in &edits {
        spliced.extend_from_slice(&body[copied..edit.place.start]);
        spliced.extend_from_slice(edit.text.as_bytes());
        copied = edit.place.end;
    }
    spliced.extend_from_slice(&body[copied..]);
    spliced.freeze()
}

#[cfg(test)]
mod tests;
