//! The threads that serve clients. Each has a runtime of its own and its own connections to the servers, so that a byte
//! on its way through wakes no other thread; they share the listening sockets, and whichever is idle takes the next
//! client.

use std::io;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::exchange::Hop;
use super::limits::Door;
use super::listener::{Stopped, serve};
use super::pool::Pool;
use super::request_body::HoldBudget;
use super::timeouts::Timeouts;
use super::tls::PortTls;
use super::upstream::Upstream;
use crate::counters::TapCounters;
use crate::tap::Tap;

/// One listen address and the server behind it.
pub struct Lane {
    /// Bound and listening.
    pub listener: TcpListener,
    /// The server.
    pub upstream: Upstream,
    /// How TLS is spoken with clients, if at all.
    pub tls: Option<PortTls>,
    /// What watches the lane.
    pub tap: Tap,
    /// Whether an inference request may be sent again when a kept connection turns out closed.
    pub replay: bool,
    /// How long each side may take.
    pub timeouts: Timeouts,
    /// Most clients at the same time; more wait.
    pub most_clients: usize,
}

/// When workers stop.
#[derive(Clone, Default)]
pub struct Stop {
    /// No more clients; running exchanges may finish.
    pub drain: CancellationToken,
    /// Everything ends at once.
    pub cut: CancellationToken,
    /// How long a drain may take.
    pub grace: Duration,
}

/// Running workers.
pub struct Workers(Vec<oneshot::Receiver<Stopped>>);

/// A lane in the hands of one worker.
struct Share {
    listener: std::net::TcpListener,
    upstream: Upstream,
    tls: Option<PortTls>,
    tap: Tap,
    replay: bool,
    timeouts: Timeouts,
    seats: Arc<Semaphore>,
    held: HoldBudget,
}

impl Workers {
    /// Starts as many threads as `count` says, each of which serves all lanes.
    ///
    /// # Errors
    ///
    /// When the system gives no thread or no file descriptor.
    pub fn start(
        count: NonZeroUsize,
        lanes: Vec<Lane>,
        counters: &TapCounters,
        stop: &Stop,
    ) -> io::Result<Self> {
        let mut shares = Vec::new();
        for lane in lanes {
            shares.push(Share {
                listener: lane.listener.into_std()?,
                upstream: lane.upstream,
                tls: lane.tls,
                tap: lane.tap,
                replay: lane.replay,
                timeouts: lane.timeouts,
                seats: Arc::new(Semaphore::new(lane.most_clients)),
                held: HoldBudget::default(),
            });
        }
        let mut workers = Vec::new();
        for number in 0..count.get() {
            let shares: Vec<Share> = shares.iter().map(Share::again).collect::<io::Result<_>>()?;
            let runtime = Builder::new_current_thread().enable_all().build()?;
            let (counters, stop) = (counters.clone(), stop.clone());
            let (stopped, end) = oneshot::channel();
            std::thread::Builder::new()
                .name(format!("hop-{number}"))
                .spawn(move || {
                    // Nobody waits for the end of an instance that was dropped.
                    let _ = stopped.send(runtime.block_on(work(shares, counters, stop)));
                })?;
            workers.push(end);
        }
        Ok(Self(workers))
    }

    /// Waits until every worker has stopped.
    pub async fn stopped(self) -> Stopped {
        let mut worst = Stopped::Drained;
        for worker in self.0 {
            if worker.await != Ok(Stopped::Drained) {
                worst = Stopped::Cut;
            }
        }
        worst
    }
}

impl Share {
    fn again(&self) -> io::Result<Self> {
        Ok(Self {
            listener: self.listener.try_clone()?,
            upstream: self.upstream.clone(),
            tls: self.tls.clone(),
            tap: self.tap.clone(),
            replay: self.replay,
            timeouts: self.timeouts,
            seats: Arc::clone(&self.seats),
            held: self.held.clone(),
        })
    }
}

async fn work(shares: Vec<Share>, counters: TapCounters, stop: Stop) -> Stopped {
    let mut lanes = JoinSet::new();
    for share in shares {
        let listener = match TcpListener::from_std(share.listener) {
            Ok(listener) => listener,
            Err(error) => {
                tracing::error!(%error, "a listening socket can not be used");
                return Stopped::Cut;
            }
        };
        let pool = Pool::new(share.upstream, &counters);
        let hop = Arc::new(Hop::new(
            share.tap,
            pool,
            share.replay,
            share.timeouts,
            share.held,
            counters.clone(),
        ));
        let door = Door::new(share.seats, counters.clone());
        lanes.spawn(serve(listener, door, share.tls, hop, stop.clone()));
    }
    let mut worst = Stopped::Drained;
    while let Some(lane) = lanes.join_next().await {
        if lane.ok() != Some(Stopped::Drained) {
            worst = Stopped::Cut;
        }
    }
    worst
}
