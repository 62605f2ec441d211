//! The fixed set of requests. They are written as bytes: what a library would tidy up is part of the question.

use serde_json::{Value, json};

/// Most tokens that one request makes the engine generate.
pub(super) const MAX_TOKENS: u64 = 24;

/// Header lines of the request with many.
const MANY: usize = 200;

/// Size of the large body in bytes.
const LARGE: usize = 1 << 20;

const CHAT: &str = "/v1/chat/completions";
const COMPLETIONS: &str = "/v1/completions";
const JSON: &str = "Content-Type: application/json\r\n";

/// One request, or two in one go.
pub(super) struct Request {
    pub(super) name: &'static str,
    pub(super) head: Vec<u8>,
    pub(super) body: Vec<u8>,
    /// The answers that it gets; `true` for one to a HEAD request.
    pub(super) answers: Vec<bool>,
    /// The body waits for 100 Continue.
    pub(super) expects: bool,
    /// The server is asked to close.
    pub(super) closes: bool,
    /// The engine generates.
    pub(super) generates: bool,
    /// In HTTP/1.0.
    pub(super) is_http10: bool,
    /// In HTTP/1.1 and without `Host`, which spectap refuses and an engine may take.
    pub(super) lacks_host: bool,
}

/// What all requests have in common.
struct Common<'a> {
    host: &'a str,
    model: &'a str,
    /// The line with the key, or nothing.
    key: String,
}

impl Common<'_> {
    fn get(&self, name: &'static str, line: &str, more: &str) -> Request {
        let Self { host, key, .. } = self;
        Request {
            name,
            head: format!("{line} HTTP/1.1\r\nHost: {host}\r\n{key}{more}\r\n").into_bytes(),
            body: Vec::new(),
            answers: vec![line.starts_with("HEAD ")],
            expects: false,
            closes: more.contains("close"),
            generates: false,
            is_http10: false,
            lacks_host: false,
        }
    }

    fn post(&self, name: &'static str, path: &str, more: &str, body: String) -> Request {
        let length = format!("{JSON}{more}Content-Length: {}\r\n", body.len());
        Request {
            body: body.into_bytes(),
            ..self.get(name, &format!("POST {path}"), &length)
        }
    }

    /// A body that asks for a few tokens, the same ones each time.
    fn chat(&self, more: Value) -> String {
        let mut body = json!({
            "model": self.model,
            "messages": [{"role": "user", "content": "Count from one to ten."}],
            "max_tokens": MAX_TOKENS, "temperature": 0.0, "seed": 1,
        });
        add(&mut body, more);
        body.to_string()
    }

    fn completion(&self, more: Value) -> String {
        let mut body = json!({
            "model": self.model, "prompt": "one two three four",
            "max_tokens": MAX_TOKENS, "temperature": 0.0, "seed": 1,
        });
        add(&mut body, more);
        body.to_string()
    }

    fn generating(&self, name: &'static str, path: &str, more: &str, body: String) -> Request {
        Request {
            generates: true,
            ..self.post(name, path, more, body)
        }
    }
}

fn add(body: &mut Value, more: Value) {
    if let (Value::Object(body), Value::Object(more)) = (body, more) {
        body.extend(more);
    }
}

/// The request that lists the models.
pub(super) fn models(host: &str, key: Option<&str>) -> Request {
    common(host, "", key).get("models", "GET /v1/models", "")
}

fn common<'a>(host: &'a str, model: &'a str, key: Option<&str>) -> Common<'a> {
    let key = key.map_or_else(String::new, |key| {
        format!("Authorization: Bearer {key}\r\n")
    });
    Common { host, model, key }
}

/// All of them, in the order in which they are sent.
pub(super) fn all(host: &str, model: &str, key: Option<&str>) -> Vec<Request> {
    let common = common(host, model, key);
    let mut all = plain(&common);
    all.extend(generating(&common));
    all.extend(refused(&common));
    all.extend(odd(&common));
    all
}

/// Requests that generate nothing.
fn plain(common: &Common<'_>) -> Vec<Request> {
    let many: String = (0..MANY)
        .map(|number| format!("X-Verify-{number}: {number}\r\n"))
        .collect();
    vec![
        common.get("models", "GET /v1/models", ""),
        common.get("health", "GET /health", ""),
        common.get("closing", "GET /v1/models", "Connection: close\r\n"),
        common.get("head", "HEAD /v1/models", ""),
        common.get("options", "OPTIONS /v1/models", ""),
        common.get("wrong-method", "DELETE /v1/models", ""),
        common.get("no-such-path", "GET /verify/no/such/path", ""),
        common.get("odd-path", "GET //v1/./models/../%6dodels;a=b//", ""),
        common.get("odd-query", "GET /v1/models?a=b&&c=%20+&d=/?&e", ""),
        common.get("empty-query", "GET /v1/models?", ""),
        common.get("many-headers", "GET /v1/models", &many),
        common.get(
            "repeated-headers",
            "GET /v1/models",
            "Accept: text/html\r\nX-Verify: 1\r\nAccept: application/json\r\nx-verify: 2\r\n",
        ),
        common.get(
            "gzip",
            "GET /v1/models",
            "Accept-Encoding: gzip, deflate, br\r\n",
        ),
    ]
}

