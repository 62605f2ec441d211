//! TensorRT-LLM's payloads.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| spectap::tap::fuzzing::adapter_tensorrt_llm(data));
