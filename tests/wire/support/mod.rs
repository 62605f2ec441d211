//! A raw-socket engine, a raw-socket client, and an instance between them.

pub(crate) mod bad_proxy;
pub(crate) mod certificates;
pub(crate) mod client;
pub(crate) mod fixtures;
pub(crate) mod http2;
pub(crate) mod http2_engine;
pub(crate) mod origin;
pub(crate) mod tap;
pub(crate) mod tls;

use std::time::{Duration, Instant};

/// The longest that anything here may take.
pub(crate) const DEADLINE: Duration = Duration::from_secs(20);

/// Asks again until there is an answer; panics at the deadline.
pub(crate) fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(begun.elapsed() < DEADLINE, "never came: {what}");
        std::thread::yield_now();
    }
}
