//! The adapters: a payload in each of its engine's places inside a response that is otherwise well-formed.

use std::time::Instant;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{Input, reference};
use crate::engines::{self, Options, Verdict};
use crate::tap::reply::ReplyObserver;
use crate::tap::reply::fuzzing::{check_verdict, verdict_of_objects};

/// What stands before and behind a payload.
type Place = (&'static str, &'static str);

const IN_METRICS: Place = (
    r#"{"id":"r","object":"chat.completion","model":"m","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":7},"metrics":{"speculative_decoding":"#,
    r#","queue_time_ms":0.5}}"#,
);
const AT_CHOICE: Place = (
    r#"{"id":"r","choices":[{"index":0,"message":{"role":"assistant","content":"a"},"finish_reason":"stop","speculative_decoding":"#,
    r#"}],"usage":{"prompt_tokens":9,"completion_tokens":7}}"#,
);
const AT_SECOND_CHOICE: Place = (
    r#"{"id":"r","choices":[{"index":1,"delta":{},"finish_reason":"length","speculative_decoding":"#,
    r#"}]}"#,
);
const OLDER_AT_CHOICE: Place = (
    r#"{"id":"r","choices":[{"index":0,"text":"a","finish_reason":"stop","speculative_decoding_stats":"#,
    r#"}]}"#,
);
const IN_RESPONSE: Place = (
    r#"{"type":"response.completed","response":{"id":"r","status":"completed","metrics":{"speculative_decoding":"#,
    r#"}}}"#,
);
const DETAILS: Place = (
    r#"{"id":"r","choices":[],"usage":null,"sglext":{"spec_tokens_details":"#,
    r#"}}"#,
);
const ORDERED: Place = (
    r#"{"id":"r","choices":[],"sglext":{"speculative_decoding_stats":"#,
    r#"}}"#,
);
const META_INFO: Place = (r#"{"text":"a","meta_info":"#, r#"}"#);
const META_INFO_OF_SECOND: Place = (r#"{"text":"a","index":1,"meta_info":"#, r#"}"#);
const ORDERED_IN_META_INFO: Place = (
    r#"{"text":"a","meta_info":{"id":"r","finish_reason":{"type":"length","length":7},"completion_tokens":7,"speculative_decoding_stats":"#,
    r#"}}"#,
);
const TIMINGS: Place = (
    r#"{"id":"r","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"timings":"#,
    r#"}"#,
);
const TIMINGS_OF_USAGE: Place = (
    r#"{"id":"r","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":7},"timings":"#,
    r#"}"#,
);
const NATIVE_TIMINGS: Place = (
    r#"{"index":0,"content":"","stop":true,"stop_type":"limit","tokens_predicted":7,"tokens_evaluated":9,"timings":"#,
    r#"}"#,
);
const METADATA: Place = (
    r#"{"id":"r","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"generation_metadata":"#,
    r#"}"#,
);
const STATS: Place = (
    r#"{"id":"r","choices":[{"index":0,"message":{"content":"a"},"finish_reason":"stop"}],"stats":"#,
    r#"}"#,
);
const USAGE: Place = (r#"{"id":"r","choices":[],"usage":"#, r#"}"#);
const USAGE_DETAILS: Place = (
    r#"{"id":"r","choices":[],"usage":{"completion_tokens":7,"completion_tokens_details":"#,
    r#"}}"#,
);

/// What every stream here begins with, so that content has come before the payload.
const BEGINNING: &str = r#"{"id":"r","choices":[{"index":0,"delta":{"role":"assistant","content":"a"},"finish_reason":null}]}"#;

/// vLLM's payloads, the current and the older shape: see [`adapter_others`] for what is promised.
pub fn adapter_vllm(data: &[u8]) {
    adapter(data, &[IN_METRICS, OLDER_AT_CHOICE, AT_CHOICE, IN_RESPONSE]);
}

/// TensorRT-LLM's payloads: see [`adapter_others`] for what is promised.
pub fn adapter_tensorrt_llm(data: &[u8]) {
    adapter(data, &[AT_CHOICE, AT_SECOND_CHOICE, IN_METRICS]);
}

/// SGLang's payloads: see [`adapter_others`] for what is promised.
pub fn adapter_sglang(data: &[u8]) {
    adapter(
        data,
        &[
            DETAILS,
            META_INFO,
            ORDERED,
            ORDERED_IN_META_INFO,
            META_INFO_OF_SECOND,
        ],
    );
}

/// llama.cpp's timings: see [`adapter_others`] for what is promised.
pub fn adapter_llamacpp(data: &[u8]) {
    adapter(data, &[TIMINGS, TIMINGS_OF_USAGE, NATIVE_TIMINGS]);
}

/// The payloads of all other engines. Promises of every adapter: no panic on any JSON; the verdict does not contradict
/// itself; every record keeps its identities and can be written and read again; what the reducer leaves out would have
/// changed nothing.
///
/// Each line of the text is a payload and becomes one event; a line that is no JSON ends the text. The low three bits of `how`
/// say in which of the engine's places the first stands, the others follow in the places behind it. Bit 5: one more payload,
/// the first again; bit 6: two sequences were asked for; bit 7: only the first payload, in a JSON body. `cuts` decides how a
/// stream is cut.
pub fn adapter_others(data: &[u8]) {
    adapter(
        data,
        &[TIMINGS, META_INFO, METADATA, STATS, USAGE, USAGE_DETAILS],
    );
}

fn adapter(data: &[u8], places: &[Place]) {
    let Some(input) = Input::read(data) else {
        return;
    };
    let mut payloads: Vec<&str> = input
        .text
        .split(|byte| *byte == b'\n')
        // A CR ends a line of a stream, and would cut the payload in two.
        .filter(|line| !line.contains(&b'\r'))
        .map_while(|line| serde_json::from_slice::<&RawValue>(line).ok())
        .map(RawValue::get)
        .collect();
    let Some(&first) = payloads.first() else {
        return;
    };
    if input.has(5) {
        payloads.push(first);
    }
    let is_body = input.has(7);
    if is_body {
        payloads.truncate(1);
    }
    let texts: Vec<String> = (usize::from(input.how & 7)..)
        .zip(&payloads)
        .map(|(place, payload)| {
            let (before, behind) = places[place % places.len()];
            format!("{before}{payload}{behind}")
        })
        .collect();
    let n = if input.has(6) { 2 } else { 1 };
    let verdict = if is_body {
        let observed = observe(ReplyObserver::new_json(), &[texts[0].as_bytes()], n);
        let cut: Vec<&[u8]> = texts[0].as_bytes().chunks(1).collect();
        assert_eq!(observe(ReplyObserver::new_json(), &cut, n), observed);
        observed
    } else {
        let events = [BEGINNING.to_owned()];
        let stream: String = events
            .iter()
            .chain(&texts)
            .map(|text| format!("data: {text}\n\n"))
            .collect();
        let whole = Input {
            text: stream.as_bytes(),
            ..input
        };
        let observed = observe(ReplyObserver::new_stream(), &[whole.text], n);
        assert_eq!(
            observe(ReplyObserver::new_stream(), &whole.pieces(), n),
            observed
        );
        observed
    };
    check_verdict(&verdict);
    check_unreduced(&texts, &verdict, n);
}

fn options() -> Options {
    Options {
        usage_details: true,
    }
}

fn observe(observer: ReplyObserver, pieces: &[&[u8]], n: u32) -> Verdict {
    let mut observer = observer.reading(options());
    let at = Instant::now();
    for piece in pieces {
        observer.see(piece, at);
    }
    let reply = observer.finish();
    let mut verdict = engines::read(&reply.payloads, &reply.usage, n);
    for record in &mut verdict.records {
        record.completion_tokens = None;
    }
    verdict
}

/// A text that a parser does not take is not compared.
fn check_unreduced(texts: &[String], verdict: &Verdict, n: u32) {
    let objects: Option<Vec<Map<String, Value>>> = texts
        .iter()
        .map(|text| match serde_json::from_str(text) {
            Ok(parsed) if reference::is_kept_whole(text.as_bytes(), &parsed) => match parsed {
                Value::Object(object) => Some(object),
                _ => None,
            },
            _ => None,
        })
        .collect();
    let Some(objects) = objects else {
        return;
    };
    let mut unreduced = verdict_of_objects(&objects, options(), n);
    for record in &mut unreduced.records {
        record.completion_tokens = None;
    }
    assert_eq!(unreduced, *verdict, "what was left out mattered");
}
