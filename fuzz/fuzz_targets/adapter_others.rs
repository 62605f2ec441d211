//! The payloads of all other engines.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| spectap::tap::fuzzing::adapter_others(data));
