//! The life of a request, from the client's head to the server's answer. Read it from top to bottom.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderValue};
use http::uri::{Authority, PathAndQuery};
use http::{Method, Request, Response, StatusCode, Uri, Version, request, response};
use http_body_util::{Either, Full};
use hyper::body::{Body, Incoming};

use super::body::RelayBody;
use super::headers::{Field, end_to_end, join_cookies, only_chunked, wants_switch};
use super::held_reply::{Rest, join, read_reply};
use super::outlet::Outlet;
use super::pool::{Lease, Pool};
use super::refusal::Refusal;
use super::reply::Reply;
use super::request_body::{Held, Hold, HoldBudget, RequestBody, hold};
use super::timeouts::{BrokenOff, Late, Timeouts, Watch, within};
use super::tunnel::Tunnel;
use crate::counters::TapCounters;
use crate::tap::{self, Tap};

/// A kept connection that fails later than this after the request was written did not fail for being stale.
const STALE_WITHIN: Duration = Duration::from_secs(1);

/// The body of what a client gets: relayed, or spectap's own words.
pub(super) type Answer = Response<Either<RelayBody, Full<Bytes>>>;

/// One listener's way to its server.
pub(super) struct Hop {
    tap: Tap,
    pool: Arc<Pool>,
    /// Whether what is no idempotent method may be sent again.
    replay: bool,
    timeouts: Timeouts,
    held: HoldBudget,
    counters: TapCounters,
}

/// A request that is here, and nothing was done with it yet.
pub(super) struct Arrived {
    parts: request::Parts,
    incoming: Incoming,
    begun: Instant,
    exchange: Box<tap::Exchange>,
}

/// A request ready to be sent, as often as it may be.
pub(super) struct Outgoing {
    parts: request::Parts,
    /// The whole body where it is held: what is sent, and what the client sent.
    held: Option<HeldBody>,
    /// The body where it is not; gone after the first try.
    streamed: Option<RequestBody>,
    /// There is no body, so that nothing is gone after the first try.
    bodiless: bool,
    repeatable: bool,
    _hold: Hold,
}

struct HeldBody {
    sent: Bytes,
    original: Bytes,
}

impl Hop {
    /// A hop to the pool's server, watched by `tap`.
    pub(super) fn new(
        tap: Tap,
        pool: Arc<Pool>,
        replay: bool,
        timeouts: Timeouts,
        held: HoldBudget,
        counters: TapCounters,
    ) -> Self {
        Self {
            tap,
            pool,
            replay,
            timeouts,
            held,
            counters,
        }
    }

    /// How long each side may take.
    pub(super) fn timeouts(&self) -> &Timeouts {
        &self.timeouts
    }

    /// Notes that a request is here. hyper does not begin with a request whose client is already gone again; it counts
    /// all the same.
    pub(super) fn arrive(&self, request: Request<Incoming>) -> Arrived {
        let (parts, incoming) = request.into_parts();
        let begun = Instant::now();
        // In a box of its own: it is large, and passes through many hands.
        let exchange = Box::new(self.tap.arrive(&parts, begun));
        Arrived {
            parts,
            incoming,
            begun,
            exchange,
        }
    }

    /// Serves one request.
    pub(super) async fn exchange(&self, arrived: Arrived, outlet: Arc<Outlet>) -> Answer {
        let Arrived {
            parts,
            incoming,
            begun,
            mut exchange,
        } = arrived;
        match self.relay(parts, incoming, begun, &mut exchange).await {
            Ok((head, _, lease)) if head.status == StatusCode::SWITCHING_PROTOCOLS => {
                exchange.head(&head, lease.memory(), Instant::now());
                outlet.switch(Tunnel::new(lease, exchange));
                Response::from_parts(head, Either::Right(Full::default()))
            }
            Ok((head, body, lease)) => {
                let watch = Watch::new(&self.timeouts, begun, &self.counters);
                self.answer(head, body, lease, watch, exchange, outlet)
                    .await
            }
            Err(refusal) => {
                if refusal.is_upstream() {
                    self.counters
                        .upstream_errors
                        .with_label_values(&[refusal.kind()])
                        .inc();
                    self.pool.upstream().complain(&refusal);
                }
                refuse(&refusal, exchange)
            }
        }
    }

