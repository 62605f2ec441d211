//! The page on engines has a section for each engine that the code reads, and for no other.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test may panic anywhere"
)]

use std::collections::BTreeSet;
use std::path::Path;

use spectap::record::EngineName;
use strum::VariantArray;

fn page() -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/engines.md")).unwrap()
}

/// Name in the heading and text of each section that is about one engine.
fn sections(page: &str) -> Vec<(&str, &str)> {
    page.split("\n## ")
        .skip(1)
        .filter_map(|section| {
            let (heading, text) = section.split_once('\n')?;
            let name = heading.split_once("(`")?.1.strip_suffix("`)")?;
            Some((name, text))
        })
        .collect()
}

#[test]
fn every_engine_has_one_section_and_no_other_has_one() {
    let page = page();
    let named: Vec<&str> = sections(&page).into_iter().map(|(name, _)| name).collect();
    let known: Vec<&str> = EngineName::VARIANTS
        .iter()
        .map(|engine| engine.as_str())
        .collect();
    assert_eq!(named, known);
}

#[test]
fn every_section_says_how_to_switch_it_on_what_is_shown_and_what_is_not() {
    for (name, text) in sections(&page()) {
        for part in ["**Switch on**:", "**Shows**:", "**Can't**:"] {
            assert_eq!(text.matches(part).count(), 1, "{name}: {part}");
        }
    }
}

#[test]
fn engine_names_are_the_same_in_json() {
    let mut names = BTreeSet::new();
    for engine in EngineName::VARIANTS {
        assert_eq!(
            serde_json::to_value(engine).unwrap(),
            engine.as_str(),
            "{engine:?}"
        );
        names.insert(engine.as_str());
    }
    let expected = [
        "llamacpp",
        "lmstudio",
        "mlx_vlm",
        "sglang",
        "tensorrt_llm",
        "tokenspeed",
        "usage_details",
        "vllm",
        "vllm_mlx",
    ];
    assert_eq!(names, expected.into());
}
