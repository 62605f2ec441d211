//! Heads and bodies of requests on their way through the hop.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| spectap::proxy::fuzzing::heads(data));