    async fn relay(
        &self,
        parts: request::Parts,
        incoming: Incoming,
        begun: Instant,
        exchange: &mut tap::Exchange,
    ) -> Result<(response::Parts, Incoming, Lease), Refusal> {
        let deadline = self.timeouts.total.map(|limit| begun + limit);
        let client_is_http10 = parts.version == Version::HTTP_10;
        // HTTP/2 leaves the connection to the others (RFC 9113 section 8.6).
        let switches = wants_switch(&parts) && !self.pool.upstream().is_http2();
        let outgoing = self.outgoing(parts, incoming, exchange);
        let outgoing = within(deadline, outgoing).await;
        let mut outgoing = outgoing.ok_or(Refusal::RequestTimeout)??;
        let (mut response, mut lease) = self.send(&mut outgoing, deadline, exchange).await?;
        if exchange.wants_replay(response.status()) {
            // The engine refused what we altered: the client's own bytes decide.
            let first = response.status();
            drop((response, lease));
            outgoing.restore();
            let replayed = self.send(&mut outgoing, deadline, exchange).await;
            exchange.replayed(
                first,
                replayed
                    .as_ref()
                    .ok()
                    .map(|(response, _)| response.status()),
            );
            (response, lease) = replayed?;
        }
        let (mut head, body) = response.into_parts();
        self.pool.heed(&head.headers);
        if head.status == StatusCode::SWITCHING_PROTOCOLS && !switches {
            let address = self.pool.address().to_string();
            return Err(Refusal::NotHttp(address, "unasked for".to_owned()));
        }
        head.headers = response_headers(&mut head, client_is_http10);
        Ok((head, body, lease))
    }

