//! The times of an exchange by AIPerf's definitions, seen from the tap.

use std::time::{Duration, Instant};

use super::reply::Reply;
use crate::observation::Timing;

/// The moments that the exchange itself knows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moments {
    /// The request's head had arrived.
    pub(super) started: Instant,
    /// The response's head had arrived.
    pub(super) head: Option<Instant>,
    /// The exchange was over.
    pub(super) ended: Instant,
    /// Time to open the engine's connection.
    pub(super) connect: Option<Duration>,
}

/// Computes the times. `stream`: the response was streamed; without, there is no token to time.
pub(super) fn timing(moments: &Moments, stream: bool, reply: Option<&Reply>) -> Timing {
    let since_start = |at: Instant| milliseconds(at.saturating_duration_since(moments.started));
    let mut timing = Timing {
        time_to_first_byte_ms: moments.head.map(since_start),
        upstream_connect_ms: moments.connect.map(milliseconds),
        ..Timing::default()
    };
    let Some(reply) = reply else { return timing };
    let (Some(first), Some(last)) = (reply.first_content, reply.last_content) else {
        return timing;
    };
    if !stream {
        timing.request_latency_ms = Some(since_start(moments.ended));
        return timing;
    }
    let (first_token, latency) = (since_start(first), since_start(last));
    timing.time_to_first_token_ms = Some(first_token);
    timing.request_latency_ms = Some(latency);
    timing.inter_token_latency_ms = reply
        .usage
        .completion_tokens
        .filter(|&tokens| tokens >= 2)
        .map(|tokens| (latency - first_token) / (tokens - 1) as f64);
    timing.inter_chunk_latency_ms = reply.mean_content_gap().map(milliseconds);
    timing
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timed(stream: bool, tokens: Option<u64>, chunks: u64) -> Timing {
        let started = Instant::now();
        let after = |ms| started + Duration::from_millis(ms);
        let mut reply = Reply {
            content_chunks: chunks,
            first_content: Some(after(20)),
            last_content: Some(after(60)),
            ..Reply::default()
        };
        reply.usage.completion_tokens = tokens;
        let moments = Moments {
            started,
            head: Some(after(10)),
            ended: after(100),
            connect: None,
        };
        timing(&moments, stream, Some(&reply))
    }

    fn near(value: Option<f64>, expected: f64) -> bool {
        value.is_some_and(|value| (value - expected).abs() < 1e-9)
    }

    #[test]
    fn a_stream_is_timed_by_its_content_and_not_by_its_end() {
        let timing = timed(true, Some(11), 6);
        assert!(near(timing.time_to_first_byte_ms, 10.0));
        assert!(near(timing.time_to_first_token_ms, 20.0));
        assert!(near(timing.request_latency_ms, 60.0));
        assert!(near(timing.inter_token_latency_ms, 4.0));
        assert!(near(timing.inter_chunk_latency_ms, 8.0));
    }

    #[test]
    fn gaps_need_two_and_a_known_number() {
        let timing = timed(true, None, 1);
        assert_eq!(
            (timing.inter_token_latency_ms, timing.inter_chunk_latency_ms),
            (None, None)
        );
        assert_eq!(timed(true, Some(1), 2).inter_token_latency_ms, None);
    }

    #[test]
    fn without_a_stream_only_the_whole_is_timed() {
        let timing = timed(false, Some(11), 1);
        assert!(near(timing.request_latency_ms, 100.0));
        assert_eq!(
            (timing.time_to_first_token_ms, timing.inter_token_latency_ms),
            (None, None)
        );
    }
}
