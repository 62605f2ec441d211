//! Export: the statistics in the forms that people and tools read. Nothing here changes a number.
//!
//! [`snapshot()`] is the machine form; [`summary()`] is computed from it and nothing else, so that a report made
//! elsewhere from a fetched snapshot shows what the tap itself shows. [`table`] prints a summary as AIPerf prints its
//! Spec Decode section; [`compare`] shows runs side by side; [`prometheus`] offers the same sums as Prometheus series.

pub mod categories;
pub mod compare;
pub mod csv;
pub mod engine_names;
pub mod figures;
pub mod markdown;
pub mod openmetrics;
pub mod prometheus;
pub mod query;
pub mod rows;
pub mod snapshot;
pub mod summary;
pub mod synthetic;
pub mod table;

pub use query::{By, Query, QueryError};
pub use snapshot::{Snapshot, snapshot};
pub use summary::{Summary, summary};