    /// The request as the server shall see it.
    async fn outgoing(
        &self,
        mut parts: request::Parts,
        incoming: Incoming,
        exchange: &mut tap::Exchange,
    ) -> Result<Outgoing, Refusal> {
        check_target(&parts)?;
        let chunked = match only_chunked(&parts.headers) {
            Some(false) => return Err(Refusal::TransferCoding),
            other => other == Some(true),
        };
        let wants_body = exchange.wants_body();
        let authority = parts.uri.authority().cloned();
        let switches = wants_switch(&parts);
        let received = std::mem::take(&mut parts.headers);
        let mut headers = end_to_end(received, switches, |name, _| {
            // A held body has been read whole, so that the expectation is already met.
            let met = wants_body && name == header::EXPECT;
            // A message with both is read by its transfer coding (RFC 9112 section 6.3).
            let doubled = chunked && name == header::CONTENT_LENGTH;
            if met || doubled || exchange.keeps_back(name) {
                Field::Drop
            } else {
                Field::Keep
            }
        });
        if let Some(authority) = authority
            && let Ok(host) = HeaderValue::from_str(host_and_port(&authority))
        {
            headers.insert(header::HOST, host);
        }
        if parts.version == Version::HTTP_2 {
            parts.version = Version::HTTP_11;
            join_cookies(&mut headers);
        }
        parts.uri = origin_form(&parts.uri)?;

        let bodiless = incoming.is_end_stream();
        let mut lot = self.held.open();
        let (held, streamed) = if wants_body {
            match hold(incoming, &mut lot)
                .await
                .map_err(|error| Refusal::of_request_body(&error))?
            {
                Held::Whole(original) => {
                    let sent = exchange
                        .body_held(&original)
                        .unwrap_or_else(|| original.clone());
                    if sent.len() != original.len() && headers.contains_key(header::CONTENT_LENGTH)
                    {
                        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(sent.len()));
                    }
                    (Some(HeldBody { sent, original }), None)
                }
                Held::Passes(body, because) => {
                    exchange.body_passes(because.into());
                    (None, Some(body))
                }
            }
        } else {
            (None, Some(RequestBody::streamed(incoming)))
        };
        parts.headers = headers;
        let repeatable = (self.replay && exchange.is_repeatable()) || parts.method.is_idempotent();
        Ok(Outgoing {
            parts,
            held,
            streamed,
            bodiless,
            repeatable,
            _hold: lot,
        })
    }

    /// The request as the server shall see it, of an exchange that nothing else is done with.
    #[cfg(feature = "fuzzing")]
    pub(super) async fn outgoing_for_fuzzing(
        &self,
        parts: request::Parts,
        incoming: Incoming,
    ) -> Result<Outgoing, Refusal> {
        let mut exchange = self.tap.arrive(&parts, Instant::now());
        self.outgoing(parts, incoming, &mut exchange).await
    }

    /// Gets a response's head by the deadline, if there is one.
    async fn send(
        &self,
        outgoing: &mut Outgoing,
        deadline: Option<Instant>,
        exchange: &mut tap::Exchange,
    ) -> Result<(Response<Incoming>, Lease), Refusal> {
        let sent = within(deadline, self.send_again(outgoing, exchange)).await;
        sent.unwrap_or_else(|| Err(self.late(Late::Total)))
    }

    fn late(&self, late: Late) -> Refusal {
        Refusal::Late(self.pool.address().to_string(), late)
    }

    /// Sends the request, once more on a new connection when a kept one turned out closed.
    async fn send_again(
        &self,
        outgoing: &mut Outgoing,
        exchange: &mut tap::Exchange,
    ) -> Result<(Response<Incoming>, Lease), Refusal> {
        let mut lease = self.pool.lease().await?;
        let mut request = outgoing.request();
        loop {
            exchange.connected(lease.connect_time());
            let (written, reused) = (Instant::now(), lease.is_reused());
            let deadline = self.timeouts.response_head.map(|limit| written + limit);
            let failure = match within(deadline, lease.send(request)).await {
                Some(Ok(response)) => return Ok((response, lease)),
                Some(Err(failure)) => failure,
                None => return Err(self.late(Late::Head)),
            };
            let stale = reused && !failure.answered && written.elapsed() <= STALE_WITHIN;
            request = match failure.unsent {
                Some(request) if reused => request,
                None if stale && outgoing.can_repeat() => outgoing.request(),
                _ => {
                    return Err(Refusal::of_send(
                        self.pool.address().to_string(),
                        &failure.error,
                    ));
                }
            };
            self.counters.upstream_retries.inc();
            lease = self.pool.lease_new().await?;
        }
    }

    async fn answer(
        &self,
        mut head: response::Parts,
        body: Incoming,
        lease: Lease,
        watch: Option<Box<Watch>>,
        mut exchange: Box<tap::Exchange>,
        outlet: Arc<Outlet>,
    ) -> Answer {
        if is_close_delimited(&head, &body) {
            // hyper ends a body with its connection only for this version; chunks would promise a proper end that
            // nobody can vouch for.
            head.version = Version::HTTP_10;
        }
        let filter = exchange.head(&head, lease.memory(), Instant::now());
        if filter.is_some() {
            // The one allowed change of framing: what must be taken out can't be counted before.
            head.headers = end_to_end(head.headers, false, |name, _| match name {
                &header::CONTENT_LENGTH => Field::Drop,
                _ => Field::Keep,
            });
        }
        let bodiless = announced_length(&head)
            .filter(|length| *length == 0 || head.status == StatusCode::NOT_MODIFIED);
        let mut reply = Reply::new(body, lease, watch);
        let mut read = None;
        if exchange.wants_reply() {
            let (mut pieces, rest) = read_reply(&mut reply, &mut exchange).await;
            match rest {
                Rest::Ended(_) => {
                    let whole = join(&pieces);
                    let mended = exchange.reply_held(&whole).unwrap_or(whole);
                    if head.headers.contains_key(header::CONTENT_LENGTH) {
                        let length = HeaderValue::from(mended.len());
                        head.headers.insert(header::CONTENT_LENGTH, length);
                    }
                    pieces = VecDeque::from([mended]);
                }
                Rest::Reading => exchange.reply_passes(),
                // Nothing of it went on yet.
                Rest::Broken(BrokenOff::Late(late)) => return refuse(&self.late(late), exchange),
                Rest::Broken(BrokenOff::Server(_)) => {}
            }
            read = Some((pieces, rest));
        }
        outlet.begin(exchange);
        let mut body = RelayBody::new(reply, outlet, filter, bodiless);
        if let Some((pieces, rest)) = read {
            body = body.behind(pieces, rest);
        }
        Response::from_parts(head, Either::Left(body))
    }
}

