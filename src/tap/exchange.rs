//! One request and its response, seen from the tap, from the head's arrival to the one observation at the end.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use http::{StatusCode, request, response};

use super::absence::{self, Circumstances};
use super::arrival::{Arrival, is_coded, is_json, media_type};
use super::filter::{Filter, Incident, Restore};
use super::inject::{Plan, Skip, plan, splice};
use super::learned::{ConnectionMemory, Fingerprint};
use super::members::members;
use super::reply::{Reply, ReplyObserver};
use super::request::{self as client_request, RequestFacts};
use super::timing::{Moments, timing};
use super::{Shared, Tap};
use crate::engines;
use crate::observation::{Acceptance, Observation, Outcome, Reason, Route, cut_name};
use crate::record::EngineName;

/// How the response's body ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// All of it went on.
    Complete,
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
    tap: Arc<Shared>,
    arrival: Arrival,
    request: RequestFacts,
    /// The request's body told what `request` holds; else only the response shows whether it streams.
    request_is_read: bool,
    started: Instant,
    started_at: SystemTime,
    in_flight: u64,
    injection: Injection,
    connect: Option<Duration>,
    head_at: Option<Instant>,
    status: Option<StatusCode>,
    memory: Option<ConnectionMemory>,
    observer: Option<ReplyObserver>,
    fault: Option<Reason>,
    finished: bool,
}

/// What was done to the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Injection {
    None,
    /// The option was added; `strip`: the client must not see what it causes.
    Done {
        strip: bool,
    },
    /// It was added and refused, and the client's own bytes were sent again.
    TakenBack,
}

