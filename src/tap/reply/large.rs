//! Reads an event that is too large to be held, as its bytes pass: megabytes of log probabilities, token ids or audio.

use crate::tap::json::Reducer;

/// Longest field name and event name that are compared.
const LONGEST_NAME: usize = 16;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// One event so far, from its first byte on.
#[derive(Debug, Default)]
pub(super) struct LargeEvent {
    line: Line,
    /// A line has ended: no byte order mark can stand in front any more.
    has_line: bool,
    /// Name of the field, or the event's name, as far as it is compared.
    name: Vec<u8>,
    event_name: Vec<u8>,
    /// None before the first data line.
    data: Option<Reducer>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Line {
    /// In the field's name.
    #[default]
    Name,
    /// Behind the colon: one space belongs to it.
    Colon(Field),
    Value(Field),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Data,
    Event,
    Other,
}

impl LargeEvent {
    pub(super) fn feed(&mut self, mut bytes: &[u8]) {
        while let Some((&first, rest)) = bytes.split_first() {
            bytes = match (self.line, first) {
                // A CR LF is an end and an empty line, which does no harm.
                (_, b'\n' | b'\r') => {
                    self.end_line();
                    rest
                }
                (Line::Name, b':') => {
                    self.line = Line::Colon(self.begin_value());
                    rest
                }
                (Line::Name, _) => {
                    if self.name.len() < LONGEST_NAME {
                        self.name.push(first);
                    }
                    rest
                }
                (Line::Colon(field), _) => {
                    self.line = Line::Value(field);
                    if first == b' ' { rest } else { bytes }
                }
                (Line::Value(field), _) => {
                    let end = memchr::memchr2(b'\n', b'\r', bytes).unwrap_or(bytes.len());
                    let (value, rest) = bytes.split_at(end);
                    self.value(field, value);
                    rest
                }
            };
        }
    }

    fn begin_value(&mut self) -> Field {
        let name = std::mem::take(&mut self.name);
        let name = match name.strip_prefix(BYTE_ORDER_MARK) {
            Some(behind_mark) if !self.has_line => behind_mark,
            _ => &name,
        };
        match name {
            b"data" => {
                // The lines of one event's data are joined with LF: white space, where it does not break the JSON.
                self.data.get_or_insert_default().feed(b"\n");
                Field::Data
            }
            b"event" => {
                self.event_name.clear();
                Field::Event
            }
            _ => Field::Other,
        }
    }

    fn value(&mut self, field: Field, value: &[u8]) {
        match field {
            Field::Data => self.data.get_or_insert_default().feed(value),
            Field::Event => {
                let room = LONGEST_NAME.saturating_sub(self.event_name.len());
                self.event_name
                    .extend_from_slice(&value[..value.len().min(room)]);
            }
            Field::Other => {}
        }
    }

    fn end_line(&mut self) {
        if self.line == Line::Name && !self.name.is_empty() {
            // A line without a colon is a field without a value.
            self.begin_value();
        }
        self.line = Line::Name;
        self.has_line = true;
        self.name.clear();
    }

    /// Whether this is the event's name.
    pub(super) fn is_named(&self, name: &[u8]) -> bool {
        self.event_name == name
    }

    /// What its data came to; none if it had none.
    pub(super) fn into_data(self) -> Option<Reducer> {
        self.data
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id_of(text: &str, size: usize) -> serde_json::Value {
        let mut event = LargeEvent::default();
        for chunk in text.as_bytes().chunks(size) {
            event.feed(chunk);
        }
        let data = event.into_data().unwrap().finish().unwrap();
        data["id"].clone()
    }

    #[test]
    fn data_lines_are_found_however_they_are_written_and_cut() {
        for text in [
            "data: {\"id\":\"a\"}\n\n",
            "data:{\"id\":\"a\"}\r\n\r\n",
            "\u{feff}data: {\"id\":\"a\"}\r\r",
            ": comment\nid: 7\nevent: x\ndata: {\"id\"\ndata::\ndata:  \"a\"}\n\n",
            "\ndata: {\"id\":\"a\"}",
            "data\ndata: {\"id\":\"a\"}\ndata\n\n",
        ] {
            for size in [1, 2, 7, 1000] {
                assert_eq!(id_of(text, size), "a", "{text:?}");
            }
        }
    }

    #[test]
    fn the_events_name_is_known_and_no_data_is_none() {
        let mut event = LargeEvent::default();
        event.feed("event: error\n\u{feff}data: 1\n: gone\n\n".as_bytes());
        assert!(event.is_named(b"error"));
        assert!(event.into_data().is_none());
        let mut event = LargeEvent::default();
        event.feed(b"event: error\nevent\ndata\n\n");
        assert!(!event.is_named(b"error"));
        assert!(event.into_data().is_some());
    }
}
