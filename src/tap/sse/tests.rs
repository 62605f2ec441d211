//! What the splitter promises: the blocks of a stream, whatever its line ends and its chunking.

use proptest::prelude::*;

use super::*;

type Seen = (Option<Vec<u8>>, Option<Vec<u8>>, Option<Vec<u8>>);

/// Bytes, data and event name of each block; a leading LF is moved back to the block that it ends.
fn split(chunks: &[&[u8]], cap: usize) -> Vec<Seen> {
    let mut splitter = Splitter::new(cap);
    let mut seen: Vec<Seen> = Vec::new();
    let mut take = |block: Block<'_>| {
        let mut bytes = block.bytes.map(<[u8]>::to_vec);
        if block.leading_lf {
            if let Some(bytes) = &mut bytes {
                assert_eq!(bytes.remove(0), b'\n');
            }
            if let Some(before) = seen.last_mut().and_then(|block| block.0.as_mut()) {
                before.push(b'\n');
            }
        }
        let data = block.data().map(Cow::into_owned);
        let name = block.event_name().map(<[u8]>::to_vec);
        if bytes.as_ref().is_none_or(|bytes| !bytes.is_empty()) {
            seen.push((bytes, data, name));
        }
    };
    for chunk in chunks {
        splitter.feed(chunk, &mut take);
    }
    splitter.finish(&mut take);
    seen
}

fn data_of(stream: &[u8]) -> Vec<String> {
    split(&[stream], LARGEST_EVENT)
        .into_iter()
        .filter_map(|(_, data, _)| data)
        .map(|data| String::from_utf8(data).unwrap())
        .collect()
}

#[test]
fn every_kind_of_line_end_ends_a_line() {
    assert_eq!(data_of(b"data: a\n\ndata: b\n\n"), ["a", "b"]);
    assert_eq!(data_of(b"data: a\r\n\r\ndata: b\r\n\r\n"), ["a", "b"]);
    assert_eq!(data_of(b"data: a\r\rdata: b\r\r"), ["a", "b"]);
    assert_eq!(data_of(b"data: a\r\n\ndata: b\n\r\n"), ["a", "b"]);
}

#[test]
fn only_one_space_after_the_colon_is_left_out() {
    assert_eq!(data_of(b"data:a\n\ndata:  b\n\ndata\n\n"), ["a", " b", ""]);
}

#[test]
fn data_lines_are_joined_and_other_fields_ignored() {
    let stream =
        b": note\nid: 7\nevent: x\ndata: a\nretry: 9\n: more\ndata\nmystery: y\ndata:b\n\n";
    let seen = split(&[stream], LARGEST_EVENT);
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].1.as_deref(), Some(&b"a\n\nb"[..]));
    assert_eq!(seen[0].2.as_deref(), Some(&b"x"[..]));
}

#[test]
fn a_comment_is_a_block_without_data() {
    let seen = split(&[b": keep-alive\n\n:\n\n\n"], LARGEST_EVENT);
    assert_eq!(seen.len(), 3);
    assert!(seen.iter().all(|(_, data, _)| data.is_none()));
}

#[test]
fn one_byte_order_mark_at_the_start_is_skipped() {
    assert_eq!(data_of(b"\xEF\xBB\xBFdata: a\n\n"), ["a"]);
    assert!(data_of(b"\n\xEF\xBB\xBFdata: a\n\n").is_empty());
}

#[test]
fn a_block_without_its_blank_line_comes_at_the_end() {
    assert_eq!(data_of(b"data: a\n\ndata: b"), ["a", "b"]);
    assert_eq!(data_of(b"data: a\n\ndata: b\n"), ["a", "b"]);
}

#[test]
fn a_block_in_one_chunk_is_a_slice_of_it() {
    let chunk = b"data: a\n\ndata: b\n\n";
    let mut ends = Vec::new();
    Splitter::default().feed(chunk, |block| {
        assert!(
            chunk
                .as_ptr_range()
                .contains(&block.bytes.unwrap().as_ptr())
        );
        ends.push(block.end);
    });
    assert_eq!(ends, [9, 18]);
}

#[test]
fn a_lone_cr_ends_a_block_at_once_and_its_lf_is_flagged() {
    let mut splitter = Splitter::default();
    let mut blocks = 0;
    splitter.feed(b"data: a\r\n\r", |block| {
        assert_eq!(block.bytes, Some(&b"data: a\r\n\r"[..]));
        blocks += 1;
    });
    assert_eq!(blocks, 1);
    splitter.feed(b"\n", |_| panic!("the LF is no block"));
    assert!(splitter.pending_has_leading_lf());
    splitter.feed(b"data: b\r\n\r\n", |block| {
        assert!(block.leading_lf);
        assert_eq!(block.bytes, Some(&b"\ndata: b\r\n\r\n"[..]));
        assert_eq!(block.data().as_deref(), Some(&b"b"[..]));
        blocks += 1;
    });
    assert_eq!(blocks, 2);
}

#[test]
fn a_block_over_the_cap_is_skipped_to_its_end() {
    let mut splitter = Splitter::new(16);
    let mut seen = Vec::new();
    for chunk in [&b"data: 0123456789"[..], b"0123456789", b"\n\ndata: a\n\n"] {
        splitter.feed(chunk, |block| {
            seen.push((block.end, block.bytes.map(<[u8]>::to_vec)));
        });
        assert!(splitter.pending().len() <= 16);
    }
    assert_eq!(seen, [(2, None), (11, Some(b"data: a\n\n".to_vec()))]);
}

#[test]
fn the_room_of_a_large_event_is_given_back() {
    let mut splitter = Splitter::default();
    splitter.feed(&vec![b'x'; 1 << 19], |_| {});
    splitter.feed(b"\n\n", |_| {});
    assert!(splitter.buffer.capacity() <= KEPT_CAPACITY);
}

#[test]
fn a_debug_print_shows_no_text() {
    let mut splitter = Splitter::default();
    splitter.feed(b"data: secret", |_| {});
    let printed = format!("{splitter:?}");
    assert!(printed.contains("pending: 12"), "{printed}");
}

proptest! {
    #[test]
    fn chunking_changes_nothing(
        stream in proptest::collection::vec(
            proptest::sample::select(vec![
                "data: {\"a\":1}", "data", "event: x", ":", "\n", "\r", "\r\n", "\n\n", "\u{FEFF}", "\u{1F600}",
            ]),
            0..40,
        ),
        cuts in proptest::collection::vec(0usize..200, 0..20),
        cap in prop_oneof![Just(12usize), Just(LARGEST_EVENT)],
    ) {
        let stream = stream.concat().into_bytes();
        let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| *cut <= stream.len()).collect();
        cuts.sort_unstable();
        cuts.insert(0, 0);
        cuts.push(stream.len());
        let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &stream[pair[0]..pair[1]]).collect();
        let single: Vec<&[u8]> = stream.chunks(1).collect();
        let whole = split(&[&stream], cap);
        prop_assert_eq!(&split(&chunks, cap), &whole);
        prop_assert_eq!(&split(&single, cap), &whole);
        if cap == LARGEST_EVENT {
            let joined: Vec<u8> = whole.iter().flat_map(|block| block.0.clone().unwrap_or_default()).collect();
            prop_assert_eq!(joined, stream);
        }
    }
}
