//! What goes out: Prometheus series, the summary, the snapshot.

pub mod openmetrics;
pub mod snapshot;
pub mod summary;
