//! The tag: a label that the client sets on a request, for grouping. It comes in a header, or in a member of the body,
//! since gateways drop headers that they don't know.

use http::header::HeaderName;

use super::members::Member;
use super::members::members;
use crate::observation::cut_name;

/// spectap's own header; the engine never sees it.
pub const OWN_HEADER: HeaderName = HeaderName::from_static("x-spectap-tag");

/// Fields that hold secrets: their values must not become labels.
const SECRET: [&str; 5] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "api-key",
    "x-api-key",
];

/// Where the tag comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagSource {
    /// The request header that is read. Any other than spectap's own is left in place.
    pub header: HeaderName,
    /// The body's member that is read where the header is missing.
    pub body: Option<TagMember>,
}

impl Default for TagSource {
    fn default() -> Self {
        Self {
            header: OWN_HEADER,
            body: None,
        }
    }
}

/// A member of the request's body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TagMember {
    /// Root `user`.
    User,
    /// A member of root `metadata`.
    Metadata(String),
}

impl TagMember {
    /// Reads `user` or `metadata.NAME`.
    ///
    /// # Errors
    ///
    /// A sentence that says what would be right.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.split_once('.') {
            None if text == "user" => Ok(TagMember::User),
            Some(("metadata", name)) if !name.is_empty() => {
                Ok(TagMember::Metadata(name.to_owned()))
            }
            _ => Err("write user or metadata.NAME".to_owned()),
        }
    }

    /// The tag in a request's body.
    pub(super) fn read(&self, root: &[Member<'_>]) -> Option<String> {
        let value = |members: &[Member<'_>], name: &str| {
            let member = members.iter().rev().find(|member| member.name == name)?;
            Some(member.value.to_owned())
        };
        let written = match self {
            TagMember::User => value(root, "user")?,
            TagMember::Metadata(name) => {
                value(&members(value(root, "metadata")?.as_bytes())?, name)?
            }
        };
        shown(&serde_json::from_str::<String>(&written).ok()?)
    }
}

/// Checks the name of a header to read tags from.
///
/// # Errors
///
/// A sentence that says what would be right.
pub fn parse_header(text: &str) -> Result<HeaderName, String> {
    let name: HeaderName = text
        .parse()
        .map_err(|_| "is no header name; write one like x-tenant".to_owned())?;
    if SECRET.contains(&name.as_str()) {
        return Err(
            "holds secrets, which must not become labels; use a header of its own".to_owned(),
        );
    }
    Ok(name)
}

/// The tag that a text shows; none if it is blank.
pub(super) fn shown(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| cut_name(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_refused_as_tags() {
        for name in SECRET {
            assert!(parse_header(name).is_err(), "{name}");
        }
        assert!(parse_header("Authorization").is_err());
        assert!(parse_header("no spaces").is_err());
        assert_eq!(parse_header("X-Tenant").unwrap(), "x-tenant");
    }

    #[test]
    fn a_tag_is_read_from_the_body_where_told() {
        let body = br#"{"user":"u","metadata":{"team":"t","n":1},"messages":[{"user":"no"}]}"#;
        let root = members(body).unwrap();
        let read = |text: &str| TagMember::parse(text).unwrap().read(&root);
        assert_eq!(read("user").as_deref(), Some("u"));
        assert_eq!(read("metadata.team").as_deref(), Some("t"));
        assert_eq!(read("metadata.n"), None, "only text is a tag");
        assert_eq!(read("metadata.other"), None);
        assert!(TagMember::parse("messages").is_err());
        assert!(TagMember::parse("metadata.").is_err());
    }
}
