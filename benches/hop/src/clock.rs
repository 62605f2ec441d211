//! The clock that engine double and load client share, being on one machine.

use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_gettime};

/// Nanoseconds of `CLOCK_MONOTONIC`, the same in every process.
pub fn now() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |time| time.num_nanoseconds().unsigned_abs())
}
