//! The `spectap` program: parse, check, run.
fn main() {}
