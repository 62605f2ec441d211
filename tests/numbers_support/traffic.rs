//! Traffic that looks like real traffic: no two exchanges alike, and the same ones in every run.

use std::time::{Duration, SystemTime};

use spectap::observation::{Observation, Usage};

use super::{record, recorded};

/// Time from one exchange's end to the next one's.
pub(crate) const PACE: Duration = Duration::from_millis(10);

/// A number below `below` that looks random.
fn scattered(number: u64, salt: u64, below: u64) -> u64 {
    let mut mixed = (number ^ (salt << 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed ^= mixed >> 29;
    mixed = mixed.wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (mixed ^ (mixed >> 32)) % below
}

/// When the exchange of this number ends.
pub(crate) fn end_of(number: u64) -> SystemTime {
    super::observation().ended_at + PACE * u32::try_from(number).unwrap_or(u32::MAX)
}

/// The exchange of this number, of one of so many models and tags.
pub(crate) fn exchange(number: u64, models: u64, tags: u64) -> Observation {
    let random = |salt, below| scattered(number, salt, below);
    let steps = 20 + random(1, 200);
    let deep = random(2, steps);
    let mut exchange = recorded(vec![record(&[
        steps - deep,
        deep / 2,
        deep / 4,
        deep - deep / 2 - deep / 4,
        random(3, 9),
    ])]);
    exchange.ended_at = end_of(number);
    exchange.started_at = exchange.ended_at - Duration::from_secs(2);
    exchange.model = Some(format!("model {}", random(4, models)));
    exchange.tag = Some(format!("tag {}", random(5, tags)));
    exchange.run = Some("a run".into());
    exchange.in_flight = 1 + random(6, 100);
    exchange.stream = random(7, 3) > 0;
    let completion = 50 + random(8, 1_000);
    exchange.usage = Usage {
        prompt_tokens: Some(10 + random(9, 30_000)),
        completion_tokens: Some(completion),
        cached_tokens: Some(random(10, 10)),
        reasoning_tokens: None,
    };
    // In nanoseconds, and made milliseconds as the tap does it.
    let first = 20_000_000 + random(11, 1_000_000_000);
    let decode = completion * (5_000_000 + random(12, 10_000_000));
    let milliseconds = |nanoseconds| Duration::from_nanos(nanoseconds).as_secs_f64() * 1e3;
    let (first_token, latency) = (milliseconds(first), milliseconds(first + decode));
    exchange.timing.time_to_first_token_ms = Some(first_token);
    exchange.timing.request_latency_ms = Some(latency);
    exchange.timing.inter_token_latency_ms =
        Some((latency - first_token) / (completion - 1) as f64);
    exchange.timing.inter_chunk_latency_ms = Some(milliseconds(decode / steps));
    exchange
}
