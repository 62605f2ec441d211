//! What is measured, with its unit.

use serde::{Deserialize, Serialize};

/// A figure of a reading.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub enum Figure {
    /// CPU time of the hop per token event, µs.
    #[serde(rename = "cpu_per_event_us")]
    CpuPerEvent,
    /// From the engine's writing of an event to the client's reading, median, µs.
    #[serde(rename = "latency_p50_us")]
    LatencyP50,
    /// The same, 90th percentile.
    #[serde(rename = "latency_p90_us")]
    LatencyP90,
    /// The same, 99th percentile.
    #[serde(rename = "latency_p99_us")]
    LatencyP99,
    /// Latency less that without a hop in the same round, median, µs.
    #[serde(rename = "added_p50_us")]
    AddedP50,
    /// The same, 90th percentile.
    #[serde(rename = "added_p90_us")]
    AddedP90,
    /// The same, 99th percentile.
    #[serde(rename = "added_p99_us")]
    AddedP99,
    /// Token events that the client got, thousands per second.
    #[serde(rename = "events_per_s")]
    EventsPerSecond,
    /// CPU time of the hop per request, µs.
    #[serde(rename = "cpu_per_request_us")]
    CpuPerRequest,
    /// Requests that were answered, per second.
    #[serde(rename = "requests_per_s")]
    RequestsPerSecond,
    /// Share of its core that the hop used, percent.
    #[serde(rename = "busy_percent")]
    Busy,
    /// Memory (PSS) with a thousand open streams less that with none, per stream, kB.
    #[serde(rename = "memory_per_stream_kb")]
    MemoryPerStream,
    /// Memory (RSS) without a stream, MB.
    #[serde(rename = "memory_without_streams_mb")]
    MemoryWithoutStreams,
    /// Memory (RSS) with a thousand open streams, MB.
    #[serde(rename = "memory_with_1000_streams_mb")]
    MemoryWithStreams,
    /// From the start of the program to its first forwarded answer, ms.
    #[serde(rename = "start_ms")]
    Start,
    /// From the cut of a thousand streams to the next answer, ms.
    #[serde(rename = "after_cut_ms")]
    AfterCut,
    /// Scrapes of `/metrics` in the meantime.
    #[serde(rename = "scrapes")]
    Scrapes,
    /// Subscribers of the live feed in the meantime.
    #[serde(rename = "subscribers")]
    Subscribers,
}

impl Figure {
    /// Heading of its column.
    pub fn heading(self) -> &'static str {
        match self {
            Self::CpuPerEvent => "CPU per event, µs",
            Self::LatencyP50 => "latency p50, µs",
            Self::LatencyP90 => "latency p90, µs",
            Self::LatencyP99 => "latency p99, µs",
            Self::AddedP50 => "added p50, µs",
            Self::AddedP90 => "added p90, µs",
            Self::AddedP99 => "added p99, µs",
            Self::EventsPerSecond => "events/s",
            Self::CpuPerRequest => "CPU per request, µs",
            Self::RequestsPerSecond => "requests/s",
            Self::Busy => "hop's core, %",
            Self::MemoryPerStream => "per stream, kB",
            Self::MemoryWithoutStreams => "without streams, MB",
            Self::MemoryWithStreams => "with 1000 streams, MB",
            Self::Start => "first answer, ms",
            Self::AfterCut => "next answer after the cut, ms",
            Self::Scrapes => "scrapes",
            Self::Subscribers => "subscribers",
        }
    }

    /// Whether less of it is worse: then a ratio above 1 is good.
    pub fn is_better_high(self) -> bool {
        matches!(self, Self::EventsPerSecond | Self::RequestsPerSecond)
    }

    /// For an added latency the latency that it is made of.
    pub fn latency(self) -> Option<Self> {
        match self {
            Self::AddedP50 => Some(Self::LatencyP50),
            Self::AddedP90 => Some(Self::LatencyP90),
            Self::AddedP99 => Some(Self::LatencyP99),
            _ => None,
        }
    }
}
