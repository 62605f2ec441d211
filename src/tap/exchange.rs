//! One request and its response, seen from the tap, from the head's arrival to the one observation at the end.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use http::{HeaderName, StatusCode, request, response};

use super::arrival::{Arrival, coding, is_json, media_type};
use super::decoding::Decoder;
use super::details;
use super::filter::{Content, Filter, Incident, Restore};
use super::identity::{self, LARGEST_MODEL_LIST};
use super::injection::{Added, decide, decide_unread};
use super::learned::{ConnectionMemory, Fingerprint};
use super::members::members;
use super::reply::{Reply, ReplyObserver};
use super::request::{self as client_request, RequestFacts};
use super::skip::Skip;
use super::tag::OWN_HEADER;
use super::{Shared, Tap};
use crate::engines::Options;
use crate::observation::Reason;

/// How the response's body ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// All of it went on.
    Complete,
    /// All of it went on, and trailers behind it.
    Trailers,
    /// The server broke off.
    Truncated,
    /// The client left before the end.
    Cancelled,
}

/// Why a request's body passes without having been held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyPasses {
    /// It is larger than what is held, or has trailers.
    TooLarge,
    /// All the memory for held bodies is in use.
    Memory,
}

/// One exchange. Dropped before [`Exchange::finish`], it counts as cancelled.
pub struct Exchange {
    pub(super) tap: Arc<Shared>,
    pub(super) arrival: Arrival,
    pub(super) request: RequestFacts,
    /// The request's body told what `request` holds; else only the response shows whether it streams.
    pub(super) request_is_read: bool,
    pub(super) started: Instant,
    pub(super) started_at: SystemTime,
    pub(super) in_flight: u64,
    /// The run in which it arrived; none on a route that is not observed.
    pub(super) run: Option<Arc<str>>,
    pub(super) injection: Injection,
    pub(super) connect: Option<Duration>,
    pub(super) head_at: Option<Instant>,
    pub(super) status: Option<StatusCode>,
    pub(super) memory: Option<ConnectionMemory>,
    observer: Option<ReplyObserver>,
    /// The response has no content coding.
    is_plain: bool,
    /// A copy of the list of models.
    models: Option<Vec<u8>>,
    pub(super) fault: Option<Reason>,
    finished: bool,
}

/// What was done to the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Injection {
    None,
    /// Options were added.
    Done(Added),
    /// They were added and refused, and the client's own bytes were sent again.
    TakenBack(Added),
}

impl Injection {
    /// What the response can hold because of it.
    pub(super) fn in_force(self) -> Added {
        match self {
            Injection::Done(added) => added,
            Injection::None | Injection::TakenBack(_) => Added::default(),
        }
    }
}

impl Tap {
    /// A request's head has arrived.
    pub fn arrive(&self, parts: &request::Parts, at: Instant) -> Exchange {
        let arrival = Arrival::read(parts, &self.0.settings.tag);
        let tap = Arc::clone(&self.0);
        tap.tally.arrived(arrival.route);
        let run = arrival
            .route
            .is_observed()
            .then(|| tap.settings.runs.current());
        let in_flight = if arrival.route.is_observed() {
            tap.in_flight.fetch_add(1, Ordering::Relaxed) + 1
        } else {
            0
        };
        if arrival.takes_stream_options
            && !arrival.is_readable
            && let Some(skip) = arrival.objection
        {
            let skip = if tap.settings.inject.is_on() {
                skip
            } else {
                Skip::Off
            };
            count_skip(&tap, skip);
        }
        Exchange {
            tap,
            arrival,
            request: RequestFacts {
                n: 1,
                prompts: 1,
                ..RequestFacts::default()
            },
            request_is_read: false,
            started: at,
            started_at: SystemTime::now(),
            in_flight,
            run,
            injection: Injection::None,
            connect: None,
            head_at: None,
            status: None,
            memory: None,
            observer: None,
            is_plain: false,
            models: None,
            fault: None,
            finished: false,
        }
    }
}

impl Exchange {
    /// Whether the request's body should be held and shown to [`Exchange::body_held`].
    pub fn wants_body(&self) -> bool {
        self.arrival.is_readable
    }

