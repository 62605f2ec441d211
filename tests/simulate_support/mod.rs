//! What the tests of the simulated engine share: raw requests, scripts read off captures, and masks.

#![allow(dead_code, reason = "each test file uses its part")]

pub(crate) mod capture;
pub(crate) mod engines;
pub(crate) mod llama_cpp;
pub(crate) mod mask;
pub(crate) mod wire;
