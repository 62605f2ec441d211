//! What the fuzz targets found stays found: every input under `fixtures/fuzz` runs through its target again, and so do
//! the inputs that a target begins with, so that a target that no longer fits the code is seen here.

#![cfg(feature = "fuzzing")]
#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use spectap::proxy::fuzzing as proxy;
use spectap::scrape::fuzzing as scrape;
use spectap::tap::fuzzing as tap;

type Entry = fn(&[u8]);

const TARGETS: &[(&str, Entry)] = &[
    ("splitter", tap::splitter),
    ("scanner", tap::scanner),
    ("reply", tap::reply),
    ("decoder", tap::decoder),
    ("needle", tap::needle),
    ("splice", tap::splice),
    ("strip", tap::strip),
    ("adapter_vllm", tap::adapter_vllm),
    ("adapter_tensorrt_llm", tap::adapter_tensorrt_llm),
    ("adapter_sglang", tap::adapter_sglang),
    ("adapter_llamacpp", tap::adapter_llamacpp),
    ("adapter_others", tap::adapter_others),
    ("heads", proxy::heads),
    ("exposition", scrape::exposition),
];

/// Inputs of one target that are run here; `make fuzz` runs all of them.
const MOST_INPUTS: usize = 24;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Runs inputs and names the one that fails.
fn run(target: Entry, inputs: &[PathBuf]) {
    for file in inputs {
        let input = fs::read(file).unwrap();
        let outcome = std::panic::catch_unwind(|| target(&input));
        assert!(outcome.is_ok(), "{} fails", file.display());
    }
}

#[test]
fn what_was_found_once_is_not_found_again() {
    let folder = root().join("tests/fixtures/fuzz");
    for (name, target) in TARGETS {
        run(*target, &files(&folder.join(name)));
    }
    let known: BTreeSet<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
    for found in files(&folder).iter().filter(|path| path.is_dir()) {
        let name = found.file_name().unwrap().to_str().unwrap();
        assert!(known.contains(name), "{} is no target", found.display());
    }
}

#[test]
fn every_target_takes_the_inputs_that_it_begins_with() {
    let seeds = tempfile::tempdir().unwrap();
    let made = Command::new("sh")
        .arg(root().join("fuzz/seeds.sh"))
        .arg(seeds.path())
        .status()
        .unwrap();
    assert!(made.success(), "fuzz/seeds.sh: {made}");
    for (name, target) in TARGETS {
        let mut inputs = files(&seeds.path().join(name));
        assert!(inputs.len() > 3, "{name} begins with {inputs:?}");
        inputs.truncate(MOST_INPUTS);
        run(*target, &inputs);
    }
}

#[test]
fn the_targets_are_those_that_fuzzing_runs() {
    let manifest = fs::read_to_string(root().join("fuzz/Cargo.toml")).unwrap();
    let listed: BTreeSet<&str> = manifest
        .split("[[bin]]")
        .skip(1)
        .map(|bin| bin.split('"').nth(1).unwrap())
        .collect();
    let known: BTreeSet<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
    assert_eq!(listed, known);
    for name in known {
        let file = root().join(format!("fuzz/fuzz_targets/{name}.rs"));
        let text = fs::read_to_string(file).unwrap();
        assert!(text.contains(&format!("::fuzzing::{name}(data)")), "{name}");
    }
}