    /// Whether a field of the request is for spectap alone.
    pub fn keeps_back(&self, name: &HeaderName) -> bool {
        *name == OWN_HEADER && self.tap.settings.tag.header == OWN_HEADER
    }

    /// Whether the request may be sent again on another connection although it is no idempotent method: generating an
    /// answer anew does no harm as long as nobody saw the first one.
    pub fn is_repeatable(&self) -> bool {
        self.arrival.route.is_observed()
    }

    /// The request's whole body. Returns what to send in its place, if anything.
    pub fn body_held(&mut self, body: &Bytes) -> Option<Bytes> {
        let decision = guarded(|| {
            let Some(root) = members(body) else {
                return decide_unread(&self.tap, &self.arrival);
            };
            self.request = client_request::read(&root);
            self.request_is_read = true;
            let of_body = self.tap.settings.tag.body.as_ref();
            if let (None, Some(member)) = (&self.arrival.tag, of_body) {
                self.arrival.tag = member.read(&root);
            }
            decide(&self.tap, &self.arrival, &self.request, body, &root)
        });
        let Some(decision) = decision else {
            self.fault = Some(Reason::ObserverFailed);
            return None;
        };
        if let Some(skip) = decision.skip {
            self.skip(skip);
        }
        let (altered, added) = decision.altered?;
        self.injection = Injection::Done(added);
        Some(altered)
    }

    fn skip(&self, skip: Skip) {
        count_skip(&self.tap, skip);
    }

    /// The body could not be held and passes as it comes.
    pub fn body_passes(&mut self, why: BodyPasses) {
        if self.arrival.takes_stream_options {
            self.skip(match why {
                BodyPasses::TooLarge => Skip::TooLarge,
                BodyPasses::Memory => Skip::Memory,
            });
        }
    }

    /// A connection to the server is there; opening it took this long.
    pub fn connected(&mut self, connect: Duration) {
        self.connect = Some(connect);
    }

    /// Whether the server refused a request that we altered, so that the client's own bytes must be sent.
    pub fn wants_replay(&self, status: StatusCode) -> bool {
        matches!(self.injection, Injection::Done(_))
            && matches!(
                status,
                StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY
            )
    }

    /// The client's own bytes were sent. Only another status than the first shows that the injection was at fault.
    pub fn replayed(&mut self, first: StatusCode, second: Option<StatusCode>) {
        let added = self.injection.in_force();
        self.injection = Injection::TakenBack(added);
        let result = match second {
            Some(second) if second == first => "same_status",
            Some(_) => {
                self.tap.learned.refused(self.arrival.route);
                tracing::warn!(
                    route = self.arrival.route.as_str(),
                    status = first.as_u16(),
                    options = added.options().collect::<Vec<_>>().join(","),
                    "the engine refuses what was added to a request: left out here for 10 minutes"
                );
                "other_status"
            }
            None => "failed",
        };
        self.tap.counters.replays.with_label_values(&[result]).inc();
    }

    /// The response's head. Returns the filter that its body must go through, if any.
    pub fn head(
        &mut self,
        head: &response::Parts,
        memory: &ConnectionMemory,
        at: Instant,
    ) -> Option<Filter> {
        self.head_at = Some(at);
        self.status = Some(head.status);
        if let Some(engine) = identity::by_server(&head.headers) {
            self.tap.learned.engine_hinted(engine);
        }
        if self.arrival.asks_models && head.status.is_success() && is_json(&head.headers) {
            self.models = Some(Vec::new());
        }
        if !self.arrival.route.is_observed() || !head.status.is_success() {
            return None;
        }
        self.memory = Some(memory.clone());
        let is_stream = media_type(&head.headers)
            .is_some_and(|media| media.eq_ignore_ascii_case("text/event-stream"));
        self.request.stream |= is_stream && !self.request_is_read;
        let coding = coding(&head.headers);
        self.is_plain = coding.is_none();
        let decoder = coding.as_deref().map(Decoder::new);
        if matches!(decoder, Some(None)) {
            self.fault = Some(Reason::Encoding);
        } else {
            // What the content type gets wrong shows in the first byte.
            let observer = if is_stream {
                ReplyObserver::new_stream()
            } else {
                ReplyObserver::new_json()
            };
            let observer = observer.reading(Options {
                usage_details: self.tap.settings.usage_details,
            });
            self.observer = Some(match decoder.flatten() {
                Some(decoder) => observer.decoding(decoder),
                None => observer,
            });
        }
        let added = self.injection.in_force();
        if !added.must_strip() || !is_stream {
            return None;
        }
        if coding.is_some() {
            self.tap.learned.note_compression();
            self.skip_strip("encoding");
            return None;
        }
        Some(self.filter(added, memory))
    }

