//! HTTP/2 connections to the server: few of them, each with many requests at the same time.
//!
//! A window of its own keeps each slow client to itself: a connection's window holds those of all its streams, so that
//! no number of clients that do not read keeps the others waiting.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{self, HeaderMap};
use http::uri::{Authority, Scheme};
use http::{Request, Response, Uri, Version};
use http_body::{Body, Frame};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use prometheus::IntGaugeVec;
use tokio::sync::Notify;

use super::client::LARGEST_HEAD;
use super::connection::SendFailure;
use super::dial::dial;
use super::headers::{Field, end_to_end};
use super::pool::Counted;
use super::refusal::{Refusal, http2_error};
use super::request_body::RequestBody;
use super::upstream::Upstream;
use crate::tap::ConnectionMemory;

/// Most requests at the same time on one connection; a server may allow fewer.
const MOST_STREAMS: usize = 64;

/// What a server may send on one stream before the client has read it, in bytes.
const STREAM_WINDOW: u32 = 256 << 10;

/// What it may send on one connection: as much as all streams together.
const CONNECTION_WINDOW: u32 = STREAM_WINDOW * MOST_STREAMS as u32;

/// The open connections to one server.
pub(super) struct Carriers {
    open: Mutex<Vec<Arc<Carrier>>>,
    /// Locked while a connection is opened: those who want one at the same time share it, or why there is none.
    opening: tokio::sync::Mutex<Option<(Instant, Refusal)>>,
    parked: Arc<Notify>,
    connections: IntGaugeVec,
}

/// One connection.
struct Carrier {
    sender: SendRequest<RequestBody>,
    /// How many streams the server allows.
    allowed: Arc<AtomicUsize>,
    load: Mutex<Load>,
    /// What ended it, for the first who asks.
    end: Arc<Mutex<Option<hyper::Error>>>,
    memory: ConnectionMemory,
    parked: Arc<Notify>,
    connections: IntGaugeVec,
}

struct Load {
    streams: usize,
    idle_since: Instant,
    _counted: Counted,
}

/// One request on its connection. Dropped before the answer has ended, it is reset.
pub(super) struct Stream {
    carrier: Arc<Carrier>,
    scheme: Scheme,
    authority: Option<Authority>,
    frames: u64,
}

impl Carriers {
    /// `parked` is told when a connection has become idle.
    pub(super) fn new(parked: Arc<Notify>, connections: IntGaugeVec) -> Self {
        Self {
            open: Mutex::default(),
            opening: tokio::sync::Mutex::default(),
            parked,
            connections,
        }
    }

    /// Room for one request: on a connection that is open, and then the second is true, else on a new one.
    pub(super) async fn stream(
        &self,
        upstream: &Upstream,
    ) -> Result<(Stream, bool, Duration), Refusal> {
        if let Some(stream) = self.on_open(upstream) {
            return Ok((stream, true, Duration::ZERO));
        }
        let asked = Instant::now();
        let mut failed = self.opening.lock().await;
        if let Some(stream) = self.on_open(upstream) {
            return Ok((stream, true, Duration::ZERO));
        }
        if let Some((at, refusal)) = &*failed
            && *at >= asked
        {
            return Err(refusal.clone());
        }
        let opened = self.on_new(upstream).await;
        if let Err(refusal) = &opened {
            *failed = Some((Instant::now(), refusal.clone()));
        }
        opened.map(|(stream, time)| (stream, false, time))
    }

    /// Room on a new connection.
    pub(super) async fn on_new(&self, upstream: &Upstream) -> Result<(Stream, Duration), Refusal> {
        let begun = Instant::now();
        let carrier = Arc::new(self.open(upstream).await?);
        let stream = Carrier::begin(&carrier, upstream);
        self.list().push(carrier);
        let stream = stream.ok_or_else(|| Refusal::Closed(upstream.address().to_string()))?;
        Ok((stream, begun.elapsed()))
    }

    fn on_open(&self, upstream: &Upstream) -> Option<Stream> {
        let mut open = self.list();
        open.retain(|carrier| !carrier.sender.is_closed());
        open.iter()
            .find_map(|carrier| Carrier::begin(carrier, upstream))
    }

    fn list(&self) -> MutexGuard<'_, Vec<Arc<Carrier>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn open(&self, upstream: &Upstream) -> Result<Carrier, Refusal> {
        let address = || upstream.address().to_string();
        let socket = dial(upstream).await?;
        if upstream.secure().is_some() && !socket.agreed_on_http2() {
            return Err(Refusal::NotHttp2(
                address(),
                "TLS did not agree on it".to_owned(),
            ));
        }
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .initial_max_send_streams(MOST_STREAMS)
            .max_header_list_size(LARGEST_HEAD as u32)
            .handshake(TokioIo::new(socket))
            .await
            .map_err(|error| Refusal::NotHttp2(address(), error.to_string()))?;
        let allowed = Arc::new(AtomicUsize::new(MOST_STREAMS));
        let told = Arc::clone(&allowed);
        let end = Arc::<Mutex<Option<hyper::Error>>>::default();
        let ended = Arc::clone(&end);
        tokio::spawn(async move {
            let mut connection = connection;
            let result = poll_fn(|context| {
                let polled = Pin::new(&mut connection).poll(context);
                told.store(connection.current_max_send_streams(), Ordering::Relaxed);
                polled
            })
            .await;
            // Before those who wait hear that it is gone, which its drop tells them.
            *ended.lock().unwrap_or_else(PoisonError::into_inner) = result.err();
            drop(connection);
        });
        Ok(Carrier {
            sender,
            allowed,
            load: Mutex::new(Load {
                streams: 0,
                idle_since: Instant::now(),
                _counted: Counted::begin(&self.connections.with_label_values(&["idle"])),
            }),
            end,
            memory: ConnectionMemory::default(),
            parked: Arc::clone(&self.parked),
            connections: self.connections.clone(),
        })
    }

    /// Lets go of what has been idle too long, or was closed by the server; returns when the next one will be.
    pub(super) fn close_expired(&self, limit: Duration) -> Option<Instant> {
        let mut next = None;
        self.list().retain(|carrier| {
            let load = carrier.load();
            if carrier.sender.is_closed() {
                return false;
            }
            if load.streams > 0 {
                return true;
            }
            let until = load.idle_since + limit;
            if until <= Instant::now() {
                return false;
            }
            next = Some(next.map_or(until, |next: Instant| next.min(until)));
            true
        });
        next
    }
}

