//! What is kept of single exchanges: the ring of recent observations behind `/api/v1/requests`.
//!
//! `stats` keeps sums for ever; this keeps the newest exchanges one by one, within a fixed number of bytes.

mod listing;
mod ring;
mod weight;

pub use listing::{ListQuery, Page, Sort, StaleCursor};
pub use ring::{MOST_BYTES, MOST_OBSERVATIONS, ObservationRing};

#[cfg(test)]
mod tests;
