//! The signatures are disjoint: nothing that any server is known to send is claimed by two engines.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::{Map, Value, json};
use strum::VariantArray;

use super::super::adapter::{
    Adapter, GENERATION_METADATA, META_INFO, OLDER_CHOICE, SGLANG_DETAILS, SGLANG_ORDERED,
    SPECULATIVE_DECODING, STATS, TIMINGS, USAGE_DETAILS,
};
use crate::record::EngineName;

fn adapters() -> impl Iterator<Item = &'static Adapter> {
    [
        SPECULATIVE_DECODING,
        OLDER_CHOICE,
        SGLANG_DETAILS,
        SGLANG_ORDERED,
        META_INFO,
        TIMINGS,
        GENERATION_METADATA,
        STATS,
        USAGE_DETAILS,
    ]
    .into_iter()
    .flatten()
}

/// Everybody who would claim this object, wherever it stands.
fn claiming(object: &Map<String, Value>) -> BTreeSet<EngineName> {
    adapters()
        .filter(|adapter| (adapter.claims)(object))
        .map(|adapter| adapter.engine)
        .collect()
}

/// The object and all objects in it.
fn objects<'a>(value: &'a Value, found: &mut Vec<&'a Map<String, Value>>) {
    match value {
        Value::Object(object) => {
            found.push(object);
            object.values().for_each(|inner| objects(inner, found));
        }
        Value::Array(list) => list.iter().for_each(|inner| objects(inner, found)),
        _ => {}
    }
}

/// The JSON texts of a stored response: the file, or each event's data.
fn texts(path: &Path) -> Vec<Value> {
    let text = String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
    match serde_json::from_str(&text) {
        Ok(whole) => vec![whole],
        Err(_) => text
            .lines()
            .filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok())
            .collect(),
    }
}

#[test]
fn no_sample_is_claimed_twice_and_every_engine_claims_its_own() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/samples");
    let mut claims: BTreeMap<EngineName, BTreeSet<String>> = BTreeMap::new();
    for folder in fs::read_dir(&samples).unwrap() {
        let folder = folder.unwrap().path();
        if !folder.is_dir() {
            continue;
        }
        for file in fs::read_dir(&folder).unwrap() {
            let file = file.unwrap().path();
            for value in texts(&file) {
                let mut found = Vec::new();
                objects(&value, &mut found);
                for object in found {
                    let claiming = claiming(object);
                    assert!(
                        claiming.len() < 2,
                        "{}: {claiming:?} claim {object:?}",
                        file.display()
                    );
                    let folder = folder.file_name().unwrap().to_string_lossy();
                    for engine in claiming {
                        claims.entry(engine).or_default().insert(folder.to_string());
                    }
                }
            }
        }
    }
    let named = |engine: EngineName, folders: &[&str]| {
        let folders = folders.iter().map(|folder| (*folder).to_owned()).collect();
        (engine, folders)
    };
    let expected: BTreeMap<EngineName, BTreeSet<String>> = [
        named(EngineName::Vllm, &["framing", "vllm"]),
        named(EngineName::TensorrtLlm, &["trtllm"]),
        named(EngineName::Sglang, &["sglang"]),
        named(EngineName::LlamaCpp, &["llamacpp"]),
        named(EngineName::MlxVlm, &["mlx_vlm"]),
        named(EngineName::VllmMlx, &["vllm_mlx"]),
        named(EngineName::TokenSpeed, &["tokenspeed"]),
        named(EngineName::LmStudio, &["lmstudio"]),
        named(EngineName::UsageDetails, &["openai", "smg", "tabbyapi"]),
    ]
    .into();
    assert_eq!(claims, expected);
    assert_eq!(claims.len(), EngineName::VARIANTS.len());
}

#[test]
fn what_two_engines_share_is_nobodys_signature() {
    for shared in [
        json!({"acceptance_histogram": [1], "num_spec_steps": 1, "num_spec_tokens": 3}),
        json!({"spec_verify_ct": 3}),
        json!({"spec_verify_ct": 3, "spec_accepted_tokens": 4}),
        json!({"draft_n": null, "draft_n_accepted": null, "draft_rounds": null}),
        json!({"prompt_n": 3, "predicted_n": 4}),
        json!({"draft_n": 3}),
        json!({"draft_n": 0, "draft_n_accepted": 0}),
        json!({"mtp_drafts": 0, "mtp_accepted": 0}),
        json!({"accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0}),
        json!({"accepted_prediction_tokens": null, "rejected_prediction_tokens": 4}),
        json!({"verify_lengths": [1]}),
        json!({}),
    ] {
        assert_eq!(claiming(shared.as_object().unwrap()), [].into(), "{shared}");
    }
}

#[test]
fn rounds_tell_mlx_vlm_from_llamacpp() {
    for (timings, engine) in [
        (
            json!({"draft_n": 6, "draft_n_accepted": 3}),
            EngineName::LlamaCpp,
        ),
        (
            json!({"draft_n": 6, "draft_n_accepted": 3, "draft_rounds": 2}),
            EngineName::MlxVlm,
        ),
    ] {
        assert_eq!(
            claiming(timings.as_object().unwrap()),
            [engine].into(),
            "{timings}"
        );
    }
}
