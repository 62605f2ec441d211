//! Room for the fields of a request's head.
//!
//! hyper makes room for the most fields that a head may have, anew for each head. The room for a hundred lies on the stack and
//! costs nothing; that for two thousand costs a seventh of a short exchange. So a connection begins with the small room. A head
//! that could outgrow it is noticed before hyper sees its end: the socket counts lines, and holds back what goes beyond.
//! hyper's connection, which waits for more of the head, is then taken apart, and one with the large room goes on with
//! the same bytes.
//!
//! Two facts about hyper make the count exact. It arms its timer when it begins to read a head, and drops it when the head is
//! whole ([`HeadTimer`]). And outside a head it reads only when its buffer is empty, so that all that it has when a head
//! begins came with the last read.
//!
//! The timer is one per connection, set anew only when it goes off: most heads come long before it does.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes, BytesMut};
use hyper::rt::{Sleep, Timer};
use tokio::io::{AsyncRead, ReadBuf};

use super::outlet::Outlet;
use super::socket::writes_to_inner;

/// Most lines that hyper may hold while its room is small. It has room for a hundred fields, and a head has two lines
/// more than fields.
const MOST_LINES: usize = 100;

/// How far hyper is with a request's head. Part of the [`Outlet`], which is at hand wherever this is asked.
#[derive(Default)]
pub(super) struct HeadPhase {
    is_reading: AtomicBool,
    is_held: AtomicBool,
    is_unflushed: AtomicBool,
    is_late: AtomicBool,
    /// When the head that is being read is late.
    limit: Mutex<Option<Instant>>,
}

impl HeadPhase {
    /// Whether hyper is reading a head, or waits for one.
    pub(super) fn is_reading(&self) -> bool {
        self.is_reading.load(Ordering::Relaxed)
    }

    /// Before hyper is polled: whether it still waits for more of a head shows anew.
    pub(super) fn begin_poll(&self) {
        self.is_held.store(false, Ordering::Relaxed);
    }

    /// Whether hyper waits for the rest of a head that may have more fields than it has room for, and has nothing else to do.
    pub(super) fn wants_room(&self) -> bool {
        self.is_reading()
            && self.is_held.load(Ordering::Relaxed)
            && !self.is_unflushed.load(Ordering::Relaxed)
    }

    /// The head's limit, or `None` if it has passed: hyper learns of it when it is polled next.
    pub(super) fn limit_at(&self, now: Instant) -> Option<Instant> {
        let limit = *self.limit.lock().unwrap_or_else(PoisonError::into_inner);
        let ahead = limit.filter(|limit| now < *limit);
        self.is_late.store(ahead.is_none(), Ordering::Relaxed);
        ahead
    }

    /// Whether hyper has written something and not yet seen all of it leave.
    pub(super) fn note_unflushed(&self, is_unflushed: bool) {
        self.is_unflushed.store(is_unflushed, Ordering::Relaxed);
    }

    fn begin(&self, limit: Instant) {
        *self.limit.lock().unwrap_or_else(PoisonError::into_inner) = Some(limit);
        self.is_late.store(false, Ordering::Relaxed);
        self.is_reading.store(true, Ordering::Relaxed);
    }

    fn end(&self) {
        self.is_reading.store(false, Ordering::Relaxed);
    }
}

/// The timer that hyper arms for each head.
pub(super) struct HeadTimer(pub(super) Arc<Outlet>);

/// hyper's wait for a head. Whoever polls the connection keeps the time.
struct HeadWait(Arc<Outlet>);

impl Timer for HeadTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(self.now() + duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        self.0.head().begin(deadline);
        Box::pin(HeadWait(Arc::clone(&self.0)))
    }

    fn reset(&self, _: &mut Pin<Box<dyn Sleep>>, deadline: Instant) {
        self.0.head().begin(deadline);
    }
}

impl Sleep for HeadWait {}

impl Future for HeadWait {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if self.0.head().is_late.load(Ordering::Relaxed) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

impl Drop for HeadWait {
    fn drop(&mut self) {
        self.0.head().end();
    }
}

/// A client's socket that gives hyper no more lines of a head than it has room for.
pub(super) struct HeadSocket<S> {
    inner: S,
    outlet: Arc<Outlet>,
    /// Lines that may be in hyper's buffer.
    lines: usize,
    /// Read, and not yet given to hyper.
    held: Bytes,
    has_room: bool,
}

impl<S> HeadSocket<S> {
    pub(super) fn new(inner: S, outlet: Arc<Outlet>) -> Self {
        Self {
            inner,
            outlet,
            lines: 0,
            held: Bytes::new(),
            has_room: false,
        }
    }

    /// The same socket for a reader that has room for everything. `unread`: what the last reader had and made nothing of.
    pub(super) fn with_room(mut self, unread: &Bytes) -> Self {
        if !unread.is_empty() {
            let mut front = BytesMut::with_capacity(unread.len() + self.held.len());
            front.extend_from_slice(unread);
            front.extend_from_slice(&self.held);
            self.held = front.freeze();
        }
        self.has_room = true;
        self
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for HeadSocket<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if !this.outlet.head().is_reading() {
            this.lines = 0;
        }
        if this.held.is_empty() {
            let before = buffer.filled().len();
            ready!(Pin::new(&mut this.inner).poll_read(context, buffer))?;
            if this.has_room {
                return Poll::Ready(Ok(()));
            }
            let read = &buffer.filled()[before..];
            let fitting = fitting(read, &mut this.lines);
            if fitting == read.len() {
                return Poll::Ready(Ok(()));
            }
            this.held = Bytes::copy_from_slice(&read[fitting..]);
            buffer.set_filled(before + fitting);
            if fitting > 0 {
                return Poll::Ready(Ok(()));
            }
        } else {
            let offered = &this.held[..this.held.len().min(buffer.remaining())];
            let fitting = if this.has_room {
                offered.len()
            } else {
                fitting(offered, &mut this.lines)
            };
            if fitting > 0 {
                buffer.put_slice(&offered[..fitting]);
                this.held.advance(fitting);
                return Poll::Ready(Ok(()));
            }
        }
        // Nothing wakes hyper. Whoever polls the connection takes it apart, or polls it again once it has flushed.
        this.outlet.head().is_held.store(true, Ordering::Relaxed);
        Poll::Pending
    }
}

/// Bytes up to the line that is too many. Those before are counted.
fn fitting(bytes: &[u8], lines: &mut usize) -> usize {
    for at in memchr::memchr_iter(b'\n', bytes) {
        if *lines == MOST_LINES {
            return at;
        }
        *lines += 1;
    }
    bytes.len()
}

writes_to_inner!(HeadSocket);
