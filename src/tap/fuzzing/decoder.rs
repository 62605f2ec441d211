//! The decoder of content codings, with broken bodies and with whole ones.

use std::io::Write;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

use super::Input;
use crate::tap::decoding::{Decoder, HEAD_START, LARGEST_RATIO};

/// The content codings, and how a body of each is made; there is no encoder for the last one here.
const CODINGS: [(&str, Encode); 5] = [
    ("gzip", Some(gzip)),
    ("deflate", Some(zlib)),
    ("deflate", Some(deflate)),
    ("zstd", Some(zstd)),
    ("br", None),
];

type Encode = Option<fn(&[u8]) -> Option<Vec<u8>>>;

/// Decodes a body. Promises: no panic on any bytes; what comes out is bounded by what went in; how the body is cut
/// changes nothing that comes out of a whole one; a body that was made of a text gives that text.
///
/// `how` modulo 5 is the coding; bit 7: the text is encoded first; bit 6: and then damaged where `cuts` says.
pub fn decoder(data: &[u8]) {
    let Some(input) = Input::read(data) else {
        return;
    };
    let (name, encode) = CODINGS[usize::from(input.how) % CODINGS.len()];
    if !input.has(7) {
        any_body(name, input);
        return;
    }
    let Some(mut body) = encode.and_then(|encode| encode(input.text)) else {
        return;
    };
    if input.has(6) {
        let at = usize::from(input.cuts) % body.len();
        body[at] ^= input.how;
        any_body(
            name,
            Input {
                text: &body,
                ..input
            },
        );
    } else {
        for pieces in (Input {
            text: &body,
            ..input
        })
        .chunkings()
        {
            assert_eq!(decode(name, &pieces), (input.text.to_vec(), true));
        }
    }
}

fn any_body(name: &str, input: Input<'_>) {
    let (whole, is_whole) = decode(name, &[input.text]);
    for pieces in input.chunkings() {
        let (decoded, is_good) = decode(name, &pieces);
        // Whether a broken body is noticed may depend on it: zstd looks less closely at an empty block in pieces.
        if is_whole {
            assert!(is_good && decoded == whole, "cut otherwise");
        }
    }
}

/// What came out, and whether all of the body was good.
fn decode(name: &str, pieces: &[&[u8]]) -> (Vec<u8>, bool) {
    let Some(mut decoder) = Decoder::new(name) else {
        panic!("no decoder of {name}");
    };
    let mut out = Vec::new();
    let mut seen = 0;
    for piece in pieces {
        let result = decoder.decode(piece, &mut |bytes| out.extend_from_slice(bytes));
        seen += piece.len() as u64;
        assert!(out.len() as u64 <= HEAD_START + LARGEST_RATIO * seen);
        if result.is_err() {
            return (out, false);
        }
    }
    (out, true)
}

fn gzip(text: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).ok()?;
    encoder.finish().ok()
}

fn zlib(text: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).ok()?;
    encoder.finish().ok()
}

fn deflate(text: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).ok()?;
    encoder.finish().ok()
}

fn zstd(text: &[u8]) -> Option<Vec<u8>> {
    zstd::bulk::compress(text, 1).ok()
}
