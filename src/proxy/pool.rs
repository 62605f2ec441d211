//! Connections to the one server behind the tap: a small pool of kept ones.
//!
//! hyper's own pool tells neither whether a connection was reused nor hands back a request that was never sent; both
//! decide whether a request may be sent again (RFC 9112 section 9.3.1).
//!
//! Nobody drives a connection while it is idle. It is asked once after each answer and once before it is used again,
//! which is when it learns that the server has closed it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use http_body::Frame;
use hyper::body::Incoming;
use prometheus::IntGauge;
use tokio::sync::Notify;

use super::address::UpstreamAddress;
use super::connection::{Connection, SendFailure};
use super::heard::HeardSocket;
use super::refusal::Refusal;
use super::request_body::RequestBody;
use super::socket::Socket;
use super::streams::{Carriers, Stream};
use super::upstream::Upstream;
use crate::counters::TapCounters;
use crate::tap::ConnectionMemory;

/// How long a connection is kept idle. Below uvicorn's 5 s, so that we close first and no request meets a dying socket.
const IDLE_LIMIT: Duration = Duration::from_secs(4);

/// How much sooner than the server's own limit, where it tells one.
const MARGIN: Duration = Duration::from_secs(1);

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");

/// Kept connections to one server.
pub(super) struct Pool {
    upstream: Upstream,
    idle: Mutex<Vec<Idle>>,
    parked: Arc<Notify>,
    /// How long a connection is kept idle, in milliseconds.
    idle_limit: AtomicU64,
    /// Gauges of connections in either state.
    idle_count: IntGauge,
    active_count: IntGauge,
    /// Where HTTP/2 is spoken: then nothing is idle above.
    carriers: Option<Carriers>,
}

struct Idle {
    connection: Box<Connection>,
    since: Instant,
    _counted: Counted,
}

impl Pool {
    /// A pool for `upstream`. Needs a running tokio runtime, for the task that closes idle connections.
    pub(super) fn new(upstream: Upstream, counters: &TapCounters) -> Arc<Self> {
        let connections = &counters.upstream_connections;
        // A gauge that nobody moved is shown as well.
        let [idle_count, active_count] =
            ["idle", "active"].map(|state| connections.with_label_values(&[state]));
        let parked = Arc::<Notify>::default();
        let carriers = upstream
            .is_http2()
            .then(|| Carriers::new(Arc::clone(&parked), connections.clone()));
        let pool = Arc::new(Self {
            upstream,
            idle: Mutex::default(),
            parked,
            idle_limit: AtomicU64::new(IDLE_LIMIT.as_millis() as u64),
            idle_count,
            active_count,
            carriers,
        });
        tokio::spawn(close_idle(Arc::downgrade(&pool), Arc::clone(&pool.parked)));
        pool
    }

    /// The server's address.
    pub(super) fn address(&self) -> &UpstreamAddress {
        self.upstream.address()
    }

    /// The server.
    pub(super) fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection for one request: the most recently used that is still good, else a new one.
    pub(super) async fn lease(self: &Arc<Self>) -> Result<Lease, Refusal> {
        if let Some(carriers) = &self.carriers {
            let (stream, reused, time) = carriers.stream(&self.upstream).await?;
            return Ok(Lease::shared(self, stream, reused, time));
        }
        match self.take_idle() {
            Some(connection) => Ok(Lease::new(self, connection, true, Duration::ZERO)),
            None => self.lease_new().await,
        }
    }

    /// A connection that no request has used.
    pub(super) async fn lease_new(self: &Arc<Self>) -> Result<Lease, Refusal> {
        if let Some(carriers) = &self.carriers {
            let (stream, time) = carriers.on_new(&self.upstream).await?;
            return Ok(Lease::shared(self, stream, false, time));
        }
        let (connection, time) = Connection::open(&self.upstream).await?;
        Ok(Lease::new(self, Box::new(connection), false, time))
    }

    fn idle_limit(&self) -> Duration {
        Duration::from_millis(self.idle_limit.load(Ordering::Relaxed))
    }

    /// Heeds how long the server says that it keeps connections.
    pub(super) fn heed(&self, answer: &HeaderMap) {
        let Some(kept) = answer.get(KEEP_ALIVE).and_then(kept_for) else {
            return;
        };
        let limit = kept.saturating_sub(MARGIN).min(IDLE_LIMIT);
        let limit_ms = limit.as_millis() as u64;
        if self.idle_limit.fetch_min(limit_ms, Ordering::Relaxed) > limit_ms {
            tracing::warn!(
                "{} closes idle connections after {kept:?}; they are kept for {limit:?} only from now on",
                self.address()
            );
        }
    }

    fn take_idle(&self) -> Option<Box<Connection>> {
        let mut idle = self.idle();
        loop {
            let Idle {
                mut connection,
                since,
                ..
            } = idle.pop()?;
            connection.catch_up();
            if since.elapsed() < self.idle_limit() && connection.is_ready() {
                return Some(connection);
            }
        }
    }

    fn park(&self, connection: Box<Connection>) {
        self.idle().push(Idle {
            connection,
            since: Instant::now(),
            _counted: Counted::begin(&self.idle_count),
        });
        self.parked.notify_one();
    }

