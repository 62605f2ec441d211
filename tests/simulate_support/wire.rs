//! Requests as they were sent for the captures, and a client that speaks raw bytes.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The raw request of a capture, from its name and its `.request.json`; see the captures' README.
pub(crate) fn request(path: &Path, name: &str, key: Option<&str>) -> Vec<u8> {
    if name == "h2-prior-knowledge" {
        return b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec();
    }
    let body = body(path, name);
    let (method, target) = target(name);
    let version = if name.contains("http10") {
        "HTTP/1.0"
    } else {
        "HTTP/1.1"
    };
    let mut head =
        format!("{method} {target} {version}\r\nHost: 127.0.0.1:8000\r\nAccept: */*\r\n");
    if let Some(key) = key {
        head += &format!("Authorization: Bearer {key}\r\n");
    }
    let extra = [
        ("accept-gzip", "Accept-Encoding: gzip, deflate, br\r\n"),
        ("orca-json", "endpoint-load-metrics-format: JSON\r\n"),
        ("orca-text", "endpoint-load-metrics-format: TEXT\r\n"),
        ("request-id", "X-Request-Id: abc-123\r\n"),
        ("expect-continue", "Expect: 100-continue\r\n"),
    ];
    extra
        .iter()
        .filter(|(part, _)| name.contains(part))
        .for_each(|(_, line)| head += line);
    head += if name.contains("keepalive") {
        "Connection: keep-alive\r\n"
    } else {
        "Connection: close\r\n"
    };
    let mut bytes = head.into_bytes();
    if let Some(body) = body {
        bytes.extend(b"Content-Type: application/json\r\n");
        if name.contains("request-chunked") {
            let (first, second) = body.as_bytes().split_at(body.len() / 2);
            bytes.extend(b"Transfer-Encoding: chunked\r\n\r\n");
            for chunk in [first, second] {
                bytes.extend(format!("{:x}\r\n", chunk.len()).bytes());
                bytes.extend(chunk);
                bytes.extend(b"\r\n");
            }
            bytes.extend(b"0\r\n\r\n");
        } else {
            bytes.extend(format!("Content-Length: {}\r\n\r\n{body}", body.len()).bytes());
        }
    } else {
        bytes.extend(b"\r\n");
    }
    bytes
}

/// The body on one line, as it was sent; a body that is no JSON as it is.
fn body(path: &Path, name: &str) -> Option<String> {
    if name == "error-chat-too-long" {
        // Too long to be kept: 68,050 characters with the end of the message.
        let content = "x".repeat(68_049);
        let messages = serde_json::json!([{"role": "user", "content": content}]);
        return Some(serde_json::json!({"model": "tiny-model", "messages": messages}).to_string());
    }
    let file = path.with_file_name(format!("{name}.request.json"));
    let text = std::fs::read_to_string(file).ok()?;
    Some(serde_json::from_str::<Value>(&text).map_or(text, |value| value.to_string()))
}

fn target(name: &str) -> (&'static str, String) {
    let name = name.strip_prefix("error-").unwrap_or(name);
    let kind = name.split('-').next().unwrap();
    match (name, kind) {
        ("chat-batch", _) => ("POST", "/v1/chat/completions/batch".into()),
        ("wrong-method", _) => ("GET", "/v1/chat/completions".into()),
        ("unknown-path", _) => ("GET", "/v1/nothing".into()),
        ("head-health", _) => ("HEAD", "/health".into()),
        ("options-chat", _) => ("OPTIONS", "/v1/chat/completions".into()),
        ("models", _) => ("GET", "/v1/models".into()),
        (_, "chat") => ("POST", "/v1/chat/completions".into()),
        (_, "completions") => ("POST", "/v1/completions".into()),
        (_, "generate") => ("POST", "/inference/v1/generate".into()),
        (_, "messages") => ("POST", "/v1/messages".into()),
        _ => ("GET", format!("/{name}")),
    }
}

/// Sends raw bytes on a new connection and reads until the server closes it. A body after `Expect: 100-continue` is
/// sent only once the interim response is there.
pub(crate) async fn exchange(address: SocketAddr, request: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let mut answered = Vec::new();
    let mut rest = request;
    if request.windows(8).any(|part| part == b"Expect: ") {
        let head = request
            .windows(4)
            .position(|part| part == b"\r\n\r\n")
            .unwrap()
            + 4;
        stream.write_all(&request[..head]).await.unwrap();
        rest = &request[head..];
        while !answered.ends_with(b"\r\n\r\n") {
            assert!(
                stream.read_buf(&mut answered).await.unwrap() > 0,
                "closed before the interim response"
            );
        }
    }
    stream.write_all(rest).await.unwrap();
    let all = stream.read_to_end(&mut answered);
    tokio::time::timeout(Duration::from_secs(20), all)
        .await
        .expect("the server did not close")
        .unwrap();
    answered
}

/// The body of a raw response, its chunk framing undone.
pub(crate) fn body_of(response: &[u8]) -> String {
    let end = response
        .windows(4)
        .position(|part| part == b"\r\n\r\n")
        .unwrap()
        + 4;
    let (head, mut rest) = response.split_at(end);
    if !String::from_utf8_lossy(head)
        .to_ascii_lowercase()
        .contains("transfer-encoding: chunked")
    {
        return String::from_utf8(rest.to_vec()).unwrap();
    }
    let mut body = Vec::new();
    loop {
        let line = rest.windows(2).position(|part| part == b"\r\n").unwrap();
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..line]).unwrap(), 16).unwrap();
        if size == 0 {
            return String::from_utf8(body).unwrap();
        }
        body.extend(&rest[line + 2..line + 2 + size]);
        rest = &rest[line + 2 + size + 2..];
    }
}

/// The JSON of each `data:` event of a stream, but for the sentinel.
pub(crate) fn events(response: &[u8]) -> Vec<Value> {
    body_of(response)
        .split("\n\n")
        .filter_map(|event| event.strip_prefix("data: "))
        .filter(|data| *data != "[DONE]")
        .map(|data| serde_json::from_str(data).unwrap())
        .collect()
}

/// A POST of `body` that closes the connection.
pub(crate) fn post(target: &str, body: &Value) -> Vec<u8> {
    let body = body.to_string();
    let head = "Host: x\r\nContent-Type: application/json\r\nConnection: close";
    format!(
        "POST {target} HTTP/1.1\r\n{head}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// A GET that closes the connection.
pub(crate) fn get(target: &str) -> Vec<u8> {
    format!("GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").into_bytes()
}
