//! The byte search that decides whether an event is parsed.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| spectap::tap::fuzzing::needle(data));