    /// Closes what has been idle too long, or was closed by the server; returns when the next one will be.
    fn close_expired(&self) -> Option<Instant> {
        let limit = self.idle_limit();
        if let Some(carriers) = &self.carriers {
            return carriers.close_expired(limit);
        }
        let mut idle = self.idle();
        idle.retain_mut(|one| {
            one.connection.catch_up();
            one.since.elapsed() < limit && !one.connection.is_over()
        });
        idle.iter().map(|one| one.since + limit).min()
    }
}

/// The `timeout` of a `Keep-Alive` header (RFC 2068 section 19.7.1.1).
fn kept_for(value: &HeaderValue) -> Option<Duration> {
    let mut parameters = value.to_str().ok()?.split(',');
    let seconds = parameters.find_map(|one| one.trim().strip_prefix("timeout="))?;
    seconds.trim().parse().ok().map(Duration::from_secs)
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.parked.notify_one();
    }
}

async fn close_idle(pool: Weak<Pool>, parked: Arc<Notify>) {
    loop {
        let next = match pool.upgrade() {
            Some(pool) => pool.close_expired(),
            None => return,
        };
        match next {
            Some(at) => tokio::time::sleep_until(at.into()).await,
            None => parked.notified().await,
        }
    }
}

/// One connection in the hands of one request. Dropped before it is given back, it closes.
pub(super) struct Lease {
    pool: Arc<Pool>,
    link: Link,
    reused: bool,
    connect_time: Duration,
}

/// What carries one request.
enum Link {
    /// A connection of its own, in a box: it is large, and passes through many hands.
    Own(Box<Connection>, Counted),
    /// A stream of a connection that others use as well.
    Shared(Stream),
}

impl Lease {
    fn new(
        pool: &Arc<Pool>,
        connection: Box<Connection>,
        reused: bool,
        connect_time: Duration,
    ) -> Self {
        Self {
            pool: Arc::clone(pool),
            link: Link::Own(connection, Counted::begin(&pool.active_count)),
            reused,
            connect_time,
        }
    }

    fn shared(pool: &Arc<Pool>, stream: Stream, reused: bool, connect_time: Duration) -> Self {
        Self {
            pool: Arc::clone(pool),
            link: Link::Shared(stream),
            reused,
            connect_time,
        }
    }

    /// Whether an earlier request used this connection, so that it may turn out closed.
    pub(super) fn is_reused(&self) -> bool {
        self.reused
    }

    /// Time to open it; zero for a kept one.
    pub(super) fn connect_time(&self) -> Duration {
        self.connect_time
    }

    /// What the tap remembers of this connection.
    pub(super) fn memory(&self) -> &ConnectionMemory {
        match &self.link {
            Link::Own(connection, _) => connection.memory(),
            Link::Shared(stream) => stream.memory(),
        }
    }

    /// Sends a request and waits for the response's head.
    pub(super) async fn send(
        &mut self,
        request: Request<RequestBody>,
    ) -> Result<Response<Incoming>, SendFailure> {
        match &mut self.link {
            Link::Own(connection, _) => connection.send(request).await,
            // Rare, and larger: no room is kept for it in each request.
            Link::Shared(stream) => Box::pin(stream.send(request)).await,
        }
    }

    /// Takes the socket out, once the server has switched to another protocol, and what was read of that. It
    /// counts as active while the third of them lives. A stream has no socket of its own, and never switches.
    pub(super) async fn switched(self) -> Option<(HeardSocket<Socket>, Bytes, Counted)> {
        let Link::Own(connection, counted) = self.link else {
            return None;
        };
        let (socket, read_ahead) = connection.switched().await;
        Some((socket, read_ahead, counted))
    }

    /// The next frame of the answer that it delivers.
    pub(super) fn poll_frame(
        &mut self,
        answer: &mut Incoming,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match &mut self.link {
            Link::Own(connection, _) => connection.poll_frame(answer, context),
            Link::Shared(stream) => stream.poll_frame(answer, context),
        }
    }

    /// Number that rises when something of the answer was read.
    pub(super) fn reads(&self) -> u64 {
        match &self.link {
            Link::Own(connection, _) => connection.reads(),
            Link::Shared(stream) => stream.frames(),
        }
    }

    /// The response was read to its end: the connection may serve another request.
    pub(super) fn give_back(self) {
        let Link::Own(mut connection, counted) = self.link else {
            return;
        };
        connection.catch_up();
        if connection.is_ready() {
            self.pool.park(connection);
        } else if !connection.is_over() {
            // A request whose body is not yet sent may take longer than its answer.
            let pool = self.pool;
            tokio::spawn(async move {
                let _counted = counted;
                connection.settle().await;
                if connection.is_ready() {
                    pool.park(connection);
                }
            });
        }
    }
}

/// Counts a connection in its state for as long as it lives. All lanes share the gauges, so that none may set them.
pub(super) struct Counted(IntGauge);

impl Counted {
    pub(super) fn begin(gauge: &IntGauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dec();
    }
}
