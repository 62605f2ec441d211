//! Every simulated engine: its counters are read for what they are, and equal its own log.

use serde_json::json;
use spectap::simulate::EngineKind;

use crate::support::{Tap, chat, engine, is_settled, total, truth};

/// What an engine's page must lead to.
struct Expected {
    kind: EngineKind,
    name: &'static str,
    flags: &'static [&'static str],
    /// Whether drafted and accepted tokens are counted.
    counts_drafts: bool,
    /// Whether its records tell steps.
    records_steps: bool,
    version: &'static str,
    gauges: usize,
}

const ENGINES: [Expected; 4] = [
    Expected {
        kind: EngineKind::Vllm,
        name: "vllm",
        flags: &[],
        counts_drafts: true,
        records_steps: true,
        version: "0.32.0",
        gauges: 0,
    },
    Expected {
        kind: EngineKind::TensorrtLlm,
        name: "tensorrt_llm",
        flags: &[],
        counts_drafts: true,
        records_steps: true,
        version: "1.3.0",
        gauges: 1,
    },
    Expected {
        kind: EngineKind::Sglang,
        name: "sglang",
        flags: &["--engine=sglang"],
        counts_drafts: false,
        records_steps: true,
        version: "0.5.23",
        gauges: 6,
    },
    Expected {
        kind: EngineKind::LlamaCpp,
        name: "llamacpp",
        flags: &[],
        counts_drafts: true,
        records_steps: false,
        version: "b11434-9f1c2d7e",
        gauges: 0,
    },
];

#[tokio::test]
async fn what_each_engine_counts_is_what_it_did_and_the_records_hold_all_of_it() {
    for expected in ENGINES {
        let (name, engine) = (expected.name, engine(expected.kind).await);
        let upstream = format!("--upstream={}", engine.url());
        let flags: Vec<&str> = [upstream.as_str()]
            .iter()
            .chain(expected.flags)
            .copied()
            .collect();
        let tap = Tap::start(&flags).await;
        tap.summary_once("", is_looking).await;
        for _ in 0..12 {
            chat(tap.data.unwrap(), &json!({})).await;
        }
        let truth = truth(&engine.log);
        let counter = if expected.counts_drafts {
            ("total_accepted_draft_tokens", truth.accepted)
        } else {
            ("total_spec_decode_steps", truth.steps)
        };
        let summary = tap
            .summary_once("", |summary| {
                total(summary, counter.0) == Some(counter.1) && is_settled(summary)
            })
            .await;
        assert_eq!(
            total(&summary, "total_spec_decode_steps"),
            Some(truth.steps),
            "{name}"
        );
        let drafted = expected.counts_drafts.then_some(truth.drafted);
        assert_eq!(total(&summary, "total_draft_tokens"), drafted, "{name}");
        let server = &summary["server"];
        assert_eq!(server["engine"], name);
        assert_eq!(server["version"], expected.version, "{name}");
        assert_eq!(
            server["gauges"].as_array().unwrap().len(),
            expected.gauges,
            "{name}"
        );
        let histogram = &server["pooled_spec_decode_acceptance_histogram"];
        if expected.counts_drafts {
            let told: u64 = histogram
                .as_object()
                .unwrap()
                .values()
                .map(|steps| steps.as_u64().unwrap())
                .sum();
            assert_eq!(told, truth.steps, "{name}");
        } else {
            assert!(histogram.is_null(), "{name}: {histogram}");
        }
        let coverage = &summary["coverage"];
        let part = if expected.records_steps {
            "steps"
        } else {
            "accepted"
        };
        assert_eq!(coverage[part]["share"], 1.0, "{name}: {coverage}");
        let series = tap.metrics().await;
        assert!(
            series.contains("\nspectap_coverage_ratio 1\n"),
            "{name}: {series}"
        );
        let info = format!("spectap_engine_info{{backend=\"{name}\",");
        let version = format!("version=\"{}\"", expected.version);
        let line = series.lines().find(|line| line.starts_with(&info));
        assert!(line.unwrap().contains(&version), "{name}: {series}");
        tap.stop().await;
    }
}

fn is_looking(summary: &serde_json::Value) -> bool {
    summary["server"].is_object()
}