impl Carrier {
    fn load(&self) -> MutexGuard<'_, Load> {
        self.load.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self) -> MutexGuard<'_, Option<hyper::Error>> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more request, if there is room for it.
    fn begin(carrier: &Arc<Self>, upstream: &Upstream) -> Option<Stream> {
        let most = MOST_STREAMS.min(carrier.allowed.load(Ordering::Relaxed));
        let mut load = carrier.load();
        if carrier.sender.is_closed() || load.streams >= most {
            return None;
        }
        load.streams += 1;
        if load.streams == 1 {
            load._counted = Counted::begin(&carrier.connections.with_label_values(&["active"]));
        }
        let is_tls = upstream.secure().is_some();
        Some(Stream {
            carrier: Arc::clone(carrier),
            scheme: if is_tls { Scheme::HTTPS } else { Scheme::HTTP },
            authority: upstream.address().authority(),
            frames: 0,
        })
    }
}

impl Stream {
    /// What the tap remembers of the connection.
    pub(super) fn memory(&self) -> &ConnectionMemory {
        &self.carrier.memory
    }

    /// Frames so far.
    pub(super) fn frames(&self) -> u64 {
        self.frames
    }

    /// Sends a request and waits for the response's head.
    pub(super) async fn send(
        &mut self,
        request: Request<RequestBody>,
    ) -> Result<Response<Incoming>, SendFailure> {
        let request = self.as_http2(request);
        let mut sender = self.carrier.sender.clone();
        sender
            .try_send_request(request)
            .await
            .map_err(|mut failure| {
                let unsent = failure.take_message();
                let error = failure.into_error();
                let error = match http2_error(&error) {
                    Some(_) => error,
                    // It only says that the connection is gone.
                    None => self.carrier.end().take().unwrap_or(error),
                };
                SendFailure {
                    unsent,
                    answered: was_taken_up(&error),
                    error,
                }
            })
    }

    /// The next frame of the answer.
    pub(super) fn poll_frame(
        &mut self,
        answer: &mut Incoming,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(answer).poll_frame(context));
        self.frames += 1;
        Poll::Ready(frame)
    }

    /// The request in the terms of HTTP/2 (RFC 9113 section 8.3.1): `Host` moves into the target, and what frames a
    /// message of HTTP/1.1 is left out.
    fn as_http2(&self, request: Request<RequestBody>) -> Request<RequestBody> {
        if request.version() == Version::HTTP_2 {
            // It has been here before, and comes for its second try.
            return request;
        }
        let (mut parts, body) = request.into_parts();
        let named = parts.headers.get(header::HOST);
        let named = named.and_then(|host| Authority::try_from(host.as_bytes()).ok());
        let mut target = http::uri::Parts::default();
        target.scheme = Some(self.scheme.clone());
        target.authority = named.or_else(|| self.authority.clone());
        target.path_and_query = parts.uri.path_and_query().cloned();
        if let Ok(uri) = Uri::from_parts(target) {
            parts.uri = uri;
            parts.version = Version::HTTP_2;
        }
        parts.headers = fields_of_http2(parts.headers);
        Request::from_parts(parts, body)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let mut load = self.carrier.load();
        load.streams -= 1;
        if load.streams == 0 {
            load.idle_since = Instant::now();
            load._counted = Counted::begin(&self.carrier.connections.with_label_values(&["idle"]));
            self.carrier.parked.notify_one();
        }
    }
}

fn fields_of_http2(headers: HeaderMap) -> HeaderMap {
    end_to_end(headers, false, |name, _| match *name {
        header::HOST | header::TRANSFER_ENCODING => Field::Drop,
        _ => Field::Keep,
    })
}

/// Whether the server may have begun with a request that failed. It has not when it says so, by a refusal or by a
/// farewell (RFC 9113 section 8.7); nor is there a sign of it when the connection broke before an answer.
fn was_taken_up(error: &hyper::Error) -> bool {
    http2_error(error).is_some_and(|error| {
        let is_refused = error.reason() == Some(h2::Reason::REFUSED_STREAM);
        let is_unheard = error.is_io() || (error.is_remote() && (error.is_go_away() || is_refused));
        !is_unheard
    })
}
