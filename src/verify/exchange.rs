//! Sends one request on a connection of its own and keeps what comes back.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use super::address::Address;
use super::answer::{Answer, Reader};
use super::requests::Request;

/// How long a server that was asked to close may take.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);

/// How long a connection that should stay is watched for its end.
const WATCHED: Duration = Duration::from_millis(50);

/// How long a server may take to say 100 Continue, before the body is sent all the same.
const CONTINUE_LIMIT: Duration = Duration::from_secs(1);

/// All that came back.
#[derive(Clone, Debug)]
pub(super) struct Exchange {
    pub(super) answers: Vec<Answer>,
    /// Why the next answer did not come.
    pub(super) missing: Option<String>,
    /// The server closed the connection behind the last answer.
    pub(super) is_closed: bool,
    /// Bytes behind the last answer.
    pub(super) behind: usize,
}

impl Exchange {
    /// Sends a request to one side.
    ///
    /// # Errors
    ///
    /// When there is no connection. One that breaks off is an answer that is missing.
    pub(super) fn of(request: &Request, address: &Address) -> io::Result<Self> {
        let stream = address.connect()?;
        let mut reader = Reader::new(&stream);
        let mut exchange = Self {
            answers: Vec::new(),
            missing: None,
            is_closed: false,
            behind: 0,
        };
        if let Err(error) = exchange.fill(request, &stream, &mut reader) {
            exchange.missing = Some(error.to_string());
            exchange.is_closed = true;
        }
        Ok(exchange)
    }

    fn fill(
        &mut self,
        request: &Request,
        mut stream: &std::net::TcpStream,
        reader: &mut Reader<'_>,
    ) -> io::Result<()> {
        stream.write_all(&request.head)?;
        if request.expects {
            reader.is_told_to_go_on(CONTINUE_LIMIT)?;
        }
        // A server may answer and close before it has read a large body; what it said is still there to be read.
        let written = stream.write_all(&request.body);
        let sent = Instant::now();
        for &is_head in &request.answers {
            match reader.answer(is_head, sent) {
                Ok(answer) => self.answers.push(answer),
                Err(error) => return Err(written.err().unwrap_or(error)),
            }
        }
        let patience = if request.closes { CLOSE_LIMIT } else { WATCHED };
        (self.is_closed, self.behind) = reader.rest(patience)?;
        Ok(())
    }
}
