//! A task that polls two parties which wake each other: a connection and the answer that it delivers. Both would wake
//! the task that polls them at this very moment, and each event would cost one more round of everything above. A
//! [`Turn`] catches what is woken during its turn, and passes on what is woken later.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// Rounds of one turn. More would keep other streams waiting.
const MOST_ROUNDS: usize = 4;

/// Nobody polls.
const AWAY: u8 = 0;
/// Somebody polls, and nothing has changed since.
const POLLING: u8 = 1;
/// Somebody polls, and must look again.
const WOKEN: u8 = 2;

/// What stands between the parties and the task.
pub(super) struct Turn {
    bell: Arc<Bell>,
    waker: Waker,
}

/// What the task shares with the sockets that it waits for, in one place: it is cold memory for each event.
pub(super) struct Bell {
    state: AtomicU8,
    /// Reads that brought bytes.
    reads: AtomicU64,
    task: Mutex<Waker>,
}

impl Turn {
    pub(super) fn new() -> Self {
        let bell = Arc::new(Bell {
            state: AtomicU8::new(AWAY),
            reads: AtomicU64::new(0),
            task: Mutex::new(Waker::noop().clone()),
        });
        let waker = Waker::from(Arc::clone(&bell));
        Self { bell, waker }
    }

    /// For the socket.
    pub(super) fn bell(&self) -> Arc<Bell> {
        Arc::clone(&self.bell)
    }

    /// Number of reads that brought bytes.
    pub(super) fn reads(&self) -> u64 {
        self.bell.reads.load(Ordering::Relaxed)
    }

    /// Polls until there is a result, or nothing more to do for now. `ask` looks for the result, and says by that to the
    /// other party that it is wanted; `drive` lets the other party work. Asked first, a party that has worked is not woken
    /// to work once more.
    pub(super) fn poll<P, T>(
        &mut self,
        context: &mut Context<'_>,
        parties: &mut P,
        ask: impl Fn(&mut P, &mut Context<'_>) -> Poll<T>,
        drive: impl Fn(&mut P, &mut Context<'_>),
    ) -> Poll<T> {
        self.bell.task().clone_from(context.waker());
        let mut inner = Context::from_waker(&self.waker);
        for _ in 0..MOST_ROUNDS {
            self.bell.state.store(POLLING, Ordering::Release);
            let mut polled = ask(parties, &mut inner);
            if polled.is_pending() {
                // Whoever was woken so far is driven and asked now.
                self.bell.state.store(POLLING, Ordering::Release);
                drive(parties, &mut inner);
                polled = ask(parties, &mut inner);
            }
            let state = self.bell.state.swap(AWAY, Ordering::AcqRel);
            if polled.is_ready() || state != WOKEN {
                return polled;
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Bell {
    /// Bytes were read.
    pub(super) fn note_read(&self) {
        self.reads.fetch_add(1, Ordering::Relaxed);
    }

    fn task(&self) -> MutexGuard<'_, Waker> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let during =
            self.state
                .compare_exchange(POLLING, WOKEN, Ordering::AcqRel, Ordering::Acquire);
        if during == Err(AWAY) {
            self.task().wake_by_ref();
        }
    }
}
