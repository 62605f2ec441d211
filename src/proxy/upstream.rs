//! Connections to the one server behind the tap: a small pool of kept HTTP/1.1 connections.
//!
//! hyper's own pool tells neither whether a connection was reused nor hands back a request that was never sent; both
//! decide whether a request may be sent again (RFC 9112 section 9.3.1).

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use prometheus::{IntGauge, IntGaugeVec};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use super::heard::{Heard, HeardSocket};
use super::listener::{LARGEST_HEAD, MOST_HEADERS, prepare_socket};
use super::refusal::Refusal;
use super::request_body::RequestBody;
use crate::counters::TapCounters;
use crate::tap::ConnectionMemory;

/// How long a connection is kept idle. Below uvicorn's 5 s, so that we close first and no request meets a dying socket.
const IDLE_LIMIT: Duration = Duration::from_secs(4);

/// How long a connection may take to open.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// Where the server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamAddress {
    host: String,
    port: u16,
}

/// What is wrong with an upstream URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UpstreamAddressError {
    /// It can't be parsed at all.
    #[error("is not a URL; write it like http://127.0.0.1:8000")]
    NotUrl,
    /// Another scheme than `http`.
    #[error("has the scheme '{0}'; only http:// is served so far")]
    Scheme(String),
    /// A path, query or user name, which could not be kept.
    #[error(
        "has more than a host and a port; paths pass through as the client sends them, so write only http://HOST:PORT"
    )]
    MoreThanAuthority,
}

impl UpstreamAddress {
    /// Reads `http://HOST[:PORT]`.
    ///
    /// # Errors
    ///
    /// When it is anything else; the error says what would be right.
    pub fn parse(url: &str) -> Result<Self, UpstreamAddressError> {
        let uri: http::Uri = url.parse().map_err(|_| UpstreamAddressError::NotUrl)?;
        let scheme = uri.scheme_str().ok_or(UpstreamAddressError::NotUrl)?;
        if scheme != "http" {
            return Err(UpstreamAddressError::Scheme(scheme.to_owned()));
        }
        let authority = uri.authority().ok_or(UpstreamAddressError::NotUrl)?;
        if authority.as_str().contains('@') || uri.path() != "/" || uri.query().is_some() {
            return Err(UpstreamAddressError::MoreThanAuthority);
        }
        let port = match authority.port() {
            Some(port) => port
                .as_str()
                .parse()
                .map_err(|_| UpstreamAddressError::NotUrl)?,
            None if authority.as_str().ends_with(':') => return Err(UpstreamAddressError::NotUrl),
            None => 80,
        };
        let host = authority
            .host()
            .trim_start_matches('[')
            .trim_end_matches(']');
        if host.is_empty() || port == 0 {
            return Err(UpstreamAddressError::NotUrl);
        }
        Ok(Self {
            host: host.to_owned(),
            port,
        })
    }

    /// Host name or address, and port.
    pub fn host_and_port(&self) -> (&str, u16) {
        (&self.host, self.port)
    }
}

impl fmt::Display for UpstreamAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(formatter, "[{}]:{}", self.host, self.port)
        } else {
            write!(formatter, "{}:{}", self.host, self.port)
        }
    }
}

/// How HTTP is spoken with the server.
pub(super) fn client() -> http1::Builder {
    let mut client = http1::Builder::new();
    client
        .preserve_header_case(true)
        .max_headers(MOST_HEADERS)
        .max_buf_size(LARGEST_HEAD);
    client
}

/// Kept connections to one address.
pub struct Pool {
    address: UpstreamAddress,
    idle: Mutex<Vec<Idle>>,
    parked: Arc<Notify>,
    connections: IntGaugeVec,
}

/// An open connection with what belongs to it.
struct Connection {
    sender: SendRequest<RequestBody>,
    memory: ConnectionMemory,
    heard: Heard,
}

struct Idle {
    connection: Connection,
    since: Instant,
    _counted: Counted,
}

impl Pool {
    /// A pool for `address`. Needs a running tokio runtime, for the task that closes idle connections.
    pub fn new(address: UpstreamAddress, counters: &TapCounters) -> Arc<Self> {
        for state in ["idle", "active"] {
            // A gauge that nobody moved is shown as well.
            counters.upstream_connections.with_label_values(&[state]);
        }
        let pool = Arc::new(Self {
            address,
            idle: Mutex::default(),
            parked: Arc::default(),
            connections: counters.upstream_connections.clone(),
        });
        tokio::spawn(close_idle(Arc::downgrade(&pool), Arc::clone(&pool.parked)));
        pool
    }

