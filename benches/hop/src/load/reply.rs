//! Responses as the load client reads them: head, then a body in chunks or of known length, cut anywhere.

use anyhow::{Context as _, Result, bail, ensure};
use memchr::memmem;

/// Reads one response after the other from the pieces that a connection brings.
#[derive(Debug, Default)]
pub struct Reply {
    state: State,
    head: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Head,
    /// Bytes of a body of known length that are still to come.
    Length(usize),
    /// In a chunk's size line: the number so far, and whether an extension has begun.
    Size(usize, bool),
    /// Bytes of a chunk that are still to come, its line end included.
    Chunk(usize),
    /// Behind the last chunk, at the beginning of a line or not.
    Trailers(bool),
    End,
}

impl Reply {
    /// Reads a piece, hands the body's bytes to `body`, and says how much of the piece belongs to this response.
    ///
    /// # Errors
    ///
    /// The status is not 200, or the bytes are no response.
    pub fn feed(
        &mut self,
        piece: &[u8],
        mut body: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<usize> {
        let mut rest = piece;
        while !rest.is_empty() && !self.is_complete() {
            let taken = self.step(rest, &mut body)?;
            rest = &rest[taken..];
        }
        Ok(piece.len() - rest.len())
    }

    /// Whether the response has come to its end.
    pub fn is_complete(&self) -> bool {
        matches!(self.state, State::End)
    }

    /// Whether its head has come.
    pub fn has_head(&self) -> bool {
        !matches!(self.state, State::Head)
    }

    /// Forgets this response and waits for the next.
    pub fn reset(&mut self) {
        self.state = State::Head;
        self.head.clear();
    }

    fn step(&mut self, rest: &[u8], body: &mut impl FnMut(&[u8]) -> Result<()>) -> Result<usize> {
        match self.state {
            State::Head => self.read_head(rest),
            State::Length(left) => {
                let taken = left.min(rest.len());
                body(&rest[..taken])?;
                self.state = if taken == left {
                    State::End
                } else {
                    State::Length(left - taken)
                };
                Ok(taken)
            }
            State::Size(size, in_extension) => {
                self.state = match rest[0] {
                    b'\n' if size == 0 => State::Trailers(true),
                    b'\n' => State::Chunk(size + 2),
                    b'\r' => State::Size(size, in_extension),
                    b';' | b' ' => State::Size(size, true),
                    _ if in_extension => State::Size(size, true),
                    digit => {
                        let digit = char::from(digit)
                            .to_digit(16)
                            .context("a chunk's size is no number")?;
                        ensure!(size < 1 << 40, "a chunk's size has no end");
                        State::Size(size << 4 | digit as usize, false)
                    }
                };
                Ok(1)
            }
            State::Chunk(left) => {
                let taken = left.min(rest.len());
                // The last two bytes are the line end.
                let data = taken.min(left.saturating_sub(2));
                if data > 0 {
                    body(&rest[..data])?;
                }
                self.state = if taken == left {
                    State::Size(0, false)
                } else {
                    State::Chunk(left - taken)
                };
                Ok(taken)
            }
            State::Trailers(at_start) => {
                self.state = match rest[0] {
                    b'\n' if at_start => State::End,
                    b'\n' => State::Trailers(true),
                    b'\r' => State::Trailers(at_start),
                    _ => State::Trailers(false),
                };
                Ok(1)
            }
            State::End => Ok(0),
        }
    }

    fn read_head(&mut self, rest: &[u8]) -> Result<usize> {
        let before = self.head.len();
        let head = if before == 0 {
            rest
        } else {
            self.head.extend_from_slice(rest);
            &self.head
        };
        let Some(end) = memmem::find(head, b"\r\n\r\n") else {
            ensure!(head.len() < 64 << 10, "a response's head has no end");
            if before == 0 {
                self.head.extend_from_slice(rest);
            }
            return Ok(rest.len());
        };
        self.state = framing(&head[..end])?;
        self.head.clear();
        Ok(end + 4 - before)
    }
}

fn framing(head: &[u8]) -> Result<State> {
    if !head.starts_with(b"HTTP/1.1 200") {
        bail!("not the answer: {}", String::from_utf8_lossy(head));
    }
    for line in head.split(|byte| *byte == b'\n') {
        let name = line
            .iter()
            .position(|byte| *byte == b':')
            .unwrap_or_default();
        let value = || line[name + 1..].trim_ascii();
        if line[..name].eq_ignore_ascii_case(b"content-length") {
            let length = std::str::from_utf8(value())?.parse()?;
            return Ok(if length == 0 {
                State::End
            } else {
                State::Length(length)
            });
        }
        if line[..name].eq_ignore_ascii_case(b"transfer-encoding")
            && value().eq_ignore_ascii_case(b"chunked")
        {
            return Ok(State::Size(0, false));
        }
    }
    bail!(
        "neither length nor chunks: {}",
        String::from_utf8_lossy(head)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &[&[u8]]) -> Result<(Vec<u8>, bool)> {
        let (mut reply, mut body) = (Reply::default(), Vec::new());
        for piece in pieces {
            let taken = reply.feed(piece, |data| {
                body.extend_from_slice(data);
                Ok(())
            })?;
            assert_eq!(taken, piece.len());
        }
        Ok((body, reply.is_complete()))
    }

    #[test]
    fn a_response_is_read_the_same_wherever_it_is_cut() {
        for whole in [
            &b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n"[..],
            b"HTTP/1.1 200 OK\r\nA: b\r\ncontent-length: 13\r\n\r\nabc0123456789",
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nd\r\nabc0123456789\r\n0\r\nx: y\r\n\r\n",
        ] {
            for cut in 1..whole.len() {
                let (body, is_complete) = read(&[&whole[..cut], &whole[cut..]]).unwrap();
                assert_eq!(body, b"abc0123456789", "{cut}");
                assert!(is_complete);
                assert!(!read(&[&whole[..cut]]).unwrap().1);
            }
        }
    }

    #[test]
    fn what_follows_a_response_is_left_alone() {
        let mut reply = Reply::default();
        let two = b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\naHTTP/1.1";
        assert_eq!(reply.feed(two, |_| Ok(())).unwrap(), two.len() - 8);
        assert!(reply.is_complete());
    }

    #[test]
    fn anything_but_a_200_is_an_error() {
        assert!(read(&[b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n"]).is_err());
        assert!(read(&[b"HTTP/1.1 200 OK\r\n\r\n"]).is_err());
        let broken = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n";
        assert!(read(&[broken]).is_err());
    }
}
