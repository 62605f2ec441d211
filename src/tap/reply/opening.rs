//! What a body is by its first byte: servers and gateways name their content types wrongly.

/// How a body is framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    Stream,
    Json,
}

/// The framing that the first byte of a body shows, if any. JSON never begins like a line of an event, and a line of an
/// event never like an object or a list.
pub(super) fn framing(first: u8) -> Option<Framing> {
    match first {
        b'{' | b'[' => Some(Framing::Json),
        // data, event, id, retry, or a comment.
        b'd' | b'e' | b'i' | b'r' | b':' => Some(Framing::Stream),
        _ => None,
    }
}

/// Whether a byte may stand in front of a body without telling anything: white space and the byte order mark.
pub(super) fn is_blank(byte: u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, 0xEF | 0xBB | 0xBF)
}
