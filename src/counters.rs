//! Counters of the tap itself: what the hop and the tap did, in Prometheus counters that both bump and `/metrics` reads.
//!
//! One set per instance, no global state. Label values come only from closed lists in this crate.

use prometheus::{IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry};

/// The counters of one instance. Cheap to clone: all handles share their values.
#[derive(Clone, Debug)]
pub struct TapCounters {
    /// `spectap_requests_total{route,code}`
    pub requests: IntCounterVec,
    /// `spectap_requests_in_flight{route}`
    pub requests_in_flight: IntGaugeVec,
    /// `spectap_exchange_outcomes_total{outcome}`
    pub outcomes: IntCounterVec,
    /// `spectap_injections_total{option,result}`
    pub injections: IntCounterVec,
    /// `spectap_injections_skipped_total{reason}`
    pub injections_skipped: IntCounterVec,
    /// `spectap_stripped_events_total`
    pub stripped_events: IntCounter,
    /// `spectap_strips_skipped_total{reason}`
    pub strips_skipped: IntCounterVec,
    /// `spectap_replays_total{result}`
    pub replays: IntCounterVec,
    /// `spectap_unobserved_total{reason}`
    pub unobserved: IntCounterVec,
    /// `spectap_upstream_errors_total{kind}`
    pub upstream_errors: IntCounterVec,
    /// `spectap_upstream_connections{state}`
    pub upstream_connections: IntGaugeVec,
    /// `spectap_upstream_retries_total`
    pub upstream_retries: IntCounter,
    /// `spectap_client_connections`
    pub client_connections: IntGauge,
    /// `spectap_accept_pauses_total{reason}`
    pub accept_pauses: IntCounterVec,
}

impl TapCounters {
    /// Makes a set and registers it.
    ///
    /// # Errors
    ///
    /// Only if the registry already holds a metric of one of these names.
    pub fn register(registry: &Registry) -> Result<Self, prometheus::Error> {
        let counter = |name: &str, help: &str, labels: &[&str]| {
            let vector = IntCounterVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(vector.clone()))?;
            Ok::<_, prometheus::Error>(vector)
        };
        let plain = |name: &str, help: &str| {
            let counter = IntCounter::new(name, help)?;
            registry.register(Box::new(counter.clone()))?;
            Ok::<_, prometheus::Error>(counter)
        };
        let gauge = |name: &str, help: &str, labels: &[&str]| {
            let vector = IntGaugeVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(vector.clone()))?;
            Ok::<_, prometheus::Error>(vector)
        };
        Ok(Self {
            requests: counter(
                "spectap_requests_total",
                "Requests by route and status code of the response (none: no response).",
                &["route", "code"],
            )?,
            requests_in_flight: gauge(
                "spectap_requests_in_flight",
                "Requests under way by route.",
                &["route"],
            )?,
            outcomes: counter(
                "spectap_exchange_outcomes_total",
                "Exchanges on observed routes by how they ended.",
                &["outcome"],
            )?,
            injections: counter(
                "spectap_injections_total",
                "Requests to which an option was added, by option and what it showed.",
                &["option", "result"],
            )?,
            injections_skipped: counter(
                "spectap_injections_skipped_total",
                "Streamed requests left as they came although their route takes the option, by reason.",
                &["reason"],
            )?,
            stripped_events: plain(
                "spectap_stripped_events_total",
                "Events taken out of streams because only the added option caused them.",
            )?,
            strips_skipped: counter(
                "spectap_strips_skipped_total",
                "Streams that should have been stripped and passed as they came, by reason.",
                &["reason"],
            )?,
            replays: counter(
                "spectap_replays_total",
                "Requests sent again in the client's own bytes after the engine refused the altered ones, by result.",
                &["result"],
            )?,
            unobserved: counter(
                "spectap_unobserved_total",
                "Responses on observed routes that could not be looked at, by reason.",
                &["reason"],
            )?,
            upstream_errors: counter(
                "spectap_upstream_errors_total",
                "Requests that the engine's side failed, by kind.",
                &["kind"],
            )?,
            upstream_connections: gauge(
                "spectap_upstream_connections",
                "Connections to the engine by state.",
                &["state"],
            )?,
            upstream_retries: plain(
                "spectap_upstream_retries_total",
                "Requests sent again because a kept connection turned out closed.",
            )?,
            client_connections: {
                let gauge = IntGauge::new(
                    "spectap_client_connections",
                    "Connections of clients that are open.",
                )?;
                registry.register(Box::new(gauge.clone()))?;
                gauge
            },
            accept_pauses: counter(
                "spectap_accept_pauses_total",
                "Times that new clients had to wait before they were accepted, by reason.",
                &["reason"],
            )?,
        })
    }
}
