//! Coverage: a gap is what is missing, and nothing else is a gap.

use std::time::Duration;

use serde_json::json;
use spectap::simulate::{Engine, EngineKind};

use crate::support::{Tap, chat, engine, is_settled, settings, truth};

#[tokio::test]
async fn the_gap_is_that_of_the_requests_whose_replies_carry_no_numbers_and_their_reasons_stand_beside_it()
 {
    let engine = engine(EngineKind::Vllm).await;
    let tap = Tap::start(&[&format!("--upstream={}", engine.url())]).await;
    tap.summary_once("", |summary| summary["server"].is_object())
        .await;
    let address = tap.data.unwrap();
    for more in [
        json!({}),
        json!({"stream": false}),
        json!({"n": 2}),
        json!({"n": 3, "stream": false}),
    ] {
        chat(address, &more).await;
    }
    let (told, untold) = engine
        .log
        .entries()
        .into_iter()
        .partition::<Vec<_>, _>(|it| it.payload_on_the_wire);
    let steps = |entries: &[spectap::simulate::Entry]| -> usize {
        let sequences = entries.iter().flat_map(|entry| &entry.sequences);
        sequences.map(|sequence| sequence.accepted.len()).sum()
    };
    assert_eq!((told.len(), untold.len()), (2, 2));
    let summary = tap
        .summary_once("", |summary| {
            is_settled(summary) && summary["coverage"]["unrecorded"]["n_gt_1"] == 2
        })
        .await;
    let coverage = &summary["coverage"];
    assert_eq!(coverage["steps"]["seen"], steps(&told), "{coverage}");
    assert_eq!(coverage["steps"]["moved"], steps(&told) + steps(&untold));
    assert_eq!(coverage["generation_tokens"]["share"], 1.0, "{coverage}");
    tap.stop().await;
}

#[tokio::test]
async fn a_client_past_the_tap_is_a_gap_in_steps_and_in_generated_tokens() {
    let engine = engine(EngineKind::Vllm).await;
    let tap = Tap::start(&[&format!("--upstream={}", engine.url())]).await;
    tap.summary_once("", |summary| summary["server"].is_object())
        .await;
    chat(tap.data.unwrap(), &json!({})).await;
    let through = truth(&engine.log);
    for _ in 0..3 {
        chat(engine.address, &json!({})).await;
    }
    let all = truth(&engine.log);
    let summary = tap
        .summary_once("", |summary| {
            is_settled(summary) && summary["coverage"]["steps"]["moved"] == all.steps
        })
        .await;
    let coverage = &summary["coverage"];
    assert_eq!(coverage["steps"]["seen"], through.steps, "{coverage}");
    assert_eq!(
        coverage["generation_tokens"]["seen"],
        through.completion_tokens
    );
    assert_eq!(
        coverage["generation_tokens"]["moved"],
        all.completion_tokens
    );
    assert_eq!(coverage["unrecorded"], json!({}));
    tap.stop().await;
}

#[tokio::test]
async fn a_request_under_way_is_no_gap() {
    let slow = spectap::simulate::Settings {
        step_time: Duration::from_millis(30),
        ..settings(EngineKind::Vllm)
    };
    let engine = Engine::start(slow).await.unwrap();
    let tap = Tap::start(&[&format!("--upstream={}", engine.url())]).await;
    tap.summary_once("", |summary| summary["server"].is_object())
        .await;
    let address = tap.data.unwrap();
    chat(address, &json!({"max_tokens": 9})).await;
    tap.summary_once("", is_settled).await;
    let before = truth(&engine.log).steps;
    let long = tokio::spawn(async move { chat(address, &json!({"max_tokens": 400})).await });
    // Its steps have moved the engine's counters, and there is no record of it.
    let summary = tap
        .summary_once("", |summary| {
            crate::support::total(summary, "total_spec_decode_steps") > Some(before)
        })
        .await;
    assert!(!long.is_finished(), "the reply was too short for the test");
    assert_eq!(summary["coverage"]["steps"]["share"], 1.0, "{summary}");
    assert_eq!(summary["coverage"]["settled"], true);
    long.await.unwrap();
    let all = truth(&engine.log).steps;
    let summary = tap
        .summary_once("", |summary| {
            is_settled(summary) && summary["coverage"]["steps"]["moved"] == all
        })
        .await;
    assert_eq!(summary["coverage"]["steps"]["share"], 1.0, "{summary}");
    tap.stop().await;
}

#[tokio::test]
async fn a_restart_of_the_engine_inside_the_window_leaves_no_gap_and_is_told() {
    let first = engine(EngineKind::Vllm).await;
    let address = first.address;
    let tap = Tap::start(&[&format!("--upstream={}", first.url())]).await;
    tap.summary_once("", |summary| summary["server"].is_object())
        .await;
    for _ in 0..5 {
        chat(tap.data.unwrap(), &json!({})).await;
    }
    let before = truth(&first.log).steps;
    tap.summary_once("", |summary| {
        is_settled(summary) && summary["coverage"]["steps"]["moved"] == before
    })
    .await;
    first.stop().await;
    let listener = tokio::net::TcpListener::bind(address).await.unwrap();
    let (log, stop) = (
        spectap::simulate::Log::new(),
        tokio_util::sync::CancellationToken::new(),
    );
    let second = tokio::spawn(spectap::simulate::run(
        listener,
        settings(EngineKind::Vllm),
        log.clone(),
        stop.clone(),
    ));
    tap.summary_once("", |summary| {
        summary["server"]["resets"] == 1 && summary["server"]["trouble"].is_null()
    })
    .await;
    for _ in 0..2 {
        chat(tap.data.unwrap(), &json!({})).await;
    }
    let all = before + truth(&log).steps;
    let summary = tap
        .summary_once("?window=5m", |summary| {
            is_settled(summary) && summary["coverage"]["steps"]["moved"] == all
        })
        .await;
    assert_eq!(summary["coverage"]["steps"]["share"], 1.0, "{summary}");
    assert_eq!(summary["coverage"]["resets"], 1);
    stop.cancel();
    second.await.unwrap();
    tap.stop().await;
}

#[tokio::test]
async fn a_run_has_the_movement_since_it_began_and_no_other() {
    let engine = engine(EngineKind::Vllm).await;
    // So seldom that only a reading made for the run can part the two.
    let tap = Tap::start(&[
        &format!("--upstream={}", engine.url()),
        "--scrape-interval=1h",
    ])
    .await;
    tap.summary_once("", |summary| summary["server"].is_object())
        .await;
    let begin = async |name: &str| {
        let url = format!("http://{}/api/v1/runs", tap.admin);
        let body = json!({ "name": name }).to_string();
        let requester = spectap::scrape::Requester::new(crate::support::DEADLINE);
        assert_eq!(requester.post(&url, body.into()).await.unwrap().status, 201);
    };
    chat(tap.data.unwrap(), &json!({})).await;
    begin("one").await;
    let before = truth(&engine.log).steps;
    for _ in 0..3 {
        chat(tap.data.unwrap(), &json!({})).await;
    }
    begin("two").await;
    let of_run = truth(&engine.log).steps - before;
    chat(tap.data.unwrap(), &json!({})).await;
    begin("three").await;
    let summary = tap.summary("?run=one").await;
    assert_eq!(
        crate::support::total(&summary, "total_spec_decode_steps"),
        Some(of_run)
    );
    assert_eq!(summary["coverage"]["steps"]["share"], 1.0, "{summary}");
    tap.stop().await;
}
