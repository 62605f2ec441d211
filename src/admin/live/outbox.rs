//! An outbox: what waits for one subscriber, bounded. Whoever does not keep up loses all that waits, is told how much that
//! was, and gets the whole state anew, so that what they show is right again.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use axum::body::Bytes;
use http_body::Frame;
use serde_json::json;

/// Messages that may wait: about a dozen seconds.
const MOST_MESSAGES: usize = 64;

/// Bytes that may wait; a single message may be larger.
const MOST_BYTES: usize = 4 << 20;

/// One or more server-sent events. Clones share the text.
#[derive(Clone, Debug)]
pub(super) struct Message {
    text: Bytes,
    /// Finished exchanges that it tells of.
    exchanges: u64,
}

impl Message {
    /// An event of this name; `data` is JSON, so it has no line breaks.
    pub(super) fn new(event: &str, data: &str, exchanges: u64) -> Self {
        Self {
            text: format!("event: {event}\ndata: {data}\n\n").into(),
            exchanges,
        }
    }
}

/// What was lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Lost {
    pub(super) messages: u64,
    pub(super) exchanges: u64,
}

impl std::ops::AddAssign for Lost {
    fn add_assign(&mut self, other: Self) {
        self.messages += other.messages;
        self.exchanges += other.exchanges;
    }
}

#[derive(Debug, Default)]
pub(super) struct Outbox(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    messages: VecDeque<Message>,
    bytes: usize,
    /// Since the subscriber came.
    lost: Lost,
    /// Nothing more comes.
    is_ended: bool,
    /// The subscriber has left.
    is_left: bool,
    reader: Option<Waker>,
}

impl Outbox {
    /// Puts a message behind those that wait. Where there is no room all of them go, and `state` is what the subscriber
    /// gets in their place. Tells what was lost.
    pub(super) fn push(&self, message: &Message, state: impl FnOnce() -> Message) -> Lost {
        let mut waiting = self.lock();
        if waiting.is_left || waiting.is_ended {
            return Lost::default();
        }
        let is_full = waiting.messages.len() >= MOST_MESSAGES
            || (!waiting.messages.is_empty() && waiting.bytes + message.text.len() > MOST_BYTES);
        if !is_full {
            waiting.put(message.clone());
            return Lost::default();
        }
        let gone = std::mem::take(&mut waiting.messages);
        waiting.bytes = 0;
        let lost = Lost {
            messages: gone.len() as u64 + 1,
            exchanges: gone.iter().map(|it| it.exchanges).sum::<u64>() + message.exchanges,
        };
        waiting.lost += lost;
        let told = json!({"events": waiting.lost.messages, "requests": waiting.lost.exchanges});
        waiting.put(Message::new("dropped", &told.to_string(), 0));
        waiting.put(state());
        lost
    }

    /// Puts a comment, which clients pass over, where nothing waits.
    pub(super) fn beat(&self) {
        let mut waiting = self.lock();
        if waiting.messages.is_empty() && !waiting.is_left && !waiting.is_ended {
            waiting.put(Message {
                text: Bytes::from_static(b":\n\n"),
                exchanges: 0,
            });
        }
    }

    /// The last message.
    pub(super) fn end(&self, message: Message) {
        let mut waiting = self.lock();
        waiting.put(message);
        waiting.is_ended = true;
    }

    /// Whether the subscriber has left.
    pub(super) fn is_left(&self) -> bool {
        self.lock().is_left
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn put(&mut self, message: Message) {
        self.bytes += message.text.len();
        self.messages.push_back(message);
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}

/// The subscriber's side: the body of the answer.
#[derive(Debug)]
pub(super) struct Subscription(pub(super) Arc<Outbox>);

impl http_body::Body for Subscription {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let mut waiting = self.0.lock();
        if let Some(message) = waiting.messages.pop_front() {
            waiting.bytes -= message.text.len();
            return Poll::Ready(Some(Ok(Frame::data(message.text))));
        }
        if waiting.is_ended {
            return Poll::Ready(None);
        }
        waiting.reader = Some(context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut waiting = self.0.lock();
        waiting.is_left = true;
        waiting.messages = VecDeque::new();
        waiting.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    async fn all(mut subscription: Subscription) -> Vec<String> {
        subscription.0.end(Message::new("end", "{}", 0));
        let mut texts = Vec::new();
        while let Some(Ok(frame)) = subscription.frame().await {
            let text = frame.into_data().unwrap();
            texts.push(String::from_utf8(text.to_vec()).unwrap());
        }
        texts
    }

    fn state() -> Message {
        Message::new("snapshot", "{\"whole\":1}", 0)
    }

    #[tokio::test]
    async fn messages_come_in_order_and_the_end_after_them() {
        let subscription = Subscription(Arc::default());
        for number in 0..MOST_MESSAGES {
            let lost = subscription
                .0
                .push(&Message::new("delta", &number.to_string(), 0), state);
            assert_eq!(lost, Lost::default());
        }
        let texts = all(subscription).await;
        assert_eq!(texts.len(), MOST_MESSAGES + 1);
        assert_eq!(texts[0], "event: delta\ndata: 0\n\n");
        assert_eq!(texts[63], "event: delta\ndata: 63\n\n");
        assert_eq!(texts[64], "event: end\ndata: {}\n\n");
    }

    #[tokio::test]
    async fn without_room_all_that_waits_goes_and_the_whole_state_comes() {
        let subscription = Subscription(Arc::default());
        let mut lost = Lost::default();
        for _ in 0..2 * MOST_MESSAGES + 10 {
            lost += subscription
                .0
                .push(&Message::new("requests", "[]", 3), state);
        }
        // 65 go at once, then the same again with the two that took their place.
        let (messages, exchanges) = (65 + 65, 3 * (65 + 63));
        assert_eq!(
            lost,
            Lost {
                messages,
                exchanges
            }
        );
        let texts = all(subscription).await;
        assert_eq!(
            texts[0],
            "event: dropped\ndata: {\"events\":130,\"requests\":384}\n\n"
        );
        assert_eq!(texts[1], "event: snapshot\ndata: {\"whole\":1}\n\n");
        assert_eq!(texts.len(), 2 + 10 + 1);
    }

    #[tokio::test]
    async fn a_sign_of_life_is_given_only_where_nothing_waits() {
        let subscription = Subscription(Arc::default());
        subscription.0.beat();
        subscription.0.beat();
        subscription.0.push(&Message::new("delta", "1", 0), state);
        subscription.0.beat();
        let texts = all(subscription).await;
        assert_eq!(
            texts,
            [
                ":\n\n",
                "event: delta\ndata: 1\n\n",
                "event: end\ndata: {}\n\n"
            ]
        );
    }

    #[test]
    fn bytes_are_bounded_and_a_subscriber_who_left_gets_none() {
        let subscription = Subscription(Arc::default());
        let outbox = Arc::clone(&subscription.0);
        let large = Message::new("delta", &"x".repeat(MOST_BYTES / 3), 0);
        let lost: Vec<u64> = (0..4)
            .map(|_| outbox.push(&large, state).messages)
            .collect();
        assert_eq!(lost, [0, 0, 3, 0]);
        let huge = Message::new("delta", &"x".repeat(2 * MOST_BYTES), 0);
        assert_eq!(Outbox::default().push(&huge, state), Lost::default());
        drop(subscription);
        assert!(outbox.is_left());
        assert_eq!(outbox.push(&large, state), Lost::default());
        assert_eq!(outbox.lock().bytes, 0);
    }
}
