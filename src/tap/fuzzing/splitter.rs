//! The splitter of event streams, against a reader of the specification that has the whole stream at once.

use super::Input;
use super::reference;
use crate::tap::sse::{LARGEST_EVENT, Splitter};

/// One block as it came out: its bytes, its data and its event's name; no bytes when it was over the cap.
#[derive(Debug, PartialEq)]
struct Seen {
    bytes: Option<Vec<u8>>,
    data: Option<Vec<u8>>,
    event_name: Option<Vec<u8>>,
}

/// Splits a stream. Promises: the blocks stand behind each other and cover every byte; how the stream is cut changes
/// none of them; each holds what the specification says; nothing over the cap is ever held.
///
/// `how` is the cap in bytes, 0 the usual one.
pub fn splitter(data: &[u8]) {
    let Some(input) = Input::read(data) else {
        return;
    };
    let cap = match input.how {
        0 => LARGEST_EVENT,
        how => usize::from(how),
    };
    let whole = split(input.text, &[input.text], cap);
    for pieces in input.chunkings() {
        assert_eq!(split(input.text, &pieces, cap), whole, "cut otherwise");
    }
    let expected: Vec<Seen> = reference::events(input.text)
        .into_iter()
        .map(|event| {
            let fits = event.length <= cap;
            Seen {
                bytes: fits.then(|| event.bytes.to_vec()),
                data: event.data.filter(|_| fits),
                event_name: event.event_name.filter(|_| fits),
            }
        })
        .collect();
    assert_eq!(whole, expected, "not as specified");
}

fn split(text: &[u8], pieces: &[&[u8]], cap: usize) -> Vec<Seen> {
    let mut splitter = Splitter::new(cap);
    let mut blocks: Vec<Seen> = Vec::new();
    let (mut fed, mut covered) = (0, 0);
    let mut note = |end: usize, bytes: Option<&[u8]>, leading_lf: bool, data, event_name| {
        assert!(covered < end && end <= text.len(), "blocks out of order");
        let expected = &text[covered..end];
        assert!(bytes.is_none_or(|bytes| bytes == expected), "other bytes");
        covered = end;
        let own = &expected[usize::from(leading_lf)..];
        if leading_lf {
            assert_eq!(expected[0], b'\n');
            // The line feed is the end of the block before, which was complete without it.
            match blocks.last_mut() {
                Some(before) => before.bytes.iter_mut().for_each(|bytes| bytes.push(b'\n')),
                None => panic!("a line feed of no block"),
            }
        }
        if !own.is_empty() {
            blocks.push(Seen {
                bytes: bytes.map(|_| own.to_vec()),
                data,
                event_name,
            });
        }
    };
    for piece in pieces {
        splitter.feed(piece, |block| {
            note(
                fed + block.end,
                block.bytes,
                block.leading_lf,
                block.data().map(Into::into),
                block.event_name().map(<[u8]>::to_vec),
            );
        });
        fed += piece.len();
        assert!(splitter.pending().len() <= cap + 1, "held over the cap");
    }
    splitter.finish(|block| {
        note(
            text.len(),
            block.bytes,
            block.leading_lf,
            block.data().map(Into::into),
            block.event_name().map(<[u8]>::to_vec),
        );
    });
    assert_eq!(covered, text.len(), "bytes are missing");
    blocks
}
