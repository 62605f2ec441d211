//! The end of an exchange: what is learned of its engine, and the one observation that is made of it.

use std::sync::Arc;
use std::time::Instant;

use super::absence::{self, Circumstances};
use super::exchange::{End, Exchange, Injection};
use super::learned::Fingerprint;
use super::reply::Reply;
use super::timing::{Moments, timing};
use crate::engines;
use crate::observation::{Acceptance, Observation, Outcome, Route, new_id};

impl Exchange {
    /// Makes the observation, counts it, and hands it on.
    pub(super) fn conclude(&mut self, end: End, reply: Option<Reply>) {
        let outcome = self.outcome(end, reply.as_ref());
        self.learn(outcome, reply.as_ref());
        let usage_seen = reply.as_ref().is_some_and(|reply| reply.usage_seen);
        let mut reply = reply;
        let fingerprint = reply
            .as_mut()
            .and_then(|reply| reply.system_fingerprint.take());
        let observation = self.observation(outcome, reply);
        self.count(&observation, usage_seen);
        self.tap
            .settings
            .runs
            .ended(&observation, fingerprint.as_deref());
        self.tap.sink.record(Arc::new(observation));
    }

    fn outcome(&self, end: End, reply: Option<&Reply>) -> Outcome {
        // A client that has the sentinel has everything and may hang up before the last chunk; OpenAI's own does.
        let had_all = reply.is_some_and(|reply| reply.done_seen);
        let end = match end {
            End::Trailers => End::Complete,
            End::Cancelled if had_all => End::Complete,
            end => end,
        };
        match (end, self.status) {
            (End::Cancelled, _) | (_, None) => Outcome::Cancelled,
            (End::Truncated, _) => Outcome::Truncated,
            (_, Some(status)) if status.as_u16() >= 400 => Outcome::ErrorStatus,
            _ if reply.is_some_and(|reply| reply.error_event) => Outcome::ErrorEvent,
            _ => Outcome::Complete,
        }
    }

    /// Keeps what this response showed of its engine.
    fn learn(&self, outcome: Outcome, reply: Option<&Reply>) {
        let Some(reply) = reply else { return };
        let learned = &self.tap.learned;
        if !reply.payloads.is_empty() {
            learned.note_payload();
        }
        if let Some(engine) = reply.engine_hint {
            learned.engine_hinted(engine);
        }
        if matches!(
            self.arrival.route,
            Route::ChatCompletions | Route::Completions
        ) {
            let fingerprint = match &reply.system_fingerprint {
                Some(value) => Some(learned.fingerprint_of(value)),
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

    /// Makes the observation. What the exchange and the reply hold goes into it.
    fn observation(&mut self, outcome: Outcome, reply: Option<Reply>) -> Observation {
        let ended = Instant::now();
        let moments = Moments {
            started: self.started,
            head: self.head_at,
            ended,
            connect: self.connect,
        };
        let timing = timing(&moments, self.request.stream, reply.as_ref());
        let mut seen = reply.unwrap_or_default();
        let sequences = self.request.n.saturating_mul(self.request.prompts);
        let mut verdict =
            engines::conclude(std::mem::take(&mut seen.payloads), &seen.usage, sequences);
        if let Some(engine) = verdict.engine {
            self.tap.learned.engine_seen(engine);
        }
        if verdict.acceptance == Acceptance::ZeroStep && self.request.prefill_leg {
            // It was never to generate more than its one token: that says nothing of the drafter.
            verdict.acceptance = Acceptance::Absent;
            verdict.records.clear();
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
                    &seen,
                    &self.circumstances(outcome),
                )),
            ),
            (true, _, acceptance) => (Some(acceptance), verdict.reason),
        };
        let ended_at = self.started_at + ended.saturating_duration_since(self.started);
        Observation {
            id: new_id(ended_at),
            request_id: seen.response_id,
            x_request_id: self.arrival.x_request_id.take(),
            trace_id: self.arrival.trace_id.take(),
            started_at: self.started_at,
            ended_at,
            lane: self.tap.settings.lane.clone(),
            route: self.arrival.route,
            model: seen.model.or_else(|| self.request.model.take()),
            tag: self.arrival.tag.take(),
            run: self.run.as_deref().map(str::to_owned),
            stream: self.request.stream,
            n: self.request.n,
            prompts: self.request.prompts,
            stream_options_asked: self.request.include_usage,
            in_flight: self.in_flight,
            status: self.status.map(|status| status.as_u16()),
            outcome,
            acceptance,
            reason,
            finish_reasons: seen.finish_reasons,
            facets: self.request.facets,
            usage: seen.usage,
            timing,
            engine_metrics: seen.engine_metrics,
            content_chunks: seen.content_chunks,
            spec_decode_acceptance: verdict.records,
        }
    }

    fn circumstances(&self, outcome: Outcome) -> Circumstances {
        Circumstances {
            route: self.arrival.route,
            outcome,
            added: self.injection.in_force(),
            inject_off: !self.tap.settings.inject.is_on(),
            payload_seen: self.tap.learned.payload_seen(),
            engine: self.tap.engine(),
        }
    }

    fn count(&self, observation: &Observation, usage_seen: bool) {
        let counters = &self.tap.counters;
        self.tap.tally.ended(observation.outcome);
        if observation.acceptance == Some(Acceptance::Unobserved)
            && let Some(reason) = observation.reason
        {
            counters
                .unobserved
                .with_label_values(&[reason.as_str()])
                .inc();
        }
        let (added, result) = match self.injection {
            Injection::None => return,
            Injection::TakenBack(added) => (added, "refused"),
            Injection::Done(added) if usage_seen => (added, "reported"),
            Injection::Done(added) if observation.outcome == Outcome::Complete => (added, "silent"),
            Injection::Done(added) => (added, "unfinished"),
        };
        for option in added.options() {
            counters
                .injections
                .with_label_values(&[option, result])
                .inc();
        }
    }
}
