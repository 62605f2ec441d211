//! A strict reader of HTTP/1 requests that shares no code with the one in use (RFC 9112, without any of its leniency).

/// Fields that must not go beyond one hop.
pub(super) const HOP_BY_HOP: [&str; 4] =
    ["connection", "keep-alive", "proxy-connection", "upgrade"];

/// One request message.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) method: String,
    pub(super) target: String,
    pub(super) is_http10: bool,
    /// Names in small letters, and values, in their order.
    fields: Vec<(String, Vec<u8>)>,
    pub(super) body: Vec<u8>,
}

/// What a reading came to.
pub(super) enum Read {
    /// A message and its length in bytes.
    Whole(Message, usize),
    Unfinished,
    Wrong(&'static str),
}

impl Message {
    /// The values of a field, in their order.
    pub(super) fn values(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        self.fields
            .iter()
            .filter(move |(own, _)| own == name)
            .map(|(_, value)| &value[..])
    }
}

/// Reads the message that `bytes` begin with.
pub(super) fn read_message(bytes: &[u8]) -> Read {
    let mut rest = bytes;
    match message(&mut rest) {
        Ok(message) => Read::Whole(message, bytes.len() - rest.len()),
        Err(None) => Read::Unfinished,
        Err(Some(why)) => Read::Wrong(why),
    }
}

/// Why nothing can be read: no reason is that more must come.
type Stop = Option<&'static str>;

fn message(rest: &mut &[u8]) -> Result<Message, Stop> {
    let mut words = line(rest)?.split(|byte| *byte == b' ');
    let mut word = || words.next().ok_or(Some("a request line without a part"));
    let (method, target, version) = (word()?, word()?, word()?);
    if words.next().is_some() || method.is_empty() || !method.iter().all(is_token) {
        return Err(Some("a broken request line"));
    }
    if target.is_empty() || !target.iter().all(|byte| *byte > b' ' && *byte != 0x7F) {
        return Err(Some("a broken target"));
    }
    let is_http10 = match version {
        b"HTTP/1.1" => false,
        b"HTTP/1.0" => true,
        _ => return Err(Some("another version")),
    };
    let mut message = Message {
        method: text(method),
        target: text(target),
        is_http10,
        fields: fields(rest)?,
        body: Vec::new(),
    };
    message.body = body(&message, rest)?;
    Ok(message)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn is_token(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte)
}

/// The next line without its CR LF.
fn line<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], Stop> {
    let end = rest
        .windows(2)
        .position(|pair| pair == b"\r\n")
        .ok_or(None::<&str>)?;
    let line = &rest[..end];
    *rest = &rest[end + 2..];
    if line.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)) {
        return Err(Some("a line end or a null inside a line"));
    }
    Ok(line)
}

/// A field section with its empty line.
fn fields(rest: &mut &[u8]) -> Result<Vec<(String, Vec<u8>)>, Stop> {
    let mut fields = Vec::new();
    loop {
        let line = line(rest)?;
        if line.is_empty() {
            return Ok(fields);
        }
        let colon = line
            .iter()
            .position(|byte| *byte == b':')
            .ok_or(Some("a field without a colon"))?;
        let (name, value) = (&line[..colon], &line[colon + 1..]);
        if name.is_empty() || !name.iter().all(is_token) {
            return Err(Some("a broken field name"));
        }
        fields.push((text(name).to_ascii_lowercase(), value.trim_ascii().to_vec()));
    }
}

fn body(message: &Message, rest: &mut &[u8]) -> Result<Vec<u8>, Stop> {
    let lengths: Vec<&[u8]> = message.values("content-length").collect();
    let codings: Vec<&[u8]> = message.values("transfer-encoding").collect();
    match (&lengths[..], &codings[..]) {
        ([], []) => Ok(Vec::new()),
        ([length], []) => {
            let length = number(length, 10)?;
            let body = rest.get(..length).ok_or(None::<&str>)?;
            *rest = &rest[length..];
            Ok(body.to_vec())
        }
        ([], [coding]) if coding.eq_ignore_ascii_case(b"chunked") => chunks(rest),
        ([], _) => Err(Some("another coding than chunked")),
        (_, []) => Err(Some("two lengths")),
        _ => Err(Some("a length and a coding")),
    }
}

fn chunks(rest: &mut &[u8]) -> Result<Vec<u8>, Stop> {
    let mut body = Vec::new();
    loop {
        let line = line(rest)?;
        let size = line.split(|byte| *byte == b';').next().unwrap_or_default();
        let size = number(size, 16)?;
        if size == 0 {
            fields(rest)?;
            return Ok(body);
        }
        body.extend_from_slice(rest.get(..size).ok_or(None::<&str>)?);
        *rest = &rest[size..];
        let (end, after) = rest.split_first_chunk::<2>().ok_or(None::<&str>)?;
        if end != b"\r\n" {
            return Err(Some("a chunk that is longer than it says"));
        }
        *rest = after;
    }
}

fn number(digits: &[u8], radix: u32) -> Result<usize, Stop> {
    let digits = std::str::from_utf8(digits).unwrap_or_default();
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(Some("a broken length"));
    }
    usize::from_str_radix(digits, radix).map_err(|_| Some("a broken length"))
}
