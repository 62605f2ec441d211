//! SGLang's per-request numbers come only when the request asks by `return_spec_tokens_details`: how it is asked for a
//! client that did not, and how what it caused is cut out again.
//!
//! They arrive as `sglext.spec_tokens_details`, streamed on an event of its own; other members of `sglext` may be there
//! because the client asked for them.

use std::ops::Range;

use super::inject::{Edit, closing_brace};
use super::members::{Member, members, place};
use super::skip::Skip;

const REQUEST_MEMBER: &str = "return_spec_tokens_details";
const ONLY_MEMBER: &str = r#""return_spec_tokens_details":true"#;
const NEXT_MEMBER: &str = r#","return_spec_tokens_details":true"#;
const EXTENSION: &str = "sglext";
const DETAILS: &str = "spec_tokens_details";

/// What asking for the numbers takes: an edit, nothing where the client asks itself, or a reason to leave it.
pub(super) fn plan(body: &[u8], root: &[Member<'_>]) -> Result<Option<Edit>, Skip> {
    let mut named = root.iter().filter(|member| member.name == REQUEST_MEMBER);
    let found = named.next();
    if named.next().is_some() {
        return Err(Skip::DuplicateMember);
    }
    match found.map(|member| member.value) {
        Some("true") => Ok(None),
        Some(value @ ("false" | "null")) => Ok(Some(Edit {
            place: place(body, value),
            text: "true",
        })),
        Some(_) => Err(Skip::OptionsShape),
        None => {
            let end = closing_brace(body, 0..body.len()).ok_or(Skip::NotJson)?;
            let text = if root.is_empty() {
                ONLY_MEMBER
            } else {
                NEXT_MEMBER
            };
            Ok(Some(Edit {
                place: end..end,
                text,
            }))
        }
    }
}

/// What an object holds of the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extension {
    /// No numbers.
    Without,
    /// Nothing in `sglext` but the numbers.
    Only,
    /// The numbers beside members that the client asked for.
    Shared,
}

/// Looks for the numbers among the members of a root object.
pub(super) fn extension(root: &[Member<'_>]) -> Extension {
    let Some(extension) = root.iter().rev().find(|member| member.name == EXTENSION) else {
        return Extension::Without;
    };
    let inner = members(extension.value.as_bytes()).unwrap_or_default();
    let has = |wanted: bool| {
        inner
            .iter()
            .any(|member| (member.name == DETAILS) == wanted && member.value != "null")
    };
    match (has(true), has(false)) {
        (false, _) => Extension::Without,
        (true, false) => Extension::Only,
        (true, true) => Extension::Shared,
    }
}

/// The bytes to cut from `json` so that it is what it would have been without the numbers; none if they are not there.
pub(super) fn cut(json: &[u8]) -> Option<Range<usize>> {
    let root = members(json)?;
    let outer = root.iter().rposition(|member| member.name == EXTENSION)?;
    match extension(&root) {
        Extension::Without => None,
        Extension::Only => Some(with_comma(json, 0..json.len(), &root, outer)),
        Extension::Shared => {
            let within = place(json, root[outer].value);
            let inner = members(root[outer].value.as_bytes())?;
            let at = inner.iter().rposition(|member| member.name == DETAILS)?;
            Some(with_comma(json, within, &inner, at))
        }
    }
}

/// The place of a member with the comma that goes with it. `within`: the object that holds it.
fn with_comma(
    json: &[u8],
    within: Range<usize>,
    members: &[Member<'_>],
    at: usize,
) -> Range<usize> {
    let end = place(json, members[at].value).end;
    if let Some(before) = at.checked_sub(1) {
        return place(json, members[before].value).end..end;
    }
    let open = json[within.clone()]
        .iter()
        .position(|&byte| byte == b'{')
        .map_or(within.start, |offset| within.start + offset + 1);
    let comma = json[end..within.end]
        .iter()
        .position(|&byte| byte == b',')
        .map_or(end, |offset| end + offset + 1);
    open..if members.len() > 1 { comma } else { end }
}

#[cfg(test)]
mod tests {
    use super::super::inject::splice;
    use super::*;

    #[test]
    fn an_empty_body_gets_its_only_member() {
        for (body, expected) in [
            ("{}", r#"{"return_spec_tokens_details":true}"#),
            ("{ }", r#"{ "return_spec_tokens_details":true}"#),
            (r#"{"a":1}"#, r#"{"a":1,"return_spec_tokens_details":true}"#),
        ] {
            let root = members(body.as_bytes()).unwrap();
            let edit = plan(body.as_bytes(), &root).unwrap().unwrap();
            assert_eq!(splice(body.as_bytes(), vec![edit]), expected);
        }
    }

    fn without(json: &str) -> Option<String> {
        let range = cut(json.as_bytes())?;
        Some(format!("{}{}", &json[..range.start], &json[range.end..]))
    }

    #[test]
    fn the_extension_goes_whole_when_it_holds_nothing_else() {
        let cases = [
            (
                r#"{"a":1,"sglext":{"spec_tokens_details":{"x":[1,2]}}}"#,
                r#"{"a":1}"#,
            ),
            (
                r#"{"a":1,"sglext":{"spec_tokens_details":{},"other":null} , "b":2}"#,
                r#"{"a":1 , "b":2}"#,
            ),
            (
                r#"{"sglext":{"spec_tokens_details":{}},"b":2}"#,
                r#"{"b":2}"#,
            ),
            (r#"{"sglext":{"spec_tokens_details":{}}}"#, r#"{}"#),
        ];
        for (json, expected) in cases {
            assert_eq!(without(json).as_deref(), Some(expected), "{json}");
        }
    }

    #[test]
    fn what_the_client_asked_for_stays() {
        let cases = [
            (
                r#"{"a":1,"sglext":{"cached":{"n":1},"spec_tokens_details":{"x":1}}}"#,
                r#"{"a":1,"sglext":{"cached":{"n":1}}}"#,
            ),
            (
                r#"{"a":1,"sglext":{"spec_tokens_details":[{"x":1}],"cached":{"n":1}}}"#,
                r#"{"a":1,"sglext":{"cached":{"n":1}}}"#,
            ),
        ];
        for (json, expected) in cases {
            assert_eq!(without(json).as_deref(), Some(expected), "{json}");
        }
    }

    #[test]
    fn nothing_is_cut_where_there_is_nothing() {
        for json in [
            r#"{"a":1}"#,
            r#"{"sglext":null}"#,
            r#"{"sglext":{"cached":1}}"#,
            "[1]",
            "{",
        ] {
            assert_eq!(without(json), None, "{json}");
        }
    }
}