impl Outgoing {
    /// The request to send. A streamed body can be sent once.
    pub(super) fn request(&mut self) -> Request<RequestBody> {
        let chunked = self.parts.headers.contains_key(header::TRANSFER_ENCODING);
        let body = match (&self.held, self.streamed.take()) {
            (Some(held), _) => RequestBody::held(held.sent.clone(), chunked),
            (None, Some(streamed)) => streamed,
            (None, None) => RequestBody::held(Bytes::new(), false),
        };
        Request::from_parts(self.parts.clone(), body)
    }

    fn can_repeat(&self) -> bool {
        self.repeatable && (self.bodiless || self.held.is_some())
    }

    /// Puts the client's own bytes back.
    fn restore(&mut self) {
        if let Some(held) = &mut self.held {
            held.sent = held.original.clone();
            if self.parts.headers.contains_key(header::CONTENT_LENGTH) {
                self.parts
                    .headers
                    .insert(header::CONTENT_LENGTH, HeaderValue::from(held.sent.len()));
            }
        }
    }
}

/// spectap's own answer.
fn refuse(refusal: &Refusal, exchange: Box<tap::Exchange>) -> Answer {
    let response = refusal.response();
    if refusal.is_upstream() {
        tracing::debug!(kind = refusal.kind(), %refusal, "no answer from upstream");
    }
    if *refusal != Refusal::ClientLeft {
        exchange.refused(response.status());
    }
    response.map(Either::Right)
}

/// Host rules of RFC 9112 section 3.2, which hyper does not enforce, and the forms of a target.
fn check_target(parts: &request::Parts) -> Result<(), Refusal> {
    if parts.method == Method::CONNECT {
        return Err(Refusal::Connect);
    }
    let hosts = parts.headers.get_all(header::HOST).iter().count();
    let needed = match parts.version {
        Version::HTTP_10 => false,
        // The target names it (RFC 9113 section 8.3.1).
        Version::HTTP_2 => parts.uri.authority().is_none(),
        _ => true,
    };
    if hosts > 1 || (needed && hosts == 0) {
        return Err(Refusal::Host);
    }
    Ok(())
}

/// An authority without a user name, which `Host` can't hold (RFC 9110 section 7.2).
fn host_and_port(authority: &Authority) -> &str {
    let whole = authority.as_str();
    whole.rsplit_once('@').map_or(whole, |(_, host)| host)
}

/// The target in origin form, its bytes untouched.
fn origin_form(uri: &Uri) -> Result<Uri, Refusal> {
    let path = uri
        .path_and_query()
        // Of an authority with a fragment behind it http makes a path of no bytes, which calls itself "/" and is written
        // as nothing.
        .filter(|path| path.as_str() != "/")
        .cloned()
        .unwrap_or_else(|| PathAndQuery::from_static("/"));
    let mut parts = http::uri::Parts::default();
    parts.path_and_query = Some(path);
    Uri::from_parts(parts).map_err(|_| Refusal::Target)
}

/// The length that an answer announces.
fn announced_length(head: &response::Parts) -> Option<u64> {
    let length = head.headers.get(header::CONTENT_LENGTH)?;
    length.to_str().ok()?.parse().ok()
}

/// Whether the server's answer ends where its connection ends.
fn is_close_delimited(head: &response::Parts, body: &Incoming) -> bool {
    let framed = [header::CONTENT_LENGTH, header::TRANSFER_ENCODING]
        .iter()
        .any(|name| head.headers.contains_key(name));
    !framed && head.version != Version::HTTP_2 && !body.is_end_stream()
}

/// The response's end-to-end fields, framed for this hop.
fn response_headers(head: &mut response::Parts, client_is_http10: bool) -> HeaderMap {
    let chunked = head.headers.contains_key(header::TRANSFER_ENCODING);
    let status = head.status;
    let switches = status == StatusCode::SWITCHING_PROTOCOLS;
    end_to_end(std::mem::take(&mut head.headers), switches, |name, _| {
        let drop = match *name {
            // A 204 has no body, whatever it announces; a message with both framings is read by its coding.
            header::CONTENT_LENGTH => chunked || status == StatusCode::NO_CONTENT,
            header::TRANSFER_ENCODING => client_is_http10,
            _ => false,
        };
        if drop { Field::Drop } else { Field::Keep }
    })
}
