//! A recorded run once more: the engine's responses, streamed through a serving instance to a client that asks for no
//! usage.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::Command;

use serde_json::{Value, json};

use crate::artifacts::Artifacts;
use crate::support::client::{Client, post};
use crate::support::origin::{Origin, RawRequest, Then, chunk};
use crate::support::tap::Tap;

/// An instance that has seen all responses of a run.
pub(crate) struct Replayed {
    tap: Tap,
    run: String,
    requests: usize,
}

impl Replayed {
    /// Sends the run's requests one after the other; every answer has come before this returns.
    pub(crate) fn of(run: &str) -> Self {
        let log = Artifacts::of(run).log();
        let answers: BTreeMap<String, Value> = log
            .iter()
            .map(|entry| (request_id(entry), entry.clone()))
            .collect();
        let origin = Origin::start(move |_, request, stream| {
            let pieces = events(&answers[&id_sent(request)], asks_for_usage(request));
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n";
            stream.write_all(head.as_bytes()).unwrap();
            for piece in pieces {
                stream.write_all(&chunk(piece.as_bytes())).unwrap();
            }
            stream.write_all(b"0\r\n\r\n").unwrap();
            Then::KeepAlive
        });
        let tap = Tap::before(origin.address);
        let mut client = Client::connect(tap.data);
        for entry in &log {
            client.send(post(
                "/v1/chat/completions",
                r#"{"model":"fake-model","messages":[{"role":"user","content":"Hi"}],"stream":true}"#,
                &format!("X-Request-ID: {}\r\n", request_id(entry)),
            ));
            let answer = client.response();
            assert_eq!(answer.status(), 200);
            let body = String::from_utf8(answer.body()).unwrap();
            assert!(body.ends_with("data: [DONE]\n\n"), "{body}");
            assert!(
                !body.contains("\"usage\""),
                "a client that asked for none: {body}"
            );
        }
        let replayed = Self {
            tap,
            run: run.to_owned(),
            requests: log.len(),
        };
        replayed.observations();
        replayed
    }

    pub(crate) fn run(&self) -> &str {
        &self.run
    }

    /// Every observation, newest first.
    pub(crate) fn observations(&self) -> Vec<Value> {
        let seen = self.tap.observations(self.requests);
        assert_eq!(seen.len(), self.requests);
        seen
    }

    pub(crate) fn summary(&self) -> Value {
        self.tap.json("/api/v1/summary")
    }

    /// What the program `spectap report` prints.
    pub(crate) fn report(&self) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spectap"));
        // A setting of the machine that runs the tests must not reach it.
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("SPECTAP_")) {
            command.env_remove(name);
        }
        let from = format!("--from=http://{}", self.tap.admin);
        let output = command.args(["report", &from]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }
}

fn request_id(entry: &Value) -> String {
    entry["x_request_id"].as_str().unwrap().to_owned()
}

fn id_sent(request: &RawRequest) -> String {
    let lines = request.head.lines();
    let mut values = lines.filter_map(|line| line.strip_prefix("X-Request-ID: "));
    values.next().unwrap().to_owned()
}

fn asks_for_usage(request: &RawRequest) -> bool {
    let body: Value = serde_json::from_str(&request.body()).unwrap();
    body["stream_options"]["include_usage"] == true
}

/// The events that the engine sent: an opener, a content chunk per verify step, the finish, and usage if asked.
fn events(entry: &Value, with_usage: bool) -> Vec<String> {
    let is_vllm = entry["engine"] == "vllm";
    let tokens: Vec<u64> = serde_json::from_value(entry["tokens_per_chunk"].clone()).unwrap();
    let mut chunks = vec![choice(
        entry,
        json!({"role": "assistant", "content": ""}),
        None,
    )];
    for &count in &tokens {
        let text = " tok".repeat(count as usize);
        chunks.push(choice(entry, json!({"content": text}), None));
    }
    let is_zero_step = entry["kind"] == "zero";
    let finish = if is_zero_step { "length" } else { "stop" };
    chunks.push(choice(entry, json!({}), Some(finish)));
    if with_usage {
        let mut usage = base(entry);
        usage["choices"] = json!([]);
        usage["usage"] = entry["usage"].clone();
        chunks.push(usage);
    }
    let last_content = tokens.len();
    let mut carriers = vec![];
    if is_vllm && with_usage {
        carriers.push(chunks.len() - 1);
    } else if !is_vllm {
        carriers.push(last_content + 1);
    }
    if entry["kind"] == "broken:sent_twice" {
        carriers.push(last_content);
    }
    for carrier in carriers
        .into_iter()
        .filter(|_| entry["payload"] != "absent")
    {
        let place = if is_vllm {
            &mut chunks[carrier]["metrics"]
        } else {
            &mut chunks[carrier]["choices"][0]
        };
        place["speculative_decoding"] = entry["payload"].clone();
    }
    let mut events: Vec<String> = chunks
        .iter()
        .map(|chunk| format!("data: {chunk}\n\n"))
        .collect();
    events.push("data: [DONE]\n\n".to_owned());
    events
}

fn base(entry: &Value) -> Value {
    json!({"id": entry["request_id"], "object": "chat.completion.chunk", "created": 1, "model": "fake-model"})
}

fn choice(entry: &Value, delta: Value, finish_reason: Option<&str>) -> Value {
    let mut chunk = base(entry);
    chunk["choices"] =
        json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason}]);
    chunk
}