    fn skip_strip(&self, why: &str) {
        let skipped = &self.tap.counters.strips_skipped;
        skipped.with_label_values(&[why]).inc();
    }

    fn filter(&self, added: Added, memory: &ConnectionMemory) -> Filter {
        let restore = if self.request.is_several() {
            let known = memory
                .fingerprint()
                .or_else(|| self.tap.learned.fingerprint());
            Restore::Known(known.unwrap_or(Fingerprint::Absent))
        } else {
            Restore::FromSuccessor
        };
        let (tap, route) = (Arc::clone(&self.tap), self.arrival.route);
        let report = move |incident| match incident {
            Incident::Stripped => tap.counters.stripped_events.inc(),
            Incident::SentUnasked => tap.learned.usage_unasked(route, true),
            Incident::Skipped(why) => tap.counters.strips_skipped.with_label_values(&[why]).inc(),
        };
        Filter::new(added, restore, Box::new(report))
    }

    /// Whether the whole reply should be held and shown to [`Exchange::reply_held`] before its head goes on: a reply
    /// that is not streamed and that the injection added something to.
    pub fn wants_reply(&self) -> bool {
        self.injection.in_force().details && !self.request.stream && self.is_plain
    }

    /// The whole reply. Returns what the client gets in its place, if anything.
    pub fn reply_held(&self, body: &Bytes) -> Option<Bytes> {
        let cut = guarded(|| details::cut(body))??;
        self.tap.counters.stripped_events.inc();
        Some([&body[..cut.start], &body[cut.end..]].concat().into())
    }

    /// The reply was too large to be held, and passes as it is.
    pub fn reply_passes(&self) {
        self.skip_strip("too_large");
    }

    /// Bytes of the response's body, read at `at`. `content`: what the filter found them to be, if it found them to be
    /// nothing else.
    pub fn see(&mut self, bytes: &Bytes, content: Option<Content>, at: Instant) {
        if let Some(models) = &mut self.models
            && models.len() + bytes.len() <= LARGEST_MODEL_LIST
        {
            models.extend_from_slice(bytes);
        }
        if let Some(observer) = &mut self.observer {
            let seen = guarded(|| {
                #[cfg(feature = "fault-injection")]
                super::fault::happen(bytes);
                if !content.is_some_and(|content| observer.see_content(content, at)) {
                    observer.see(bytes, at);
                }
            });
            if seen.is_none() {
                self.observer = None;
                self.fault = Some(Reason::ObserverFailed);
            }
        }
    }

    /// The request got an answer of spectap's own.
    pub fn refused(mut self, status: StatusCode) {
        self.status = Some(status);
        self.close(End::Complete);
    }

    /// The response is over.
    pub fn finish(mut self, end: End) {
        self.close(end);
    }

    fn close(&mut self, end: End) {
        if std::mem::replace(&mut self.finished, true) {
            return;
        }
        let route = self.arrival.route;
        self.tap.tally.is_over(route, self.status);
        if let Some(engine) = self
            .models
            .take()
            .and_then(|body| identity::by_models(&body))
        {
            self.tap.learned.engine_hinted(engine);
        }
        if !route.is_observed() {
            return;
        }
        self.tap.in_flight.fetch_sub(1, Ordering::Relaxed);
        let reply = self.observer.take().and_then(|observer| {
            let reply: Option<Reply> = guarded(|| observer.finish());
            if reply.is_none() {
                self.fault = Some(Reason::ObserverFailed);
            }
            reply
        });
        self.conclude(end, reply);
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.close(End::Cancelled);
    }
}

fn count_skip(tap: &Shared, skip: Skip) {
    let skipped = &tap.counters.injections_skipped;
    skipped.with_label_values(&[<&str>::from(skip)]).inc();
}

/// Runs a piece of the observer; a panic in it gives `None`.
fn guarded<T>(look: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(look)).ok()
}
