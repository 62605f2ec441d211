//! The request's body on its way to the server: held whole, streamed, or streamed behind what was already read.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;

use crate::tap::BodyPasses;

/// Largest body that is held, in bytes.
pub(super) const LARGEST_HELD: usize = 16 << 20;

/// All held bodies of one listener together, in bytes.
pub(super) const LARGEST_HELD_TOGETHER: usize = 256 << 20;

/// The memory for held bodies, shared by all requests.
#[derive(Clone, Default)]
pub(super) struct HoldBudget(Arc<AtomicUsize>);

/// A share of the budget; given back when dropped.
pub(super) struct Hold {
    budget: HoldBudget,
    bytes: usize,
}

impl HoldBudget {
    pub(super) fn open(&self) -> Hold {
        Hold {
            budget: self.clone(),
            bytes: 0,
        }
    }
}

impl Hold {
    fn grow(&mut self, bytes: usize) -> bool {
        let before = self.budget.0.fetch_add(bytes, Ordering::Relaxed);
        self.bytes += bytes;
        before + bytes <= LARGEST_HELD_TOGETHER
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.budget.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// What came of the attempt to hold a body.
pub(super) enum Held {
    /// All of it, without trailers.
    Whole(Bytes),
    /// Too much of it, or it had trailers: what was read, and the rest.
    Passes(RequestBody, PassesBecause),
}

/// Why a body could not be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PassesBecause {
    TooLarge,
    BudgetSpent,
    Trailers,
}

impl From<PassesBecause> for BodyPasses {
    fn from(because: PassesBecause) -> Self {
        match because {
            PassesBecause::TooLarge | PassesBecause::Trailers => BodyPasses::TooLarge,
            PassesBecause::BudgetSpent => BodyPasses::Memory,
        }
    }
}

/// Reads a body into memory, up to the limits.
///
/// # Errors
///
/// When the client's body breaks off.
pub(super) async fn hold(mut incoming: Incoming, hold: &mut Hold) -> Result<Held, hyper::Error> {
    let announced = incoming.size_hint().lower();
    let mut read = VecDeque::new();
    let mut length = 0;
    let mut passes = (announced > LARGEST_HELD as u64).then_some(PassesBecause::TooLarge);
    while passes.is_none() {
        let Some(frame) = incoming.frame().await else {
            return Ok(Held::Whole(join(read, length)));
        };
        match frame?.into_data() {
            Ok(data) => {
                length += data.len();
                if length > LARGEST_HELD {
                    passes = Some(PassesBecause::TooLarge);
                } else if !hold.grow(data.len()) {
                    passes = Some(PassesBecause::BudgetSpent);
                }
                read.push_back(Frame::data(data));
            }
            Err(frame) => {
                passes = Some(PassesBecause::Trailers);
                read.push_back(frame);
            }
        }
    }
    let because = passes.unwrap_or(PassesBecause::TooLarge);
    let rest = Streamed {
        read,
        rest: incoming,
    };
    Ok(Held::Passes(RequestBody::Streamed(Box::new(rest)), because))
}

fn join(mut read: VecDeque<Frame<Bytes>>, length: usize) -> Bytes {
    if read.len() == 1
        && let Some(Ok(only)) = read.pop_front().map(Frame::into_data)
    {
        return only;
    }
    let mut whole = BytesMut::with_capacity(length);
    for data in read.into_iter().filter_map(|frame| frame.into_data().ok()) {
        whole.extend_from_slice(&data);
    }
    whole.freeze()
}

/// A body for the server.
pub(super) enum RequestBody {
    /// Held bytes, `None` once sent. An empty chunked body is not yet at its end before it was asked for, or hyper
    /// would take its framing away.
    Held { bytes: Option<Bytes>, chunked: bool },
    /// Frames already read, then the rest as it comes. In a box, since hyper keeps room for 32 requests with each
    /// connection.
    Streamed(Box<Streamed>),
}

pub(super) struct Streamed {
    read: VecDeque<Frame<Bytes>>,
    rest: Incoming,
}

impl RequestBody {
    pub(super) fn held(bytes: Bytes, chunked: bool) -> Self {
        RequestBody::Held {
            bytes: Some(bytes),
            chunked,
        }
    }

    pub(super) fn streamed(incoming: Incoming) -> Self {
        RequestBody::Streamed(Box::new(Streamed {
            read: VecDeque::new(),
            rest: incoming,
        }))
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match self.get_mut() {
            RequestBody::Held { bytes, .. } => {
                let frame = bytes.take().filter(|bytes| !bytes.is_empty());
                Poll::Ready(frame.map(|bytes| Ok(Frame::data(bytes))))
            }
            RequestBody::Streamed(body) => match body.read.pop_front() {
                Some(frame) => Poll::Ready(Some(Ok(frame))),
                None => Pin::new(&mut body.rest).poll_frame(context),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            RequestBody::Held { bytes: None, .. } => true,
            RequestBody::Held {
                bytes: Some(bytes),
                chunked,
            } => bytes.is_empty() && !chunked,
            RequestBody::Streamed(body) => body.read.is_empty() && body.rest.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            RequestBody::Held { chunked: true, .. } => SizeHint::default(),
            RequestBody::Held { bytes, .. } => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |b| b.len() as u64))
            }
            RequestBody::Streamed(body) if body.read.is_empty() => body.rest.size_hint(),
            RequestBody::Streamed(_) => SizeHint::default(),
        }
    }
}
