//! A reply that is read whole before its head goes on, because something must be cut out of it: the one exception to
//! "never collected", and only when the user asked for it.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use http_body::Frame;
use http_body_util::BodyExt;

use super::reply::Reply;
use super::timeouts::BrokenOff;
use crate::tap;

/// Largest reply that is held, in bytes.
const LARGEST_REPLY: usize = 8 << 20;

/// How the reading ended.
pub(super) enum Rest {
    /// More may come: the reply is too large to be held.
    Reading,
    /// All of it is here, and trailers if there were any.
    Ended(Option<Frame<Bytes>>),
    /// The server broke off.
    Broken(BrokenOff),
}

/// Reads a reply up to the limit; the tap sees it as it comes.
pub(super) async fn read_reply(
    body: &mut Reply,
    exchange: &mut tap::Exchange,
) -> (VecDeque<Bytes>, Rest) {
    let mut read = VecDeque::new();
    let mut length = 0;
    loop {
        let frame = match body.frame().await {
            None => return (read, Rest::Ended(None)),
            Some(Err(error)) => return (read, Rest::Broken(error)),
            Some(Ok(frame)) => frame,
        };
        match frame.into_data() {
            Ok(data) => {
                exchange.see(&data, None, body.read_at());
                length += data.len();
                read.push_back(data);
                if length > LARGEST_REPLY {
                    return (read, Rest::Reading);
                }
            }
            Err(trailers) => return (read, Rest::Ended(Some(trailers))),
        }
    }
}

/// The pieces as one.
pub(super) fn join(pieces: &VecDeque<Bytes>) -> Bytes {
    let mut whole = BytesMut::with_capacity(pieces.iter().map(Bytes::len).sum());
    for piece in pieces {
        whole.extend_from_slice(piece);
    }
    whole.freeze()
}
