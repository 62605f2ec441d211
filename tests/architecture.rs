//! The shape of the source tree: which module may name which, what `proxy` may not know, and how long a file may be.
//!
//! `src/lib.rs` draws the way of the data; the table here is that picture in a form that a test can hold the code to.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

#[path = "architecture/source.rs"]
mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use source::{code_only, code_without_text, named_modules, words};

/// Which top-level modules a top-level module may name. `None`: any, it stands at the top of the tree.
///
/// A new top-level module gets a line here; a new arrow is a decision about the direction of the data, so it wants a
/// reason in the commit that draws it.
const ARROWS: &[(&str, Option<&[&str]>)] = &[
    ("record", Some(&[])),
    ("clock", Some(&[])),
    ("observation", Some(&["record"])),
    ("counters", Some(&[])),
    ("switch", Some(&[])),
    ("runs", Some(&["observation", "clock"])),
    ("logs", Some(&["observation"])),
    ("engines", Some(&["record", "observation"])),
    (
        "tap",
        Some(&[
            "engines",
            "record",
            "observation",
            "counters",
            "switch",
            "runs",
            "clock",
        ]),
    ),
    ("proxy", Some(&["tap", "counters"])),
    ("stats", Some(&["record", "observation", "clock"])),
    ("store", Some(&["record", "observation"])),
    // It shows times as observations do; what the tap has counted is handed to it.
    ("scrape", Some(&["observation"])),
    (
        "export",
        Some(&["stats", "store", "record", "observation", "scrape"]),
    ),
    (
        "admin",
        Some(&[
            "export",
            "stats",
            "store",
            "observation",
            "switch",
            "record",
            "runs",
            "scrape",
        ]),
    ),
    (
        "report",
        // It reads records files, and observes captured replies with the tap's own observer.
        Some(&[
            "export",
            "stats",
            "store",
            "observation",
            "record",
            "cli",
            "tap",
            "engines",
            "scrape",
        ]),
    ),
    // It looks at replies with the tap's own observer, and at counters as the scrape does.
    (
        "check",
        Some(&["cli", "scrape", "tap", "engines", "observation"]),
    ),
    // A run is fetched as a report is.
    (
        "compare",
        Some(&[
            "export",
            "stats",
            "store",
            "observation",
            "record",
            "report",
            "cli",
        ]),
    ),
    // The double of an engine must not share a mistake with what it tests.
    ("simulate", Some(&[])),
    (
        "cli",
        Some(&[
            "config", "simulate", "report", "demo", "serve", "record", "export", "logs", "proxy",
            "tap", "store", "stats", "scrape",
        ]),
    ),
    (
        "config",
        Some(&["cli", "record", "proxy", "tap", "store", "stats", "scrape"]),
    ),
    ("run", None),
    ("serve", None),
    ("demo", None),
    ("error", None),
    ("lib", None),
    ("main", None),
];

/// Words of language models that the hop has no business with, in its code and its texts. Its comments may name an
/// engine: a line may be there because of one. "token" is missing since HTTP's own grammar has it.
const LLM_WORDS: &[&str] = &[
    "acceptance",
    "chat",
    "choices",
    "completions",
    "draft",
    "drafted",
    "drafts",
    "logprobs",
    "model",
    "models",
    "openai",
    "prompt",
    "prompts",
    "sglang",
    "sglext",
    "speculative",
    "tensorrt",
    "tokens",
    "trtllm",
    "usage",
    "vllm",
];

/// Module names that say nothing about what is inside.
const EMPTY_NAMES: &[&str] = &["common", "helpers", "misc", "util", "utils"];

