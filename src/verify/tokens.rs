//! A body as a row of tokens: JSON's strings and numbers, and all between them. What the engine does not repeat is a
//! token; everything else can be compared byte by byte, white space included.

/// Members whose values differ from answer to answer by nature.
const BY_NATURE: [&[u8]; 5] = [
    b"id",
    b"request_id",
    b"created",
    b"created_at",
    b"arrival_time",
];

/// Ends of the names of such members: times and rates.
const TIMES: [&[u8]; 5] = [b"_ms", b"_time", b"_latency", b"_per_second", b"_seconds"];

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Number,
    /// Punctuation, white space, a word.
    Other,
}

/// One token.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) kind: Kind,
    /// It is the value of a member that differs by nature.
    pub(super) differs: bool,
    /// Where it begins.
    pub(super) at: usize,
}

impl Token<'_> {
    /// Whether the two may stand for each other where values differ.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.bytes == other.bytes || self.kind == other.kind && self.kind != Kind::Other
    }
}

/// Takes a body apart. Every byte is in exactly one token.
pub(super) fn tokens(body: &[u8]) -> Vec<Token<'_>> {
    let mut tokens: Vec<Token<'_>> = Vec::new();
    // The last text, and whether a colon came behind it.
    let mut name: (&[u8], bool) = (b"", false);
    let mut at = 0;
    while at < body.len() {
        let (length, kind) = measure(&body[at..]);
        let bytes = &body[at..at + length];
        let is_value = name.1 && kind != Kind::Other;
        tokens.push(Token {
            bytes,
            kind,
            differs: is_value && is_by_nature(name.0),
            at,
        });
        match bytes {
            b":" => name.1 = !name.0.is_empty(),
            _ if bytes.iter().all(u8::is_ascii_whitespace) => {}
            _ if kind == Kind::Text && !is_value => name = (&bytes[1..length.max(2) - 1], false),
            _ => name = (b"", false),
        }
        at += length;
    }
    tokens
}

fn is_by_nature(name: &[u8]) -> bool {
    BY_NATURE.contains(&name) || TIMES.iter().any(|end| name.ends_with(end))
}

fn measure(rest: &[u8]) -> (usize, Kind) {
    let run = |belongs: fn(&u8) -> bool| rest.iter().take_while(|byte| belongs(byte)).count();
    match rest[0] {
        b'"' => (text(rest), Kind::Text),
        b'-' | b'0'..=b'9' => (
            run(|byte| byte.is_ascii_digit() || b"+-.eE".contains(byte)),
            Kind::Number,
        ),
        byte if byte.is_ascii_alphabetic() => (
            run(|byte| byte.is_ascii_alphanumeric() || *byte == b'_'),
            Kind::Other,
        ),
        _ => (1, Kind::Other),
    }
}

/// Length of a string with its quotes; one that does not end on its line is a quote and no string.
fn text(rest: &[u8]) -> usize {
    let mut at = 1;
    while let Some(byte) = rest.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            b'\n' => return 1,
            _ => at += 1,
        }
    }
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_in_one_token_and_values_by_nature_are_marked() {
        let body =
            br#"data: {"id":"a\"b", "created":12, "choices":[{"id":-1.5e3,"x_ms": 2}],"n":1}"#;
        let tokens = tokens(body);
        let joined: Vec<u8> = tokens
            .iter()
            .flat_map(|token| token.bytes.to_vec())
            .collect();
        assert_eq!(joined, body);
        let marked: Vec<&[u8]> = tokens
            .iter()
            .filter(|token| token.differs)
            .map(|token| token.bytes)
            .collect();
        assert_eq!(marked, [&br#""a\"b""#[..], b"12", b"-1.5e3", b"2"]);
    }

    #[test]
    fn a_quote_without_an_end_is_no_string() {
        for body in [&b"\"abc\n\"x\""[..], b"\"abc\\", b"\""] {
            let joined: usize = tokens(body).iter().map(|token| token.bytes.len()).sum();
            assert_eq!(joined, body.len());
        }
    }
}
