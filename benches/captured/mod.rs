//! Bodies of stored vLLM responses, as the benchmarks feed them.

use std::path::Path;

/// Body of a stored response; chunk framing, if any, is taken off line by line.
pub(crate) fn body(case: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/captures/vllm-0.32.0")
        .join(case)
        .with_extension("http");
    let bytes = std::fs::read(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
    let text = String::from_utf8_lossy(&bytes);
    let (_, body) = text.split_once("\r\n\r\n").unwrap_or_default();
    if body.starts_with('{') {
        return body.as_bytes().to_vec();
    }
    body.lines()
        .filter(|line| line.starts_with("data: "))
        .flat_map(|line| [line, "\n\n"])
        .collect::<String>()
        .into_bytes()
}
