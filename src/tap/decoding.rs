//! Takes the content coding off a copy of a response, as its bytes pass, so that the observer can read it. The client's
//! bytes stay as they are.
//!
//! What a server flushed comes out at once: the times of the content depend on it. Memory is bounded by the coding's own
//! window; a body that unfolds out of all proportion is given up.

use std::fmt;
use std::io::{self, Write};

use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

/// Input bytes that are decoded before what came out is handed on.
const PIECE: usize = 4 << 10;

/// Decoded bytes that may come from one encoded byte, once [`HEAD_START`] is used up. Text of one repeated token comes
/// near it; only a bomb goes on beyond.
pub(super) const LARGEST_RATIO: u64 = 256;

/// Decoded bytes that are allowed whatever they come from.
pub(super) const HEAD_START: u64 = 4 << 20;

/// Largest zstd window as a power of two, the limit of RFC 9659 for HTTP.
const LARGEST_ZSTD_WINDOW: u32 = 23;

/// Room that the output keeps between two pieces.
const KEPT_CAPACITY: usize = 32 << 10;

/// The body is not what its content coding says, or unfolds without end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the body can't be decoded")]
pub struct Undecodable;

/// The incremental decoder of one body.
pub struct Decoder {
    coding: Coding,
    /// Encoded bytes so far.
    seen: u64,
}

enum Coding {
    Gzip(Box<MultiGzDecoder<Output>>),
    /// `deflate`, before its first two bytes showed which of the two it is.
    Deflate(Vec<u8>),
    Zlib(Box<ZlibDecoder<Output>>),
    /// What some servers send under the name `deflate`, against RFC 9110.
    RawDeflate(Box<DeflateDecoder<Output>>),
    Brotli(Box<brotli_decompressor::DecompressorWriter<Output>>),
    Zstd(Box<zstd::stream::write::Decoder<'static, Output>>),
}

/// Where a decoder writes to.
#[derive(Default)]
struct Output {
    bytes: Vec<u8>,
    /// Bytes that may still come out.
    allowance: u64,
}

/// Shows no byte of the body: it is somebody's text.
impl fmt::Debug for Decoder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let coding = match self.coding {
            Coding::Gzip(_) => "gzip",
            Coding::Deflate(_) | Coding::Zlib(_) | Coding::RawDeflate(_) => "deflate",
            Coding::Brotli(_) => "br",
            Coding::Zstd(_) => "zstd",
        };
        formatter
            .debug_struct("Decoder")
            .field("coding", &coding)
            .field("seen", &self.seen)
            .finish_non_exhaustive()
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.allowance = self
            .allowance
            .checked_sub(bytes.len() as u64)
            .ok_or_else(|| io::Error::other(Undecodable))?;
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Decoder {
    /// A decoder of this `Content-Encoding`; none for one that is unknown, for several on top of each other, and for
    /// `identity`, which needs none.
    pub fn new(content_encoding: &str) -> Option<Self> {
        let name = content_encoding.trim().to_ascii_lowercase();
        let output = Output {
            allowance: HEAD_START,
            ..Output::default()
        };
        let coding = match &*name {
            "gzip" | "x-gzip" => Coding::Gzip(Box::new(MultiGzDecoder::new(output))),
            "deflate" => Coding::Deflate(Vec::new()),
            "br" => Coding::Brotli(Box::new(brotli_decompressor::DecompressorWriter::new(
                output, PIECE,
            ))),
            "zstd" => {
                let mut decoder = zstd::stream::write::Decoder::new(output).ok()?;
                decoder.window_log_max(LARGEST_ZSTD_WINDOW).ok()?;
                Coding::Zstd(Box::new(decoder))
            }
            _ => return None,
        };
        Some(Self { coding, seen: 0 })
    }

    /// Decodes the next bytes of the body, cut anywhere, and hands on what they give.
    ///
    /// # Errors
    ///
    /// If the body is broken. What came before has been handed on; nothing more can come.
    pub fn decode(
        &mut self,
        bytes: &[u8],
        decoded: &mut impl FnMut(&[u8]),
    ) -> Result<(), Undecodable> {
        for piece in bytes.chunks(PIECE) {
            self.seen += piece.len() as u64;
            let result = self.coding.write(piece);
            let output = self.coding.output();
            if let Some(output) = output {
                if !output.bytes.is_empty() {
                    decoded(&output.bytes);
                    output.bytes.clear();
                    output.bytes.shrink_to(KEPT_CAPACITY);
                }
                output.allowance += LARGEST_RATIO * piece.len() as u64;
            }
            result.map_err(|_| Undecodable)?;
        }
        Ok(())
    }
}

impl Coding {
    fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        if let Self::Deflate(start) = self {
            start.extend_from_slice(bytes);
            let Some(&first_two) = start.first_chunk() else {
                return Ok(());
            };
            let held = std::mem::take(start);
            *self = Self::deflate(first_two);
            return self.write(&held);
        }
        let Some(writer) = self.writer() else {
            return Ok(());
        };
        while !bytes.is_empty() {
            match writer.write(bytes) {
                // The coded body is over; what follows is none of it.
                Ok(0) => break,
                Ok(written) => bytes = &bytes[written..],
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                Err(why) => return Err(why),
            }
        }
        writer.flush()?;
        self.push_out()
    }

    /// Brotli's decoder stops at a full output buffer when its input is used up, and has no flush: what is left in its window
    /// comes out with the next writes, be they empty.
    fn push_out(&mut self) -> io::Result<()> {
        let Self::Brotli(decoder) = self else {
            return Ok(());
        };
        let mut before = None;
        while before != Some(decoder.get_ref().bytes.len()) {
            before = Some(decoder.get_ref().bytes.len());
            let _nothing_went_in = decoder.write(&[])?;
        }
        Ok(())
    }

    /// `deflate` is the zlib format, whose first two bytes are a multiple of 31; the raw one is taken too.
    fn deflate(start: [u8; 2]) -> Self {
        let output = Output {
            allowance: HEAD_START,
            ..Output::default()
        };
        let is_zlib = start[0] & 0x0F == 8 && u16::from_be_bytes(start).is_multiple_of(31);
        if is_zlib {
            Self::Zlib(Box::new(ZlibDecoder::new(output)))
        } else {
            Self::RawDeflate(Box::new(DeflateDecoder::new(output)))
        }
    }

    fn writer(&mut self) -> Option<&mut dyn Write> {
        match self {
            Self::Gzip(decoder) => Some(decoder),
            Self::Deflate(_) => None,
            Self::Zlib(decoder) => Some(decoder),
            Self::RawDeflate(decoder) => Some(decoder),
            Self::Brotli(decoder) => Some(decoder),
            Self::Zstd(decoder) => Some(decoder),
        }
    }

    fn output(&mut self) -> Option<&mut Output> {
        match self {
            Self::Gzip(decoder) => Some(decoder.get_mut()),
            Self::Deflate(_) => None,
            Self::Zlib(decoder) => Some(decoder.get_mut()),
            Self::RawDeflate(decoder) => Some(decoder.get_mut()),
            Self::Brotli(decoder) => Some(decoder.get_mut()),
            Self::Zstd(decoder) => Some(decoder.get_mut()),
        }
    }
}

#[cfg(test)]
mod tests;
