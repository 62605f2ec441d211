//! The reader of an engine's metrics page, and what it leads to.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| spectap::scrape::fuzzing::exposition(data));
