//! The simulated SGLang writes what SGLang's own classes write; it tells numbers only where it is asked to, its log and
//! its metrics page say the same.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test may fail by panicking"
)]

mod simulate_support;

use std::path::Path;

use serde_json::{Value, json};
use simulate_support::engines::{
    chat, completions, json_of, model, sample, series, shape, until, with,
};
use simulate_support::mask;
use simulate_support::wire::{body_of, events, exchange, get, post};
use spectap::simulate::{
    Engine, EngineKind, Faults, Generation, Level, Outcome, Running, Settings,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

fn settings() -> Settings {
    Settings::new(EngineKind::Sglang, vec![model("m", "0.8,0.7,0.6")])
}

fn fixture(folder: &str, name: &str) -> String {
    std::fs::read_to_string(Path::new("tests/fixtures").join(folder).join(name)).unwrap()
}

/// The body of the response of an engine that follows a script.
async fn scripted(settings: Settings, script: Generation, request: &[u8]) -> String {
    let script = Some(script);
    let engine = Engine::start(Settings { script, ..settings })
        .await
        .unwrap();
    body_of(&exchange(engine.address, request).await)
}

fn without_ids(text: &str) -> String {
    let mut text = text.to_owned();
    mask::erase(&mut text, "\"id\":\"", |c| c.is_ascii_hexdigit());
    mask::erase(&mut text, "\"created\":", |c| c.is_ascii_digit());
    text
}

/// With the name that SGLang puts where a request names none, and the numbers asked for.
fn asked(more: Value) -> Value {
    with(
        json!({"model": "default", "return_spec_tokens_details": true}),
        more,
    )
}

#[tokio::test]
async fn objects_are_written_as_sglangs_own_classes_write_them() {
    let usage = json!({"include_usage": true});
    let continuous = json!({"continuous_usage_stats": true});
    let cases = [
        ("chat.json", chat(asked(json!({})))),
        ("completions.json", completions(asked(json!({})))),
        (
            "chat_stream.sse",
            chat(asked(json!({"stream": true, "stream_options": usage}))),
        ),
        (
            "chat_stream_continuous.sse",
            chat(json!({"model": "default", "stream": true, "stream_options": continuous})),
        ),
    ];
    for (name, request) in cases {
        let got = scripted(settings(), sample(11, &["Ok."]), &request).await;
        let wanted = fixture("captures/sglang-0.5.23", name);
        assert_eq!(without_ids(&got), without_ids(&wanted), "{name}");
    }
}

#[tokio::test]
async fn a_completions_stream_of_two_sequences_tells_both_in_a_list() {
    let options = json!({"include_usage": true});
    let request = completions(asked(
        json!({"stream": true, "stream_options": options, "n": 2}),
    ));
    let mut script = sample(11, &["Ok."]);
    let mut second = script.pieces[0].clone();
    second.index = 1;
    script.pieces.push(second);
    let got = scripted(settings(), script, &request).await;
    let wanted = fixture("captures/sglang-0.5.23", "completions_stream.sse");
    let mut got: Vec<_> = got.split("\n\n").map(without_ids).collect();
    let wanted: Vec<_> = wanted.split("\n\n").map(without_ids).collect();
    // The fixture has one text, of the first sequence, and its token counts alone.
    let first = got.remove(0);
    assert_eq!(first, got[0].replace("\"index\":1", "\"index\":0"));
    got[0] = first;
    got[2] = got[2].replace(
        "\"total_tokens\":103,\"completion_tokens\":92",
        "\"total_tokens\":57,\"completion_tokens\":46",
    );
    assert_eq!(got, wanted);
}

fn sample_events(name: &str) -> Vec<String> {
    let text = fixture("samples/sglang", name);
    text.trim_end().split("\n\n").map(str::to_owned).collect()
}

#[tokio::test]
async fn an_older_sglang_writes_the_members_of_the_samples_with_their_nulls() {
    let settings = Settings {
        sglang_chunks_with_nulls: true,
        ..settings()
    };
    let usage = json!({"include_usage": true});
    let streams = [
        ("chat_stream_no_usage.sse", json!({"stream": true})),
        (
            "chat_stream_include_usage.sse",
            json!({"stream": true, "stream_options": usage}),
        ),
    ];
    for (name, more) in streams {
        let request = chat(asked(more));
        let got = scripted(settings.clone(), sample(11, &["Ok."]), &request).await;
        let got: Vec<_> = got.trim_end().split("\n\n").map(without_ids).collect();
        let wanted: Vec<_> = sample_events(name)
            .iter()
            // The samples leave out what ended the text.
            .map(|event| {
                without_ids(event).replace(
                    "\"finish_reason\":\"stop\",\"matched_stop\":null",
                    "\"finish_reason\":\"stop\",\"matched_stop\":2",
                )
            })
            .collect();
        assert_eq!(got, wanted, "{name}");
    }
    let got = scripted(settings, sample(11, &["Ok."]), &chat(asked(json!({})))).await;
    let wanted = fixture("samples/sglang", "chat_n1.json");
    assert_eq!(without_ids(&got), without_ids(&wanted));
}

#[tokio::test]
async fn the_native_route_tells_the_numbers_of_the_samples_unasked() {
    let native = |stream: bool| post("/generate", &json!({"text": "hi", "stream": stream}));
    let numbers = |value: &Value| -> Vec<(String, Value)> {
        let members = value["meta_info"].as_object().unwrap().iter();
        members
            .filter(|(name, _)| name.starts_with("spec_"))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    };
    let wanted: Value =
        serde_json::from_str(&fixture("samples/sglang", "generate_native.json")).unwrap();
    let got = scripted(settings(), sample(11, &["Ok."]), &native(false)).await;
    let got: Value = serde_json::from_str(&got).unwrap();
    assert_eq!(numbers(&got), numbers(&wanted));
    assert_eq!(numbers(&got).len(), 6);
    assert_eq!(
        got["meta_info"]["finish_reason"],
        wanted["meta_info"]["finish_reason"]
    );
    // What the sample has, this has in the same order, and a few members more.
    let names = |value: &Value| {
        let members = value["meta_info"].as_object().unwrap();
        members.keys().cloned().collect::<Vec<_>>()
    };
    let more = ["num_retractions", "reasoning_tokens", "weight_version"];
    let common = |value| {
        let mut names = names(value);
        names.retain(|name| !more.contains(&name.as_str()));
        names
    };
    assert_eq!(common(&got), common(&wanted));

    let engine = Engine::start(Settings {
        script: Some(sample(11, &["O", "k."])),
        ..settings()
    })
    .await
    .unwrap();
    let answered = exchange(engine.address, &native(true)).await;
    let events = events(&answered);
    assert_eq!(
        events
            .iter()
            .map(|event| &event["text"])
            .collect::<Vec<_>>(),
        ["O", "Ok."]
    );
    assert_eq!(events[1]["output_ids"].as_array().unwrap().len(), 46);
    assert!(numbers(&events[0]).is_empty());
    assert_eq!(numbers(&events[1]), numbers(&wanted));
    assert!(body_of(&answered).ends_with("\n\ndata: [DONE]\n\n"));
}

#[tokio::test]
async fn several_prompts_are_a_list_on_the_native_route_and_numbered_when_streamed() {
    let engine = Engine::start(settings()).await.unwrap();
    let body = |stream: bool| {
        let sampling = json!({"max_new_tokens": 20});
        post(
            "/generate",
            &json!({"text": ["one", "two"], "sampling_params": sampling, "stream": stream}),
        )
    };
    let list = json_of(&engine, &body(false)).await;
    let entry = engine.log.entries().remove(0);
    for (item, sequence) in list.as_array().unwrap().iter().zip(&entry.sequences) {
        assert_eq!(item["meta_info"]["spec_verify_ct"], sequence.accepted.len());
        assert!(item.get("index").is_none() && sequence.told);
    }
    assert_ne!(list[0]["meta_info"]["id"], list[1]["meta_info"]["id"]);
    let events = events(&exchange(engine.address, &body(true)).await);
    let told: Vec<_> = events
        .iter()
        .filter(|event| event["meta_info"].get("spec_verify_ct").is_some())
        .map(|event| event["index"].as_u64().unwrap())
        .collect();
    assert_eq!(told.len(), 2);
    assert!(told.contains(&0) && told.contains(&1));
}

#[tokio::test]
async fn the_openai_routes_tell_nothing_unasked_and_nothing_where_no_step_ran() {
    let engine = Engine::start(settings()).await.unwrap();
    for request in [
        chat(json!({"max_tokens": 30})),
        completions(json!({"max_tokens": 30, "return_spec_tokens_details": false})),
        chat(json!({"max_tokens": 1, "return_spec_tokens_details": true})),
    ] {
        assert!(json_of(&engine, &request).await.get("sglext").is_none());
    }
    let stream = json!({"max_tokens": 1, "stream": true, "return_spec_tokens_details": true});
    for event in events(&exchange(engine.address, &chat(stream)).await) {
        assert!(event.get("sglext").is_none() && !event["choices"][0].is_null());
    }
    let level = Engine::start(Settings {
        level: Level::None,
        ..settings()
    })
    .await
    .unwrap();
    let body = json_of(&level, &chat(asked(json!({"max_tokens": 30})))).await;
    assert!(body.get("sglext").is_none());
    for engine in [engine, level] {
        assert!(
            engine
                .log
                .entries()
                .iter()
                .all(|entry| !entry.payload_on_the_wire)
        );
    }
}

#[tokio::test]
async fn of_several_prompts_the_first_is_told_and_of_several_sequences_each() {
    let engine = Engine::start(settings()).await.unwrap();
    let more = json!({"max_tokens": 30, "prompt": ["one", "two"]});
    let body = json_of(&engine, &completions(asked(more))).await;
    assert!(body["sglext"]["spec_tokens_details"].is_object());
    let body_n2 = json_of(&engine, &chat(asked(json!({"max_tokens": 30, "n": 2})))).await;
    let entries = engine.log.entries();
    let told = |at: usize| -> Vec<bool> {
        entries[at]
            .sequences
            .iter()
            .map(|sequence| sequence.told)
            .collect()
    };
    assert_eq!((told(0), told(1)), (vec![true, false], vec![true, true]));
    let steps = |sequence: usize, at: usize| entries[at].sequences[sequence].accepted.len();
    assert_eq!(
        body["sglext"]["spec_tokens_details"]["spec_verify_ct"],
        steps(0, 0)
    );
    let list = body_n2["sglext"]["spec_tokens_details"].as_array().unwrap();
    assert_eq!(list.len(), 2);
    assert_eq!(list[1]["spec_verify_ct"], steps(1, 1));
    assert_eq!(engine.log.totals()["m"].on_the_wire.sequences, 3);
}

#[tokio::test]
async fn a_chat_choice_ends_in_a_chunk_of_its_own_once_all_have_ended() {
    let engine = Engine::start(settings()).await.unwrap();
    let more = json!({"max_tokens": 30, "n": 2, "stream": true, "stream_options": {"include_usage": true}});
    let events = events(&exchange(engine.address, &chat(asked(more))).await);
    let reasons: Vec<_> = events
        .iter()
        .map(|event| event["choices"][0]["finish_reason"].is_string())
        .collect();
    let tail = reasons.len() - 4;
    assert!(!reasons[..tail].contains(&true));
    assert_eq!(reasons[tail..], [true, true, false, false]);
    let [sglext, usage] = &events[events.len() - 2..] else {
        unreachable!()
    };
    assert!(sglext["sglext"].is_object() && sglext["choices"] == json!([]));
    assert_eq!(usage["usage"]["completion_tokens"], 60);
}

#[tokio::test]
async fn drafts_are_told_as_if_every_step_had_full_length() {
    let engine = Engine::start(Settings {
        adaptive: true,
        ..settings()
    })
    .await
    .unwrap();
    let body = json_of(&engine, &chat(asked(json!({"max_tokens": 200})))).await;
    let details = &body["sglext"]["spec_tokens_details"];
    let sequence = &engine.log.entries()[0].sequences[0];
    let steps = sequence.accepted.len();
    assert_eq!(details["spec_num_proposed_drafts"], steps * 3);
    assert!(sequence.drafted.iter().sum::<u32>() < steps as u32 * 3);
    let kept: u32 = sequence.accepted.iter().sum();
    assert_eq!(details["spec_num_correct_drafts"], kept);
    assert_eq!(details["spec_accept_length"], 200.0 / steps as f64);
}

#[tokio::test]
async fn usage_may_come_unasked_by_the_servers_own_setting() {
    let engine = Engine::start(Settings {
        force_include_usage: true,
        ..settings()
    })
    .await
    .unwrap();
    let stream = chat(json!({"max_tokens": 10, "stream": true}));
    let events = events(&exchange(engine.address, &stream).await);
    let with_usage = events.iter().filter(|event| event.get("usage").is_some());
    assert_eq!(with_usage.count(), 1);
    assert_eq!(events.last().unwrap()["usage"]["completion_tokens"], 10);
}

/// Requests of all kinds, one of which the client leaves.
async fn served() -> Running {
    let engine = Engine::start(settings()).await.unwrap();
    for at in 0..30 {
        let more = json!({"max_tokens": 10 + at, "stream": at % 2 == 0, "n": 1 + at % 3 / 2});
        let request = if at % 4 == 0 {
            completions(asked(more))
        } else {
            chat(asked(more))
        };
        exchange(engine.address, &request).await;
    }
    engine
}

#[tokio::test]
async fn the_log_agrees_with_the_metrics() {
    let engine = served().await;
    let page = series(&body_of(&exchange(engine.address, &get("/metrics")).await));
    let totals = engine.log.totals();
    let (all, told) = (&totals["m"].all, &totals["m"].on_the_wire);
    let value = |name: &str| page[&format!("sglang:{name}")];
    assert_eq!(
        value("spec_verify_calls_total{model_name=\"m\"}"),
        all.steps as f64
    );
    let tokens = ["true", "false"].map(|streaming| {
        value(&format!(
            "generation_tokens_total{{is_streaming=\"{streaming}\",model_name=\"m\"}}"
        ))
    });
    assert_eq!(tokens.iter().sum::<f64>(), all.completion_tokens as f64);
    assert_eq!((told.steps, told.accepted), (all.steps, all.accepted));
    let labels = "{engine_type=\"unified\",model_name=\"m\",pp_rank=\"0\",tp_rank=\"0\"}";
    assert_eq!(value(&format!("spec_num_draft_tokens{labels}")), 4.0);
    // The gauges tell of the last forty steps, with the bonus token in the length.
    let (length, rate) = (
        value(&format!("spec_accept_length{labels}")),
        value(&format!("spec_accept_rate{labels}")),
    );
    assert!((length - (1.0 + 3.0 * rate)).abs() < 1e-9 && length > 1.0);

    let samples = fixture("samples/sglang", "metrics.prom");
    for name in series(&samples).keys() {
        assert!(page.contains_key(name), "{name}");
    }
    let info = json_of(&engine, &get("/server_info")).await;
    let mean = info["internal_states"][0]["avg_spec_accept_length"]
        .as_f64()
        .unwrap();
    assert!((mean - (1.0 + all.accepted as f64 / all.steps as f64)).abs() < 1e-9);
}

#[tokio::test]
async fn a_request_that_its_client_leaves_moves_no_counter() {
    let engine = Engine::start(Settings {
        step_time: std::time::Duration::from_millis(5),
        ..settings()
    })
    .await
    .unwrap();
    let mut client = TcpStream::connect(engine.address).await.unwrap();
    let request = chat(json!({"max_tokens": 5_000, "stream": true}));
    client.write_all(&request).await.unwrap();
    let mut answered = vec![0; 1_500];
    client.read_exact(&mut answered).await.unwrap();
    drop(client);
    until(&engine.log, |log| !log.entries().is_empty()).await;
    assert_eq!(engine.log.entries()[0].outcome, Outcome::Cancelled);
    assert!(engine.log.totals()["m"].all.steps > 0);
    let page = body_of(&exchange(engine.address, &get("/metrics")).await);
    assert!(!page.contains("sglang:spec_verify_calls_total{"), "{page}");
}

#[tokio::test]
async fn errors_have_sglangs_own_shape() {
    let engine = Engine::start(settings()).await.unwrap();
    let status = |answered: &[u8]| String::from_utf8_lossy(&answered[9..12]).into_owned();
    for request in [
        chat(json!({"messages": []})),
        chat(json!({"messages": 5})),
        chat(json!({"n": 0})),
        completions(json!({"prompt": ""})),
        completions(json!({"n": 1_000_000})),
        completions(json!({"temperature": -1})),
    ] {
        let answered = exchange(engine.address, &request).await;
        assert_eq!(status(&answered), "400");
        let body: Value = serde_json::from_str(&body_of(&answered)).unwrap();
        assert_eq!(
            shape(&body),
            "{object:text,message:text,type:text,param:null,code:number}"
        );
    }
    let native = exchange(engine.address, &post("/generate", &json!({"stream": true}))).await;
    assert_eq!(status(&native), "400");
    let body: Value = serde_json::from_str(&body_of(&native)).unwrap();
    assert_eq!(shape(&body), "{error:{message:text}}");
    assert_eq!(
        status(&exchange(engine.address, &get("/v1/nothing")).await),
        "404"
    );
    assert_eq!(
        status(&exchange(engine.address, &get("/generate")).await),
        "405"
    );
    assert!(engine.log.entries().is_empty());

    let faults = Faults {
        fail_after_pieces: Some(2),
        ..Faults::default()
    };
    let engine = Engine::start(Settings {
        faults,
        ..settings()
    })
    .await
    .unwrap();
    let stream = chat(json!({"max_tokens": 30, "stream": true}));
    let body = body_of(&exchange(engine.address, &stream).await);
    let error = "data: {\"error\": {\"object\": \"error\", \"message\": ";
    assert!(
        body.contains(error) && body.ends_with("}}\n\ndata: [DONE]\n\n"),
        "{body}"
    );
}

#[tokio::test]
async fn a_request_may_call_the_model_what_it_likes() {
    let engine = Engine::start(settings()).await.unwrap();
    let body = json_of(&engine, &chat(json!({"model": "x", "max_tokens": 3}))).await;
    assert_eq!(body["model"], "x");
    assert_eq!(engine.log.entries()[0].model, "m");
    let models = json_of(&engine, &get("/v1/models")).await;
    assert_eq!(models["data"][0]["owned_by"], "sglang");
    assert_eq!(models["data"][0]["id"], "m");
    let info = json_of(&engine, &get("/get_model_info")).await;
    assert_eq!(info["served_model_name"], "m");
}
