//! (stub)

/// Stands in for the real one.
#[derive(Default)]
pub struct Statistics;
