//! One connection of the engine double: bytes in, bytes out, and what is being sent.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::rc::Rc;

use super::response::Stream;

/// A connection.
#[derive(Debug)]
pub struct Connection {
    /// The socket, non-blocking.
    pub socket: TcpStream,
    /// Received and not yet used.
    pub received: Vec<u8>,
    /// What is to be sent before anything else.
    pub out: Vec<u8>,
    sent: usize,
    /// A large body behind `out`, shared so that it is not copied for every reply.
    pub body: Option<(Rc<[u8]>, usize)>,
    /// The stream that is being sent.
    pub stream: Option<Stream>,
    /// Whether the socket took less than it was given.
    pub is_blocked: bool,
}

impl Connection {
    /// Takes over an accepted socket.
    pub fn new(socket: TcpStream) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        socket.set_nodelay(true)?;
        Ok(Self {
            socket,
            received: Vec::new(),
            out: Vec::new(),
            sent: 0,
            body: None,
            stream: None,
            is_blocked: false,
        })
    }

    /// Whether a response is under way.
    pub fn is_busy(&self) -> bool {
        self.stream.is_some() || self.sent < self.out.len() || self.body.is_some()
    }

    /// Reads what is there; `false` at the end.
    pub fn receive(&mut self, buffer: &mut [u8]) -> bool {
        loop {
            match self.socket.read(buffer) {
                Ok(0) => return false,
                Ok(read) => {
                    self.received.extend_from_slice(&buffer[..read]);
                    if read < buffer.len() {
                        return true;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
    }

    /// Sends what is waiting, adds what was sent to `bytes`; `false` if the connection is gone.
    pub fn flush(&mut self, bytes: &mut u64) -> bool {
        self.is_blocked = false;
        while self.sent < self.out.len() {
            match self.socket.write(&self.out[self.sent..]) {
                Ok(written) => {
                    *bytes += written as u64;
                    self.sent += written;
                }
                Err(error) => return self.not_sent(&error),
            }
        }
        self.out.clear();
        self.sent = 0;
        while let Some((body, sent)) = &mut self.body {
            match self.socket.write(&body[*sent..]) {
                Ok(written) => {
                    *bytes += written as u64;
                    *sent += written;
                }
                Err(error) => return self.not_sent(&error),
            }
            if *sent == body.len() {
                self.body = None;
            }
        }
        true
    }

    fn not_sent(&mut self, error: &io::Error) -> bool {
        self.is_blocked = error.kind() == ErrorKind::WouldBlock;
        self.is_blocked || error.kind() == ErrorKind::Interrupted
    }
}
