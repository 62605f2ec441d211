//! One HTTP/1.1 connection to the server. No task of its own drives it: whoever waits for something from it does
//! ([`Connection::poll_frame`]), so that bytes on their way to a client pass through one task and no queue.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;

use super::client::LARGEST_HEAD;
use super::dial::dial;
use super::heard::HeardSocket;
use super::refusal::Refusal;
use super::request_body::RequestBody;
use super::socket::Socket;
use super::turn::Turn;
use super::upstream::Upstream;
use crate::tap::ConnectionMemory;

/// Most header fields of one answer. Engines send ten; the room for two thousand, made anew for each answer, would cost
/// more than all the rest of a short one.
const MOST_HEADERS: usize = 256;

/// How HTTP is spoken with the server.
pub(super) fn client() -> http1::Builder {
    let mut client = http1::Builder::new();
    client
        .preserve_header_case(true)
        .max_headers(MOST_HEADERS)
        .max_buf_size(LARGEST_HEAD);
    client
}

/// An open connection with what belongs to it.
pub(super) struct Connection {
    sender: SendRequest<RequestBody>,
    driver: Driver,
    turn: Turn,
    memory: ConnectionMemory,
}

/// hyper's end of a connection.
struct Driver {
    hyper: http1::Connection<TokioIo<HeardSocket<Socket>>, RequestBody>,
    over: bool,
}

/// Why a request got no response head.
pub(super) struct SendFailure {
    /// The request, if no byte of it was sent.
    pub(super) unsent: Option<Request<RequestBody>>,
    /// Whether the server had begun to answer: then it has taken the request up.
    pub(super) answered: bool,
    /// What hyper said.
    pub(super) error: hyper::Error,
}

impl Connection {
    /// Opens a connection, and tells how long that took.
    pub(super) async fn open(upstream: &Upstream) -> Result<(Self, Duration), Refusal> {
        let begun = Instant::now();
        let stream = dial(upstream).await?;
        let turn = Turn::new();
        let socket = TokioIo::new(HeardSocket::new(stream, turn.bell()));
        let (sender, driver) = client().handshake(socket).await.map_err(|error| {
            Refusal::ConnectFailed(upstream.address().to_string(), error.to_string())
        })?;
        let connection = Self {
            sender,
            driver: Driver {
                hyper: driver,
                over: false,
            },
            turn,
            memory: ConnectionMemory::default(),
        };
        Ok((connection, begun.elapsed()))
    }

    /// What the tap remembers of this connection.
    pub(super) fn memory(&self) -> &ConnectionMemory {
        &self.memory
    }

    /// Sends a request and waits for the response's head. Dropped before, the connection is of no more use.
    pub(super) async fn send(
        &mut self,
        request: Request<RequestBody>,
    ) -> Result<Response<Incoming>, SendFailure> {
        let before = self.turn.reads();
        let Self {
            sender,
            driver,
            turn,
            ..
        } = self;
        let mut response = pin!(sender.try_send_request(request));
        poll_fn(|context| {
            turn.poll(
                context,
                &mut (&mut *driver, response.as_mut()),
                |(_, response), context| response.as_mut().poll(context),
                |(driver, _), context| driver.poll(context),
            )
        })
        .await
        .map_err(|mut failure| SendFailure {
            unsent: failure.take_message(),
            answered: self.turn.reads() != before,
            error: failure.into_error(),
        })
    }

    /// The next frame of the answer that it delivers.
    pub(super) fn poll_frame(
        &mut self,
        answer: &mut Incoming,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Self { driver, turn, .. } = self;
        turn.poll(
            context,
            &mut (driver, answer),
            |(_, answer), context| Pin::new(&mut **answer).poll_frame(context),
            |(driver, _), context| driver.poll(context),
        )
    }

    /// Number of reads that brought bytes.
    pub(super) fn reads(&self) -> u64 {
        self.turn.reads()
    }

    /// Does what can be done at once, such as learning that the server has closed.
    pub(super) fn catch_up(&mut self) {
        self.driver.poll(&mut Context::from_waker(Waker::noop()));
    }

    /// Whether it waits for a request.
    pub(super) fn is_ready(&self) -> bool {
        !self.driver.over && self.sender.is_ready()
    }

    /// Whether it will never serve another request.
    pub(super) fn is_over(&self) -> bool {
        self.driver.over || self.sender.is_closed()
    }

    /// Takes the socket out, once the server has switched to another protocol, and what was read of that.
    pub(super) async fn switched(mut self) -> (HeardSocket<Socket>, Bytes) {
        poll_fn(|context| {
            self.driver.poll(context);
            if self.driver.over {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
        let parts = self.driver.hyper.into_parts();
        (parts.io.into_inner(), parts.read_buf)
    }

    /// Waits until it is ready or over.
    pub(super) async fn settle(&mut self) {
        poll_fn(|context| {
            self.driver.poll(context);
            self.sender.poll_ready(context).map(drop)
        })
        .await;
    }
}

impl Driver {
    /// Reads and writes what can be read and written.
    fn poll(&mut self, context: &mut Context<'_>) {
        // Its error shows at the request that uses the connection, or as the end of an idle one.
        self.over = self.over || Pin::new(&mut self.hyper).poll(context).is_ready();
    }
}
