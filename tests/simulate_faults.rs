//! What goes wrong on purpose goes wrong in the same way on every engine.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test may fail by panicking"
)]

mod simulate_support;

use std::time::{Duration, Instant};

use serde_json::json;
use simulate_support::engines::{chat, json_of, model};
use simulate_support::wire::{body_of, events, exchange};
use spectap::simulate::{Engine, EngineKind, Faults, Outcome, RefusedMember, Running, Settings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const ENGINES: [EngineKind; 4] = [
    EngineKind::Vllm,
    EngineKind::TensorrtLlm,
    EngineKind::Sglang,
    EngineKind::LlamaCpp,
];

async fn engine(kind: EngineKind, faults: Faults) -> Running {
    let settings = Settings::new(kind, vec![model("m", "0.8,0.7,0.6")]);
    Engine::start(Settings { faults, ..settings })
        .await
        .unwrap()
}

fn stream() -> Vec<u8> {
    chat(json!({"max_tokens": 40, "stream": true, "stream_options": {"include_usage": true}}))
}

#[tokio::test]
async fn a_stream_is_cut_after_so_many_events() {
    for kind in ENGINES {
        let faults = Faults {
            cut_after_events: Some(3),
            ..Faults::default()
        };
        let engine = engine(kind, faults).await;
        let answered = exchange(engine.address, &stream()).await;
        let text = String::from_utf8_lossy(&answered);
        assert_eq!(text.matches("data: ").count(), 3, "{kind:?}: {text}");
        assert!(text.ends_with("\n\n\r\n"), "{kind:?}: {text}");
        let entries = engine.log.entries();
        assert_eq!(entries[0].outcome, Outcome::Cancelled);
        // What is not streamed is left alone.
        let body = json_of(&engine, &chat(json!({"max_tokens": 5}))).await;
        assert!(body["choices"].is_array(), "{kind:?}");
    }
}

#[tokio::test]
async fn requests_with_a_certain_member_are_refused() {
    for kind in ENGINES {
        let refuse = RefusedMember {
            name: "stream_options".into(),
            status: "422 Unprocessable Entity".into(),
        };
        let faults = Faults {
            refuse: Some(refuse),
            ..Faults::default()
        };
        let engine = engine(kind, faults).await;
        let refused = exchange(engine.address, &stream()).await;
        let text = String::from_utf8_lossy(&refused);
        assert!(
            text.starts_with("HTTP/1.1 422 Unprocessable Entity\r\n"),
            "{text}"
        );
        let taken = exchange(
            engine.address,
            &chat(json!({"stream": true, "max_tokens": 5})),
        )
        .await;
        assert!(taken.starts_with(b"HTTP/1.1 200 "), "{kind:?}");
        assert_eq!(engine.log.entries().len(), 1);
    }
}

#[tokio::test]
async fn an_error_ends_a_stream_in_the_middle() {
    for kind in ENGINES {
        let faults = Faults {
            fail_after_pieces: Some(2),
            ..Faults::default()
        };
        let engine = engine(kind, faults).await;
        let answered = exchange(engine.address, &stream()).await;
        let error = events(&answered).pop().unwrap();
        assert!(
            error["error"].is_object() || error["object"] == "error",
            "{kind:?}: {error}"
        );
        let ends = body_of(&answered).ends_with("data: [DONE]\n\n");
        assert_eq!(ends, kind != EngineKind::LlamaCpp);
        let entries = engine.log.entries();
        assert_eq!(entries[0].outcome, Outcome::Failed, "{kind:?}");
        assert!(!entries[0].payload_on_the_wire && !entries[0].usage_on_the_wire);
    }
}

/// How long it took until the bytes were there that tell how the text ended, whether the token counts were there by then,
/// and how long until the end.
async fn times(engine: &Running) -> (Duration, bool, Duration) {
    let mut client = TcpStream::connect(engine.address).await.unwrap();
    let start = Instant::now();
    client.write_all(&stream()).await.unwrap();
    let (mut answered, mut finished) = (Vec::new(), None);
    while client.read_buf(&mut answered).await.unwrap() > 0 {
        let text = String::from_utf8_lossy(&answered);
        if finished.is_none() && text.contains("\"finish_reason\":\"length\"") {
            finished = Some((start.elapsed(), text.contains("\"usage\":{")));
        }
    }
    let (finished, counted) = finished.unwrap();
    (finished, counted, start.elapsed())
}

#[tokio::test]
async fn the_end_of_a_text_and_what_follows_it_can_be_late() {
    let late = Duration::from_millis(200);
    for kind in ENGINES {
        let finish = Faults {
            finish_delay: late,
            ..Faults::default()
        };
        let (finished, _, _) = times(&engine(kind, finish).await).await;
        assert!(finished >= late, "{kind:?}: {finished:?}");

        let trailer = Faults {
            trailer_delay: late,
            ..Faults::default()
        };
        let (_, counted, ended) = times(&engine(kind, trailer).await).await;
        assert!(ended >= late, "{kind:?}: {ended:?}");
        // llama.cpp writes both at once, the others while the client already has the end of the text.
        assert_eq!(counted, kind == EngineKind::LlamaCpp, "{kind:?}");
    }
}
