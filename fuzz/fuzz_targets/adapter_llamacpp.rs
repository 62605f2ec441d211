//! llama.cpp's timings.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| spectap::tap::fuzzing::adapter_llamacpp(data));
