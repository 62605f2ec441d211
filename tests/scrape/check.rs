//! `spectap check` against the simulated engines, right and in every way wrong.

use clap::Parser;
use serde_json::Value;
use spectap::check::{CheckError, run};
use spectap::cli::{Cli, Command};
use spectap::simulate::{
    Acceptance, Engine, EngineKind, Faults, Level, Model, RefusedMember, Settings,
};

use crate::support::settings;

async fn check(address: &str, flags: &[&str]) -> Result<Value, CheckError> {
    let base = ["spectap", "check", "--format=json", "--upstream", address];
    let cli = Cli::try_parse_from(base.iter().chain(flags)).unwrap();
    let Command::Check(args) = cli.command else {
        unreachable!()
    };
    let mut out = Vec::new();
    run(&args, &mut out).await?;
    Ok(serde_json::from_slice(&out).unwrap())
}

fn without_speculation(kind: EngineKind) -> Settings {
    let acceptance = Acceptance::parse("none").unwrap();
    Settings::new(kind, vec![Model::new("m", acceptance)])
}

fn untold(kind: EngineKind) -> Settings {
    Settings {
        level: Level::None,
        ..settings(kind)
    }
}

fn refusing(member: &str) -> Settings {
    let refuse = Some(RefusedMember {
        name: member.to_owned(),
        status: "400 Bad Request".to_owned(),
    });
    Settings {
        faults: Faults {
            refuse,
            ..Faults::default()
        },
        ..settings(EngineKind::Vllm)
    }
}

#[tokio::test]
async fn every_engine_is_told_what_to_change_in_every_broken_configuration() {
    use EngineKind::{LlamaCpp, Sglang, TensorrtLlm, Vllm};
    let with_key = Settings {
        api_key: Some("secret".to_owned()),
        ..settings(Vllm)
    };
    for (settings, code, change) in [
        (settings(Vllm), "numbers_come", "spectap serve"),
        (settings(TensorrtLlm), "numbers_come", "spectap serve"),
        (settings(Sglang), "numbers_come", "spectap serve"),
        (settings(LlamaCpp), "numbers_come", "spectap serve"),
        (
            untold(Vllm),
            "level_off",
            "--per-request-spec-decode-metrics summary",
        ),
        (
            untold(TensorrtLlm),
            "level_off",
            "per_request_spec_decode_stats: true",
        ),
        (
            without_speculation(Vllm),
            "speculation_off",
            "--speculative-config",
        ),
        (
            without_speculation(TensorrtLlm),
            "not_drafted",
            "max_concurrency",
        ),
        (
            without_speculation(Sglang),
            "speculation_off",
            "--speculative-algorithm",
        ),
        (
            without_speculation(LlamaCpp),
            "speculation_off",
            "--model-draft",
        ),
        (with_key, "key_wanted", "--api-key-file"),
        (refusing("stream_options"), "option_refused", ""),
        (refusing("messages"), "refused", ""),
    ] {
        let kind = settings.engine;
        let engine = Engine::start(settings).await.unwrap();
        let checked = check(&engine.url(), &["--yes"]).await.unwrap();
        let verdict = &checked["verdict"];
        assert_eq!(verdict["code"], code, "{kind:?}: {checked:#}");
        let told = verdict["change"].as_str().unwrap_or_default();
        assert!(told.contains(change), "{kind:?} {code}: {told}");
        let names: Vec<_> = checked["checks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|line| line["name"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(names[..2], ["reachable", "engine"], "{names:?}");
    }
}

#[tokio::test]
async fn a_key_from_a_file_opens_the_engine() {
    let engine = Engine::start(Settings {
        api_key: Some("secret".to_owned()),
        ..settings(EngineKind::Vllm)
    })
    .await
    .unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "secret\n").unwrap();
    let key = format!("--api-key-file={}", file.path().display());
    let checked = check(&engine.url(), &["--yes", &key]).await.unwrap();
    assert_eq!(checked["verdict"]["code"], "numbers_come", "{checked:#}");
}

#[tokio::test]
async fn nothing_is_sent_that_costs_before_it_is_allowed() {
    let engine = Engine::start(settings(EngineKind::Vllm)).await.unwrap();
    // Tests have no terminal to ask at.
    let error = check(&engine.url(), &[]).await.unwrap_err();
    assert!(error.to_string().contains("--yes"), "{error}");
    assert!(engine.log.entries().is_empty());
    let address = engine.url();
    engine.stop().await;
    let checked = check(&address, &[]).await.unwrap();
    assert_eq!(checked["verdict"]["code"], "unreachable");
}
