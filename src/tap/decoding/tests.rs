//! What the decoder promises: what was flushed comes out, at any chunking, and no bytes make it panic or swell.

use std::io::Write;

use proptest::prelude::*;

use super::*;

const CODINGS: &[&str] = &["gzip", "deflate", "raw deflate", "br", "zstd"];

fn decoder(coding: &str) -> Decoder {
    Decoder::new(coding.trim_start_matches("raw ")).unwrap()
}

/// The texts encoded one after the other, each flushed: one piece for each, and the end.
fn encode(coding: &str, texts: &[&[u8]]) -> Vec<Vec<u8>> {
    fn pieces<W: Write>(
        mut writer: W,
        written: impl Fn(&W) -> usize,
        texts: &[&[u8]],
    ) -> (W, Vec<usize>) {
        let mut ends = Vec::new();
        for text in texts {
            writer.write_all(text).unwrap();
            writer.flush().unwrap();
            ends.push(written(&writer));
        }
        (writer, ends)
    }
    let level = flate2::Compression::default();
    let (bytes, ends) = match coding {
        "gzip" => {
            let writer = flate2::write::GzEncoder::new(Vec::new(), level);
            let (writer, ends) = pieces(writer, |writer| writer.get_ref().len(), texts);
            (writer.finish().unwrap(), ends)
        }
        "deflate" => {
            let writer = flate2::write::ZlibEncoder::new(Vec::new(), level);
            let (writer, ends) = pieces(writer, |writer| writer.get_ref().len(), texts);
            (writer.finish().unwrap(), ends)
        }
        "raw deflate" => {
            let writer = flate2::write::DeflateEncoder::new(Vec::new(), level);
            let (writer, ends) = pieces(writer, |writer| writer.get_ref().len(), texts);
            (writer.finish().unwrap(), ends)
        }
        "br" => {
            let writer = brotli::CompressorWriter::new(Vec::new(), 4096, 5, 22);
            let (writer, ends) = pieces(writer, |writer| writer.get_ref().len(), texts);
            (writer.into_inner(), ends)
        }
        _ => {
            let writer = zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
            let (writer, ends) = pieces(writer, |writer| writer.get_ref().len(), texts);
            (writer.finish().unwrap(), ends)
        }
    };
    let mut start = 0;
    ends.into_iter()
        .chain([bytes.len()])
        .map(|end| bytes[std::mem::replace(&mut start, end)..end].to_vec())
        .collect()
}

fn decode(decoder: &mut Decoder, bytes: &[u8]) -> Result<Vec<u8>, Undecodable> {
    let mut decoded = Vec::new();
    decoder
        .decode(bytes, &mut |bytes| decoded.extend_from_slice(bytes))
        .map(|()| decoded)
}

#[test]
fn what_was_flushed_comes_out_at_once() {
    let texts: [&[u8]; 3] = [
        b"data: {}\n\n",
        b"data: {\"usage\":{}}\n\n",
        b"data: [DONE]\n\n",
    ];
    for coding in CODINGS {
        let mut decoder = decoder(coding);
        for (piece, text) in encode(coding, &texts).iter().zip(texts) {
            assert_eq!(decode(&mut decoder, piece).unwrap(), text, "{coding}");
        }
    }
}

#[test]
fn a_large_body_comes_through_whole_at_any_chunking() {
    let text: Vec<u8> = (0..400_000u32)
        .flat_map(|n| n.wrapping_mul(n).to_le_bytes())
        .collect();
    for coding in CODINGS {
        let bytes = encode(coding, &[&text]).concat();
        for size in [1 << 20, 1000, 7] {
            let mut decoder = decoder(coding);
            let mut decoded = Vec::new();
            for chunk in bytes.chunks(size) {
                decoder
                    .decode(chunk, &mut |bytes| decoded.extend_from_slice(bytes))
                    .unwrap();
            }
            assert!(decoded == text, "{coding} by {size}");
        }
    }
}

#[test]
fn names_are_read_in_any_case_and_unknown_ones_are_none() {
    for name in ["GZIP", " gzip ", "x-gzip", "deflate", "Br", "zstd"] {
        assert!(Decoder::new(name).is_some(), "{name}");
    }
    for name in ["", "identity", "gzip, br", "compress", "aws-chunked"] {
        assert!(Decoder::new(name).is_none(), "{name}");
    }
}

#[test]
fn a_broken_body_is_told_after_what_was_whole() {
    for coding in CODINGS {
        let pieces = encode(coding, &[b"data: {}\n\n", &[b'x'; 400]]);
        let mut decoder = decoder(coding);
        assert_eq!(
            decode(&mut decoder, &pieces[0]).unwrap(),
            b"data: {}\n\n",
            "{coding}"
        );
        assert_eq!(
            decode(&mut decoder, &[0xFF; 64]),
            Err(Undecodable),
            "{coding}"
        );
    }
}

#[test]
fn bytes_behind_the_end_of_the_body_do_no_harm() {
    for coding in ["deflate", "raw deflate", "br"] {
        let mut bytes = encode(coding, &[b"abc"]).concat();
        bytes.extend_from_slice(b"\r\n");
        assert_eq!(
            decode(&mut decoder(coding), &bytes).unwrap(),
            b"abc",
            "{coding}"
        );
    }
}

#[test]
fn a_bomb_is_given_up_in_little_memory() {
    let zeros = vec![0; 64 << 20];
    for coding in CODINGS {
        let bytes = encode(coding, &[&zeros]).concat();
        let mut decoder = decoder(coding);
        let (mut total, mut largest) = (0, 0);
        let result = decoder.decode(&bytes, &mut |bytes| {
            total += bytes.len();
            largest = largest.max(bytes.len());
        });
        assert_eq!(result, Err(Undecodable), "{coding}");
        assert!(largest <= 6 << 20, "{coding}: {largest}");
        assert!(total < zeros.len(), "{coding}: {total}");
    }
}

#[test]
fn a_window_beyond_the_limit_is_refused() {
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
    encoder.window_log(25).unwrap();
    encoder.write_all(b"abc").unwrap();
    encoder.flush().unwrap();
    let bytes = encoder.finish().unwrap();
    assert_eq!(decode(&mut decoder("zstd"), &bytes), Err(Undecodable));
}

proptest! {
    #[test]
    fn damaged_bodies_are_survived(
        coding in proptest::sample::select(CODINGS),
        damage in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..6),
        size in 1usize..200,
    ) {
        let mut bytes = encode(coding, &[b"data: {}\n\n", &[b'x'; 300], b"data: [DONE]\n\n"]).concat();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let mut decoder = decoder(coding);
        for chunk in bytes.chunks(size) {
            if decode(&mut decoder, chunk).is_err() {
                break;
            }
        }
    }

    #[test]
    fn any_bytes_are_survived(
        coding in proptest::sample::select(CODINGS),
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
    ) {
        let _ = decode(&mut decoder(coding), &bytes);
    }
}

#[test]
fn a_large_text_that_was_flushed_comes_out_at_once() {
    let text = "data: {\"token\":[7,8,9]}\n\n".repeat(4000);
    for coding in CODINGS {
        let mut decoder = decoder(coding);
        let encoded = encode(coding, &[text.as_bytes(), b": end\n\n"]);
        let decoded = decode(&mut decoder, &encoded[0]).unwrap();
        assert_eq!(decoded.len(), text.len(), "{coding}");
    }
}
