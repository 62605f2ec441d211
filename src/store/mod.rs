//! What is kept of single exchanges: the ring of recent observations behind `/api/v1/requests`, and the records file.
//!
//! `stats` keeps sums for ever; this keeps the newest exchanges one by one, within a fixed number of bytes, and writes each
//! of them to a file where one is wanted.

mod listing;
pub mod records;
mod ring;
mod weight;

pub use listing::{ListQuery, Page, Sort, StaleCursor};
pub use ring::{MOST_BYTES, MOST_OBSERVATIONS, ObservationRing};

#[cfg(test)]
mod tests;