impl Tap {
    /// A request's head has arrived.
    pub fn arrive(&self, parts: &request::Parts, at: Instant) -> Exchange {
        let arrival = Arrival::read(parts);
        let tap = Arc::clone(&self.0);
        tap.counters
            .requests_in_flight
            .with_label_values(&[arrival.route.as_str()])
            .inc();
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
            injection: Injection::None,
            connect: None,
            head_at: None,
            status: None,
            memory: None,
            observer: None,
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

    /// Whether the request may be sent again on another connection although it is no idempotent method: generating an
    /// answer anew does no harm as long as nobody saw the first one.
    pub fn is_repeatable(&self) -> bool {
        self.arrival.route.is_observed()
    }

    /// The request's whole body. Returns what to send in its place, if anything.
    pub fn body_held(&mut self, body: &Bytes) -> Option<Bytes> {
        let planned = guarded(|| {
            let Some(root) = members(body) else {
                let skip = self.objection(true).unwrap_or(Skip::NotJson);
                return self.arrival.takes_stream_options.then_some(Err(skip));
            };
            self.request = client_request::read(&root);
            self.request_is_read = true;
            if !self.request.stream || !self.arrival.takes_stream_options {
                return None;
            }
            let is_vllm = self.tap.engine() == Some(EngineName::Vllm);
            Some(
                match plan(body, &root, self.tap.settings.expose_usage, is_vllm) {
                    Plan::Inject { edits, strip } => match self.objection(strip) {
                        Some(skip) => Err(skip),
                        None => Ok(Some((splice(body, &edits), strip))),
                    },
                    Plan::Skip(skip) => Err(self.objection(true).unwrap_or(skip)),
                    Plan::Leave => Ok(None),
                },
            )
        });
        match planned {
            None => {
                self.fault = Some(Reason::ObserverFailed);
                None
            }
            Some(None | Some(Ok(None))) => None,
            Some(Some(Err(skip))) => {
                self.skip(skip);
                None
            }
            Some(Some(Ok(Some((spliced, strip))))) => {
                self.injection = Injection::Done { strip };
                Some(spliced)
            }
        }
    }

    /// Why a request that could be altered is left as it is.
    fn objection(&self, strip: bool) -> Option<Skip> {
        let several = u64::from(self.request.n) * u64::from(self.request.prompts) > 1;
        // vLLM's generate route writes no fingerprint.
        let needs_fingerprint = strip && several && self.arrival.route != Route::Generate;
        if !self.tap.settings.inject.is_on() {
            Some(Skip::Off)
        } else if self.arrival.objection.is_some() {
            self.arrival.objection
        } else if let Some(skip) = self
            .tap
            .learned
            .objection(self.arrival.route, strip && self.arrival.takes_coding)
        {
            Some(skip)
        } else if needs_fingerprint && self.tap.learned.fingerprint().is_none() {
            Some(Skip::FingerprintUnknown)
        } else {
            None
        }
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
        matches!(self.injection, Injection::Done { .. })
            && matches!(
                status,
                StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY
            )
    }

    /// The client's own bytes were sent. Only another status than the first shows that the injection was at fault.
    pub fn replayed(&mut self, first: StatusCode, second: Option<StatusCode>) {
        self.injection = Injection::TakenBack;
        let result = match second {
            Some(second) if second == first => "same_status",
            Some(_) => {
                self.tap.learned.refused(self.arrival.route);
                tracing::warn!(
                    route = self.arrival.route.as_str(),
                    status = first.as_u16(),
                    "the engine refuses stream_options.include_usage here: left out for 10 minutes"
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
        if !self.arrival.route.is_observed() || !head.status.is_success() {
            return None;
        }
        self.memory = Some(memory.clone());
        let is_stream = media_type(&head.headers).as_deref() == Some("text/event-stream");
        self.request.stream |= is_stream && !self.request_is_read;
        if is_coded(&head.headers) {
            self.fault = Some(Reason::Encoding);
        } else if is_stream {
            self.observer = Some(ReplyObserver::new_stream());
        } else if is_json(&head.headers) {
            self.observer = Some(ReplyObserver::new_json());
        } else {
            self.fault = Some(Reason::NotJson);
        }
        if self.injection != (Injection::Done { strip: true }) || !is_stream {
            return None;
        }
        if self.fault.is_some() {
            self.tap.learned.note_compression();
            self.tap
                .counters
                .strips_skipped
                .with_label_values(&["encoding"])
                .inc();
            return None;
        }
        Some(self.filter(memory))
    }

    fn filter(&self, memory: &ConnectionMemory) -> Filter {
        let several = u64::from(self.request.n) * u64::from(self.request.prompts) > 1;
        let restore = if several {
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
        Filter::new(restore, Box::new(report))
    }

    /// Bytes of the response's body, read at `at`.
    pub fn see(&mut self, bytes: &Bytes, at: Instant) {
        if let Some(observer) = &mut self.observer {
            let seen = guarded(|| {
                #[cfg(feature = "fault-injection")]
                assert!(
                    memchr::memmem::find(bytes, b"spectap-fault").is_none(),
                    "a fault was asked for"
                );
                observer.see(bytes, at);
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
        let counters = &self.tap.counters;
        let route = self.arrival.route;
        let code = self
            .status
            .map_or_else(|| "none".to_owned(), |status| status.as_u16().to_string());
        counters
            .requests
            .with_label_values(&[route.as_str(), &code])
            .inc();
        counters
            .requests_in_flight
            .with_label_values(&[route.as_str()])
            .dec();
        if !route.is_observed() {
            return;
        }
        self.tap.in_flight.fetch_sub(1, Ordering::Relaxed);
        let observer = self.observer.take();
        let reply = match observer.map(|observer| guarded(|| observer.finish())) {
            Some(None) => {
                self.fault = Some(Reason::ObserverFailed);
                None
            }
            reply => reply.flatten(),
        };
        let reply = reply.as_ref();
        let outcome = self.outcome(end, reply);
        self.learn(outcome, reply);
        let observation = self.observation(outcome, reply);
        self.count(&observation, reply);
        self.tap.sink.record(Arc::new(observation));
    }

    fn outcome(&self, end: End, reply: Option<&Reply>) -> Outcome {
        // A client that has the sentinel has everything and may hang up before the last chunk; OpenAI's own does.
        let had_all = reply.is_some_and(|reply| reply.done_seen);
        let end = match end {
            End::Cancelled if had_all => End::Complete,
            end => end,
        };
        match (end, self.status) {
            (End::Cancelled, _) | (_, None) => Outcome::Cancelled,
            (End::Truncated, _) => Outcome::Truncated,
            (End::Complete, Some(status)) if status.as_u16() >= 400 => Outcome::ErrorStatus,
            (End::Complete, _) if reply.is_some_and(|reply| reply.error_event) => {
                Outcome::ErrorEvent
            }
            (End::Complete, _) => Outcome::Complete,
        }
    }

    /// Keeps what this response showed of its engine.
    fn learn(&self, outcome: Outcome, reply: Option<&Reply>) {
        let Some(reply) = reply else { return };
        let learned = &self.tap.learned;
        if !reply.payloads.is_empty() {
            learned.note_payload();
        }
        if matches!(
            self.arrival.route,
            Route::ChatCompletions | Route::Completions
        ) {
            let fingerprint = match &reply.system_fingerprint {
                Some(value) => Some(Fingerprint::Value(cut_name(value).into())),
                None => (outcome == Outcome::Complete
                    && !reply.finish_reasons.is_empty()
                    && reply.fault.is_none())
                .then_some(Fingerprint::Absent),
            };
            if let Some(fingerprint) = fingerprint {
                if let Some(memory) = &self.memory {
                    memory.remember(fingerprint.clone());
                }
                learned.fingerprint_seen(fingerprint);
            }
        }
        if self.request.stream && reply.events > 0 && self.asked_for_no_running_usage() {
            learned.usage_unasked(self.arrival.route, reply.first_event_has_usage);
        }
    }

    /// Whether usage on the first event can only be the engine's own idea.
    fn asked_for_no_running_usage(&self) -> bool {
        self.request_is_read && !self.request.continuous_usage
    }

    fn observation(&self, outcome: Outcome, reply: Option<&Reply>) -> Observation {
        let ended = Instant::now();
        let moments = Moments {
            started: self.started,
            head: self.head_at,
            ended,
            connect: self.connect,
        };
        let unknown = Reply::default();
        let seen = reply.unwrap_or(&unknown);
        let sequences = self.request.n.saturating_mul(self.request.prompts);
        let verdict = engines::read(&seen.payloads, &seen.usage, sequences);
        if let Some(engine) = verdict.engine {
            self.tap.learned.engine_seen(engine);
        }
        let success = self.status.is_some_and(|status| status.is_success());
        let fault = self.fault.or(seen.fault);
        let (acceptance, reason) = match (success, fault, verdict.acceptance) {
            (false, _, _) => (None, None),
            // Numbers that came before the fault stand.
            (true, Some(fault), Acceptance::Absent) => (Some(Acceptance::Unobserved), Some(fault)),
            (true, None, Acceptance::Absent) => (
                Some(Acceptance::Absent),
                Some(absence::reason(
                    &self.request,
                    seen,
                    &self.circumstances(outcome),
                )),
            ),
            (true, _, acceptance) => (Some(acceptance), verdict.reason),
        };
        Observation {
            id: ulid::Ulid::generate().to_string(),
            request_id: seen.response_id.clone(),
            x_request_id: self.arrival.x_request_id.clone(),
            trace_id: self.arrival.trace_id.clone(),
            started_at: self.started_at,
            ended_at: self.started_at + ended.saturating_duration_since(self.started),
            lane: self.tap.settings.lane.clone(),
            route: self.arrival.route,
            model: seen
                .model
                .as_deref()
                .map(cut_name)
                .or_else(|| self.request.model.clone()),
            tag: None,
            run: None,
            stream: self.request.stream,
            n: self.request.n,
            prompts: self.request.prompts,
            stream_options_asked: self.request.include_usage,
            in_flight: self.in_flight,
            status: self.status.map(|status| status.as_u16()),
            outcome,
            acceptance,
            reason,
            finish_reasons: seen.finish_reasons.clone(),
            facets: self.request.facets,
            usage: seen.usage,
            timing: timing(&moments, self.request.stream, reply),
            engine_metrics: seen.engine_metrics.clone(),
            content_chunks: seen.content_chunks,
            spec_decode_acceptance: verdict.records,
        }
    }

    fn circumstances(&self, outcome: Outcome) -> Circumstances {
        Circumstances {
            route: self.arrival.route,
            outcome,
            injected: matches!(self.injection, Injection::Done { .. }),
            inject_off: !self.tap.settings.inject.is_on(),
            payload_seen: self.tap.learned.payload_seen(),
            engine: self.tap.engine(),
        }
    }

    fn count(&self, observation: &Observation, reply: Option<&Reply>) {
        let counters = &self.tap.counters;
        counters
            .outcomes
            .with_label_values(&[observation.outcome.as_str()])
            .inc();
        if observation.acceptance == Some(Acceptance::Unobserved)
            && let Some(reason) = observation.reason
        {
            counters
                .unobserved
                .with_label_values(&[reason.as_str()])
                .inc();
        }
        let result = match self.injection {
            Injection::None => return,
            Injection::TakenBack => "refused",
            Injection::Done { .. } if reply.is_some_and(|reply| reply.usage_seen) => "reported",
            Injection::Done { .. } if observation.outcome == Outcome::Complete => "silent",
            Injection::Done { .. } => "unfinished",
        };
        counters
            .injections
            .with_label_values(&["include_usage", result])
            .inc();
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