    /// The server's address.
    pub fn address(&self) -> &UpstreamAddress {
        &self.address
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection for one request: the most recently used that is still good, else a new one.
    pub(super) async fn lease(self: &Arc<Self>) -> Result<Lease, Refusal> {
        match self.take_idle() {
            Some(idle) => Ok(Lease::new(self, idle.connection, true, Duration::ZERO)),
            None => self.lease_new().await,
        }
    }

    /// A connection that no request has used.
    pub(super) async fn lease_new(self: &Arc<Self>) -> Result<Lease, Refusal> {
        let begun = Instant::now();
        let connect = TcpStream::connect(self.address.host_and_port());
        let stream = match tokio::time::timeout(CONNECT_LIMIT, connect).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
                return Err(Refusal::ConnectRefused(self.address.to_string()));
            }
            Ok(Err(error)) => {
                return Err(Refusal::ConnectFailed(
                    self.address.to_string(),
                    error.to_string(),
                ));
            }
            Err(_) => return Err(Refusal::ConnectTimeout(self.address.to_string())),
        };
        prepare_socket(&stream);
        let heard = Heard::default();
        let socket = TokioIo::new(HeardSocket::new(stream, heard.clone()));
        let (sender, connection) = client()
            .handshake(socket)
            .await
            .map_err(|error| Refusal::ConnectFailed(self.address.to_string(), error.to_string()))?;
        tokio::spawn(async move {
            // Its end shows at the request that uses it, or as a closed idle connection.
            let _ = connection.await;
        });
        let connection = Connection {
            sender,
            memory: ConnectionMemory::default(),
            heard,
        };
        Ok(Lease::new(self, connection, false, begun.elapsed()))
    }

    fn take_idle(&self) -> Option<Idle> {
        let mut idle = self.idle();
        loop {
            match idle.pop() {
                Some(one)
                    if one.since.elapsed() < IDLE_LIMIT && one.connection.sender.is_ready() =>
                {
                    break Some(one);
                }
                Some(_) => {}
                None => break None,
            }
        }
    }

    fn park(&self, connection: Connection) {
        self.idle().push(Idle {
            connection,
            since: Instant::now(),
            _counted: Counted::begin(&self.connections, "idle"),
        });
        self.parked.notify_one();
    }

    /// Closes what has been idle too long; returns when the next one will be.
    fn close_expired(&self) -> Option<Instant> {
        let mut idle = self.idle();
        idle.retain(|one| one.since.elapsed() < IDLE_LIMIT && !one.connection.sender.is_closed());
        idle.iter().map(|one| one.since + IDLE_LIMIT).min()
    }
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
    connection: Connection,
    reused: bool,
    connect_time: Duration,
    _counted: Counted,
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

impl Lease {
    fn new(pool: &Arc<Pool>, connection: Connection, reused: bool, connect_time: Duration) -> Self {
        Self {
            pool: Arc::clone(pool),
            connection,
            reused,
            connect_time,
            _counted: Counted::begin(&pool.connections, "active"),
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
        &self.connection.memory
    }

    /// Sends a request and waits for the response's head. Dropping the future closes the connection.
    pub(super) async fn send(
        &mut self,
        request: Request<RequestBody>,
    ) -> Result<Response<Incoming>, SendFailure> {
        let Connection { sender, heard, .. } = &mut self.connection;
        heard.forget();
        sender
            .try_send_request(request)
            .await
            .map_err(|mut failure| SendFailure {
                unsent: failure.take_message(),
                answered: heard.anything(),
                error: failure.into_error(),
            })
    }

    /// The response was read to its end: the connection may serve another request.
    pub(super) fn give_back(mut self) {
        if self.connection.sender.is_ready() {
            self.pool.park(self.connection);
        } else if !self.connection.sender.is_closed() {
            // The connection's task has still to see the end; a request whose body is not yet sent may take longer.
            tokio::spawn(async move {
                if self.connection.sender.ready().await.is_ok() {
                    self.pool.park(self.connection);
                }
            });
        }
    }
}

/// Counts a connection in its state for as long as it lives. All lanes share the gauges, so that none may set them.
struct Counted(IntGauge);

impl Counted {
    fn begin(connections: &IntGaugeVec, state: &str) -> Self {
        let gauge = connections.with_label_values(&[state]);
        gauge.inc();
        Self(gauge)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dec();
    }
}
