//! `spectap report --source`: of a tap, and of an engine with no tap at all.

use clap::Parser;
use serde_json::{Value, json};
use spectap::cli::{Cli, Command};
use spectap::report::{ReportError, run};
use spectap::simulate::EngineKind;

use crate::support::{Tap, chat, engine, is_settled, truth};

async fn report(flags: &[&str]) -> Result<String, ReportError> {
    let cli = Cli::try_parse_from(["spectap", "report"].iter().chain(flags)).unwrap();
    let Command::Report(args) = cli.command else {
        unreachable!()
    };
    let mut out = Vec::new();
    run(&args, &mut out).await?;
    Ok(String::from_utf8(out).unwrap())
}

#[tokio::test]
async fn an_engine_that_runs_is_reported_without_a_tap_by_its_address_or_its_page() {
    for (kind, path) in [
        (EngineKind::Vllm, "/metrics"),
        (EngineKind::TensorrtLlm, "/prometheus/metrics"),
        (EngineKind::Sglang, "/metrics"),
        (EngineKind::LlamaCpp, "/metrics"),
    ] {
        let engine = engine(kind).await;
        for _ in 0..5 {
            chat(engine.address, &json!({})).await;
        }
        let steps = truth(&engine.log).steps;
        let page = format!("--from={}{path}", engine.url());
        for from in [format!("--from={}", engine.url()), page] {
            let json = report(&["--source=server", "--format=json", &from])
                .await
                .unwrap();
            let json: Value = serde_json::from_str(&json).unwrap();
            let told = &json["server"]["metrics"]["total_spec_decode_steps"]["avg"];
            assert_eq!(told.as_f64(), Some(steps as f64), "{kind:?} {json}");
            assert!(json["server"]["from"].is_null());
        }
        let table = report(&["--source=server", &format!("--from={}", engine.url())]).await;
        let table = table.unwrap();
        assert!(table.contains("Spec Decode: Server"), "{table}");
        assert!(table.contains("since the engine began to count"), "{table}");
        let has_catch = kind != EngineKind::Vllm;
        assert_eq!(table.contains("Note: "), has_catch, "{table}");
    }
}

#[tokio::test]
async fn a_tap_reports_both_and_says_how_much_the_records_hold() {
    let engine = engine(EngineKind::Vllm).await;
    let tap = Tap::start(&[&format!("--upstream={}", engine.url())]).await;
    tap.summary_once("", |summary| summary["server"].is_object())
        .await;
    chat(tap.data.unwrap(), &json!({})).await;
    chat(tap.data.unwrap(), &json!({"n": 2})).await;
    let steps = truth(&engine.log).steps;
    tap.summary_once("", |summary| {
        is_settled(summary) && summary["coverage"]["steps"]["moved"] == steps
    })
    .await;
    let from = format!("--from=http://{}", tap.admin);
    let both = report(&["--source=both", &from]).await.unwrap();
    let server = report(&["--source=server", &from]).await.unwrap();
    let requests = report(&[&from]).await.unwrap();
    for text in [&both, &server, &requests] {
        // Also where only the records were asked for: they are of a part.
        assert!(text.contains("Coverage: the records hold"), "{text}");
        assert!(
            text.contains("exchanges without record: n_gt_1 1"),
            "{text}"
        );
    }
    assert!(
        both.contains("Spec Decode: Server") && both.contains("Token-Weighted"),
        "{both}"
    );
    assert!(
        !server.contains("Token-Weighted") && !requests.contains("Server"),
        "{server}"
    );
    tap.stop().await;
}

#[tokio::test]
async fn where_there_are_no_counters_the_report_says_what_to_do() {
    let engine = engine(EngineKind::Vllm).await;
    let tap = Tap::start(&[&format!("--upstream={}", engine.url()), "--no-scrape"]).await;
    let from = format!("--from=http://{}", tap.admin);
    let error = report(&["--source=server", &from]).await.unwrap_err();
    assert!(error.to_string().contains("--scrape URL"), "{error}");
    let page = crate::pages::Pages::start(None).await;
    let from = format!("--from=http://{}", page.address);
    let error = report(&["--source=server", &from]).await.unwrap_err();
    assert!(
        error.to_string().contains("neither a tap nor an engine"),
        "{error}"
    );
    let error = report(&["--source=server", "--by=model", &from])
        .await
        .unwrap_err();
    assert!(error.to_string().contains("--source server"), "{error}");
    tap.stop().await;
}
