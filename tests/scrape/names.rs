//! `/metrics/engine-names`: the same sums under the names that other tools look for, and never on `/metrics`.

use std::collections::BTreeMap;

use serde_json::json;
use spectap::scrape::read_exposition;
use spectap::simulate::EngineKind;

use crate::support::{Tap, chat, engine, get, is_settled, total, truth};

/// Sums by name, over all labels but the position.
fn sums(page: &str, prefix: &str) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    read_exposition(page.as_bytes(), |sample| {
        if let Some(name) = sample.name.strip_prefix(prefix)
            && name.starts_with("num_")
            && sample.value > 0.0
        {
            let position = sample.label("position").unwrap_or_default();
            *sums.entry(format!("{name} {position}")).or_default() += sample.value as u64;
        }
    });
    sums
}

#[tokio::test]
async fn both_pages_have_the_same_sums_and_no_name_of_an_engine_is_on_metrics() {
    for (kind, flags, ours) in [
        (EngineKind::Vllm, &[][..], "spectap_server_spec_decode_"),
        (EngineKind::Vllm, &["--no-scrape"], "spectap_spec_decode_"),
        (EngineKind::TensorrtLlm, &[], "spectap_server_spec_decode_"),
        // It does not count accepted tokens: the records do.
        (
            EngineKind::Sglang,
            &["--engine=sglang"],
            "spectap_spec_decode_",
        ),
        (EngineKind::LlamaCpp, &[], "spectap_server_spec_decode_"),
    ] {
        let engine = engine(kind).await;
        let upstream = format!("--upstream={}", engine.url());
        let all: Vec<&str> = [upstream.as_str()].iter().chain(flags).copied().collect();
        let tap = Tap::start(&all).await;
        if flags != ["--no-scrape"] {
            tap.summary_once("", |summary| summary["server"].is_object())
                .await;
        }
        for _ in 0..6 {
            chat(tap.data.unwrap(), &json!({})).await;
        }
        let steps = truth(&engine.log).steps;
        if flags != ["--no-scrape"] {
            tap.summary_once("", |summary| {
                total(summary, "total_spec_decode_steps") == Some(steps)
            })
            .await;
        }
        if ours == "spectap_spec_decode_" {
            // The last exchange may still be on its way into the records.
            tap.summary_once("", |summary| {
                let metrics = &summary["sequences"]["metrics"];
                metrics["total_spec_decode_steps"]["avg"].as_f64() == Some(steps as f64)
            })
            .await;
        }
        let (page, metrics) = (
            get(tap.admin, "/metrics/engine-names").await,
            tap.metrics().await,
        );
        let named = sums(&page, "vllm:spec_decode_");
        assert_eq!(named, sums(&metrics, ours), "{kind:?} {flags:?}");
        assert_eq!(named["num_drafts_total "], steps, "{kind:?} {flags:?}");
        assert!(
            named.contains_key("num_accepted_tokens_per_pos_total 0"),
            "{named:?}"
        );
        for line in metrics.lines().filter(|line| !line.starts_with('#')) {
            let is_ours = ["spectap_", "process_"]
                .iter()
                .any(|ours| line.starts_with(ours));
            assert!(is_ours, "{line}");
        }
        // Without the suffix in the TYPE line AIPerf's reader takes a counter for unknown.
        for line in page.lines().filter(|line| line.starts_with("# TYPE")) {
            assert!(line.ends_with("_total counter"), "{line}");
        }
        tap.stop().await;
    }
}

#[tokio::test]
async fn the_source_can_be_chosen_and_a_wrong_one_is_refused() {
    let engine = engine(EngineKind::Vllm).await;
    let tap = Tap::start(&[&format!("--upstream={}", engine.url())]).await;
    tap.summary_once("", |summary| summary["server"].is_object())
        .await;
    chat(tap.data.unwrap(), &json!({"n": 2})).await;
    chat(tap.data.unwrap(), &json!({})).await;
    let all = truth(&engine.log).steps;
    tap.summary_once("", |summary| {
        is_settled(summary) && total(summary, "total_spec_decode_steps") == Some(all)
    })
    .await;
    let steps = async |query: &str| {
        let page = get(tap.admin, &format!("/metrics/engine-names{query}")).await;
        sums(&page, "vllm:spec_decode_")["num_drafts_total "]
    };
    assert_eq!(steps("").await, all);
    // Where AIPerf looks, told of the page without this.
    assert_eq!(steps("/metrics").await, all);
    assert_eq!(steps("?source=server").await, all);
    assert!(steps("?source=requests").await < all);
    let url = format!("http://{}/metrics/engine-names?source=x", tap.admin);
    let requester = spectap::scrape::Requester::new(crate::support::DEADLINE);
    assert_eq!(requester.get(&url).await.unwrap().status, 400);
    tap.stop().await;
}
