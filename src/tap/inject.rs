//! Injection by byte splice: the client's JSON stays as it is, byte for byte, but for the one member that makes the
//! engine report. Re-serialising would change number spelling and member order, and with them prefix-cache keys and
//! signatures.

use std::ops::Range;

use bytes::{Bytes, BytesMut};

use super::members::{Member, members, place};

/// What a client that did not ask for usage gets to see of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, clap::ValueEnum)]
pub enum ExposeUsage {
    /// Only what it asked for: what the injection caused is taken out again.
    #[default]
    AsRequested,
    /// The usage event stays in.
    Always,
}

/// Why a streamed request on a route that takes the option is left as it came. The label `reason` of
/// `spectap_injections_skipped_total`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(super) enum Skip {
    /// Injection is off.
    Off,
    /// The content type is not JSON, or the body is no JSON object.
    NotJson,
    /// The body has a content coding.
    Encoding,
    /// The body is larger than what is held, or has trailers.
    TooLarge,
    /// The memory for held bodies is used up.
    Memory,
    /// A digest or signature covers the body.
    Signed,
    /// A member that decides stands there twice.
    DuplicateMember,
    /// `stream_options` or a member of it is of no kind that can be completed.
    OptionsShape,
    /// `continuous_usage_stats` alone, on an engine that is not known as vLLM.
    ContinuousUsage,
    /// Several sequences, and the fingerprint that each must get back is not known yet.
    FingerprintUnknown,
    /// The engine sends usage unasked on this route.
    SentUnasked,
    /// The engine refused the option on this route.
    Refused,
    /// The engine compresses its answers, so that nothing could be taken out again.
    ResponseEncoding,
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
    place: Range<usize>,
    text: &'static str,
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
    edits.sort_by_key(|edit| edit.place.start);
    Plan::Inject { edits, strip }
}

/// Where the closing brace of the object in `within` stands.
fn closing_brace(body: &[u8], within: Range<usize>) -> Option<usize> {
    body[within.clone()]
        .iter()
        .rposition(|&byte| byte == b'}')
        .map(|offset| within.start + offset)
}

/// The body with its edits done; `edits` are in order and don't overlap.
pub(super) fn splice(body: &[u8], edits: &[Edit]) -> Bytes {
    let grown: usize = edits.iter().map(|edit| edit.text.len()).sum();
    let mut spliced = BytesMut::with_capacity(body.len() + grown);
    let mut copied = 0;
    for edit in edits {
        spliced.extend_from_slice(&body[copied..edit.place.start]);
        spliced.extend_from_slice(edit.text.as_bytes());
        copied = edit.place.end;
    }
    spliced.extend_from_slice(&body[copied..]);
    spliced.freeze()
}

#[cfg(test)]
mod tests;