/// Longest file in lines; tests of a module may be longer in a `tests.rs` of their own.
const LONGEST_FILE: usize = 600;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All Rust files below a folder, sorted.
fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// The files of `src`, as module path and text.
fn sources() -> Vec<(Vec<String>, String)> {
    let source = root().join("src");
    rust_files(&source)
        .into_iter()
        .map(|file| {
            let relative = file.strip_prefix(&source).unwrap().with_extension("");
            let mut path: Vec<String> = relative
                .iter()
                .map(|part| part.to_str().unwrap().to_owned())
                .collect();
            if path.len() > 1 && path.last().is_some_and(|name| name == "mod") {
                path.pop();
            }
            (path, fs::read_to_string(&file).unwrap())
        })
        .collect()
}

/// What is wrong with the arrows of one file, as sentences.
fn wrong_arrows(path: &[String], text: &str) -> Vec<String> {
    let top = path[0].as_str();
    let Some((_, allowed)) = ARROWS.iter().find(|(module, _)| *module == top) else {
        return vec![format!(
            "src/{top}: an unknown top-level module; give it a line in ARROWS of tests/architecture.rs"
        )];
    };
    let Some(allowed) = allowed else {
        return Vec::new();
    };
    let known: BTreeSet<&str> = ARROWS.iter().map(|(module, _)| *module).collect();
    named_modules(&code_without_text(text), path.len())
        .into_iter()
        .filter(|named| known.contains(named.as_str()))
        .filter(|named| named != top && !allowed.contains(&named.as_str()))
        .map(|named| {
            let allowed = if allowed.is_empty() {
                "nothing".to_owned()
            } else {
                allowed.join(", ")
            };
            format!(
                "{}: names `{named}`, but `{top}` may name only {allowed}",
                path.join("::")
            )
        })
        .collect()
}

/// The LLM words in a text's code and strings.
fn llm_words(text: &str) -> BTreeSet<String> {
    words(&code_only(text))
        .into_iter()
        .filter(|word| LLM_WORDS.contains(&word.as_str()))
        .collect()
}

#[test]
fn no_module_names_one_that_stands_behind_it_in_the_way_of_the_data() {
    let wrong: Vec<String> = sources()
        .iter()
        .flat_map(|(path, text)| wrong_arrows(path, text))
        .collect();
    assert!(wrong.is_empty(), "wrong arrows:\n  {}", wrong.join("\n  "));
}

#[test]
fn a_wrong_arrow_is_found_however_it_is_written() {
    let file = |parts: &[&str]| {
        parts
            .iter()
            .map(|part| (*part).to_owned())
            .collect::<Vec<_>>()
    };
    let stats = file(&["stats", "pooled"]);
    for wrong in [
        "use crate::admin::router;",
        "use crate::{admin, record::AcceptanceRecord};",
        "use crate::{\n    record::{AcceptanceRecord, Violation},\n    admin::router,\n};",
        "fn f() { crate::admin::serve() }",
        "pub(in crate::admin) struct A;",
        "use super::super::admin;",
        "use crate :: admin;",
        "fn f(text: &str) { g('\"', \"// \", crate::admin::x) }",
    ] {
        assert_eq!(
            wrong_arrows(&stats, wrong),
            ["stats::pooled: names `admin`, but `stats` may name only record, observation, clock"],
            "{wrong}"
        );
    }
    for right in [
        "use crate::record::AcceptanceRecord;",
        "use crate::{observation::{Observation, Route}, record};",
        "// crate::admin reads this\nfn f() {}",
        "//! [`crate::admin`]\n/* use crate::admin; /* nested */ use crate::admin; */",
        "const TEXT: &str = \"use crate::admin;\";",
        "const TEXT: &str = r#\"use \" crate::admin;\"#;",
        "use crate::stats::survival;",
        "use super::admin;",
    ] {
        assert_eq!(wrong_arrows(&stats, right), [""; 0], "{right}");
    }
    assert_eq!(
        wrong_arrows(&file(&["switch"]), "use super::tap;"),
        ["switch: names `tap`, but `switch` may name only nothing"]
    );
    assert_eq!(
        wrong_arrows(&file(&["magic"]), ""),
        [
            "src/magic: an unknown top-level module; give it a line in ARROWS of tests/architecture.rs"
        ]
    );
    assert_eq!(
        wrong_arrows(&file(&["serve"]), "use crate::admin;"),
        [""; 0]
    );
}

