//! SGLang's payloads, on the OpenAI routes and on its own.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| spectap::tap::fuzzing::adapter_sglang(data));