/// Requests that generate.
fn generating(common: &Common<'_>) -> Vec<Request> {
    let options = |options: Value| json!({"stream": true, "stream_options": options});
    let stream = || json!({"stream": true});
    let chat = |name, more| common.generating(name, CHAT, "", common.chat(more));
    vec![
        chat("chat", json!({})),
        chat("chat-stream", stream()),
        chat("chat-stream-usage", options(json!({"include_usage": true}))),
        chat(
            "chat-stream-no-usage",
            options(json!({"include_usage": false})),
        ),
        chat("chat-stream-null-options", options(Value::Null)),
        chat("chat-stream-empty-options", options(json!({}))),
        chat(
            "chat-stream-continuous-usage",
            options(json!({"continuous_usage_stats": true})),
        ),
        common.generating("completion", COMPLETIONS, "", common.completion(json!({}))),
        common.generating(
            "completion-stream",
            COMPLETIONS,
            "",
            common.completion(stream()),
        ),
        common.generating(
            "gzip-stream",
            CHAT,
            "Accept-Encoding: gzip, deflate, br\r\n",
            common.chat(stream()),
        ),
        common.generating(
            "closing-stream",
            CHAT,
            "Connection: close\r\n",
            common.chat(stream()),
        ),
        chunked(common),
        expecting(common),
        large(common),
        http10_chat(common),
    ]
}

/// Requests that an engine refuses.
fn refused(common: &Common<'_>) -> Vec<Request> {
    let chat = |name, body| common.post(name, CHAT, "", body);
    vec![
        chat("bad-json", "{\"model\": ".to_owned()),
        chat("empty-body", String::new()),
        chat("no-messages", json!({"model": common.model}).to_string()),
        chat(
            "unknown-model",
            common.chat(json!({"model": "spectap-verify-no-such-model", "stream": true})),
        ),
        chat(
            "usage-without-stream",
            common.chat(json!({"stream_options": {"include_usage": true}, "max_tokens": 1})),
        ),
        chat(
            "bad-value",
            common.chat(json!({"stream": true, "max_tokens": -1})),
        ),
    ]
}

/// Requests that are unusual in their form.
fn odd(common: &Common<'_>) -> Vec<Request> {
    let Common { host, key, .. } = common;
    let pipelined = format!(
        "GET /v1/models HTTP/1.1\r\nHost: {host}\r\n{key}\r\nHEAD /v1/models HTTP/1.1\r\nHost: {host}\r\n{key}\r\n"
    );
    vec![
        Request {
            head: pipelined.into_bytes(),
            answers: vec![false, true],
            ..common.get("pipelined-pair", "GET /", "")
        },
        Request {
            head: format!("GET /v1/models HTTP/1.0\r\n{key}\r\n").into_bytes(),
            closes: true,
            is_http10: true,
            ..common.get("http-1-0", "GET /", "")
        },
        Request {
            head: format!("GET /v1/models HTTP/1.1\r\n{key}\r\n").into_bytes(),
            lacks_host: true,
            ..common.get("no-host", "GET /", "")
        },
    ]
}

fn chunked(common: &Common<'_>) -> Request {
    let body = common.chat(json!({"stream": true}));
    let (first, second) = body.split_at(body.len() / 2);
    let chunks = format!(
        "{:x}\r\n{first}\r\n{:x}\r\n{second}\r\n0\r\n\r\n",
        first.len(),
        second.len()
    );
    Request {
        body: chunks.into_bytes(),
        generates: true,
        ..common.get(
            "chunked-request",
            &format!("POST {CHAT}"),
            &format!("{JSON}Transfer-Encoding: chunked\r\n"),
        )
    }
}

fn expecting(common: &Common<'_>) -> Request {
    Request {
        expects: true,
        ..common.generating(
            "expect-continue",
            CHAT,
            "Expect: 100-continue\r\n",
            common.chat(json!({"stream": true})),
        )
    }
}

/// Large in a member that no engine reads, so that it costs no prompt.
fn large(common: &Common<'_>) -> Request {
    let body = common.chat(json!({"user": "x".repeat(LARGE)}));
    common.generating("large-body", CHAT, "", body)
}

fn http10_chat(common: &Common<'_>) -> Request {
    let body = common.chat(json!({"stream": true}));
    let key = &common.key;
    let head = format!(
        "POST {CHAT} HTTP/1.0\r\n{key}{JSON}Content-Length: {}\r\n\r\n",
        body.len()
    );
    Request {
        head: head.into_bytes(),
        body: body.into_bytes(),
        closes: true,
        generates: true,
        is_http10: true,
        ..common.get("http-1-0-stream", "GET /", "")
    }
}
