//! vLLM's payloads, the current and the older shape.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| spectap::tap::fuzzing::adapter_vllm(data));