#[test]
fn the_hop_knows_http_and_no_word_of_language_models() {
    let found: Vec<String> = sources()
        .iter()
        .filter(|(path, _)| path[0] == "proxy" && !is_test_file(path))
        .flat_map(|(path, text)| {
            let place = path.join("::");
            llm_words(text)
                .into_iter()
                .map(move |word| format!("{place}: `{word}`"))
        })
        .collect();
    assert!(
        found.is_empty(),
        "words that belong behind `tap`:\n  {}",
        found.join("\n  ")
    );
}

#[test]
fn an_llm_word_is_found_inside_names_and_texts_but_not_in_comments() {
    let found = |text| llm_words(text).into_iter().collect::<Vec<_>>();
    assert_eq!(found("let usage_seen = true;"), ["usage"]);
    assert_eq!(found("struct ModelName;"), ["model"]);
    assert_eq!(
        found("const PATH: &str = \"/v1/chat/completions\";"),
        ["chat", "completions"]
    );
    assert_eq!(
        found("// vLLM closes idle connections after 5 s\nlet idle = 4;"),
        [""; 0]
    );
    assert_eq!(found("let modeled = CancellationToken::new();"), [""; 0]);
}

fn is_test_file(path: &[String]) -> bool {
    path.iter().any(|part| part == "tests")
}

#[test]
fn files_stay_short_enough_to_be_read_in_one_go() {
    let mut lengths = BTreeMap::new();
    for (path, text) in sources() {
        if !is_test_file(&path) {
            lengths.insert(path.join("::"), text.lines().count());
        }
    }
    let mut sorted: Vec<usize> = lengths.values().copied().collect();
    sorted.sort_unstable();
    println!(
        "lines per file: {} files, median {}, longest {}",
        sorted.len(),
        sorted[sorted.len() / 2],
        sorted[sorted.len() - 1]
    );
    let long: Vec<String> = lengths
        .iter()
        .filter(|(_, lines)| **lines > LONGEST_FILE)
        .map(|(place, lines)| format!("{place}: {lines} lines, at most {LONGEST_FILE}"))
        .collect();
    assert!(long.is_empty(), "split these:\n  {}", long.join("\n  "));
}

#[test]
fn modules_are_named_by_what_they_are_about() {
    let empty: Vec<String> = sources()
        .into_iter()
        .map(|(path, _)| path)
        .filter(|path| path.iter().any(|part| EMPTY_NAMES.contains(&part.as_str())))
        .map(|path| path.join("::"))
        .collect();
    assert!(empty.is_empty(), "names that say nothing: {empty:?}");
}

#[test]
fn every_file_says_what_it_is_for() {
    let silent: Vec<String> = ["src", "tests", "benches"]
        .iter()
        .flat_map(|folder| rust_files(&root().join(folder)))
        // A `tests.rs` beside its module is about that module.
        .filter(|file| !file.ends_with("tests.rs"))
        .filter(|file| !fs::read_to_string(file).unwrap().starts_with("//!"))
        .map(|file| file.strip_prefix(root()).unwrap().display().to_string())
        .collect();
    assert!(
        silent.is_empty(),
        "files without a `//!` opening: {silent:?}"
    );
}

#[test]
fn unsafe_code_is_forbidden() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let lints = manifest
        .split_once("[lints.rust]")
        .map(|(_, rest)| rest.split("\n[").next().unwrap_or_default())
        .unwrap_or_default();
    assert!(
        lints
            .lines()
            .any(|line| line.replace(' ', "") == "unsafe_code=\"forbid\""),
        "Cargo.toml: [lints.rust] must say unsafe_code = \"forbid\""
    );
}
