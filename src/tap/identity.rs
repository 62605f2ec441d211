//! Which engine it is, by what it says of itself outside of any acceptance payload. A hint only: a payload outranks it.

use http::header::{self, HeaderMap};
use serde::Deserialize;

use crate::record::EngineName;

/// Largest list of models that is read, in bytes.
pub(super) const LARGEST_MODEL_LIST: usize = 64 << 10;

/// By the response's `Server` field: llama.cpp names itself, uvicorn is anybody.
pub(super) fn by_server(headers: &HeaderMap) -> Option<EngineName> {
    let server = headers.get(header::SERVER)?.as_bytes();
    server
        .starts_with(b"llama.cpp")
        .then_some(EngineName::LlamaCpp)
}

#[derive(Deserialize)]
struct ModelList {
    data: Vec<Model>,
}

#[derive(Deserialize)]
struct Model {
    owned_by: String,
}

/// By `owned_by` in the answer to `GET /v1/models`.
pub(super) fn by_models(body: &[u8]) -> Option<EngineName> {
    let list: ModelList = serde_json::from_slice(body).ok()?;
    match list.data.first()?.owned_by.as_str() {
        "vllm" => Some(EngineName::Vllm),
        "sglang" => Some(EngineName::Sglang),
        "llamacpp" => Some(EngineName::LlamaCpp),
        "tensorrt_llm" => Some(EngineName::TensorrtLlm),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_name_themselves() {
        let models = |owner: &str| {
            by_models(
                format!(r#"{{"object":"list","data":[{{"id":"m","owned_by":"{owner}"}}]}}"#)
                    .as_bytes(),
            )
        };
        assert_eq!(models("vllm"), Some(EngineName::Vllm));
        assert_eq!(models("sglang"), Some(EngineName::Sglang));
        assert_eq!(models("somebody"), None);
        assert_eq!(by_models(b"[]"), None);
        let mut headers = HeaderMap::new();
        assert_eq!(by_server(&headers), None);
        headers.insert(header::SERVER, "llama.cpp".parse().unwrap());
        assert_eq!(by_server(&headers), Some(EngineName::LlamaCpp));
    }
}
