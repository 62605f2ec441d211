//! The filter of a stream that holds something injected.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| spectap::tap::fuzzing::strip(data));
