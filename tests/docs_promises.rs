//! The table of promises in `docs/transparency.md`: each has a test that exists, and a fault that the test must find
//! (`tests/mutations.toml`, put in by `make mutations`).

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use spectap::verify::BY_DESIGN;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The rows of all tables whose first cell begins with `kind`, as cells.
fn rows(kind: &str) -> Vec<Vec<String>> {
    let page = read("docs/transparency.md");
    let lines = page.lines();
    let rows = lines.filter(|line| line.starts_with(&format!("| {kind}-")));
    rows.map(|line| {
        let cells = line.trim_matches('|').split(" | ");
        cells.map(|cell| cell.trim().to_owned()).collect()
    })
    .collect()
}

/// The tests that a cell names.
fn tests(cell: &str) -> Vec<&str> {
    let quoted = cell.split('`').skip(1).step_by(2);
    quoted.filter(|text| text.contains("::")).collect()
}

fn exists(test: &str) -> bool {
    let (file, name) = test.split_once("::").unwrap();
    let under = if file.starts_with("src/") {
        PathBuf::new()
    } else {
        PathBuf::from("tests")
    };
    let text = fs::read_to_string(root().join(under).join(file)).unwrap_or_default();
    let is_test = |line: &str| {
        let line = line.trim_start();
        line.starts_with(&format!("fn {name}(")) || line.starts_with(&format!("async fn {name}("))
    };
    text.lines().any(is_test)
}

struct Mutation {
    id: String,
    file: String,
    old: String,
    new: String,
    test: String,
}

/// The list, of which only the part of TOML that it is written in is understood.
fn mutations() -> Vec<Mutation> {
    let text = read("tests/mutations.toml");
    let entries = text.split("[[mutation]]").skip(1);
    entries
        .map(|entry| {
            let values: BTreeMap<&str, &str> = entry
                .lines()
                .filter_map(|line| line.split_once(" = "))
                .map(|(key, value)| {
                    let value = match value.strip_prefix("'''") {
                        Some(literal) => literal.strip_suffix("'''").unwrap(),
                        None => value.trim_matches('"'),
                    };
                    (key, value)
                })
                .collect();
            let value = |key: &str| {
                let value = values
                    .get(key)
                    .unwrap_or_else(|| panic!("no {key} in {entry}"));
                (*value).to_owned()
            };
            Mutation {
                id: value("id"),
                file: value("file"),
                old: value("old"),
                new: value("new"),
                test: value("test"),
            }
        })
        .collect()
}

#[test]
fn every_promise_has_an_id_of_its_own_and_a_test_that_exists() {
    let mut ids = BTreeSet::new();
    let promises = rows("M");
    assert!(promises.len() > 50, "only {} promises", promises.len());
    for row in &promises {
        let [id, promise, shown, broken] = &row[..] else {
            panic!("not four cells: {row:?}");
        };
        assert!(ids.insert(id.clone()), "{id} twice");
        assert!(promise.len() > 10 && broken.len() > 3, "{id}");
        let shown = tests(shown);
        assert!(!shown.is_empty(), "{id} has no test");
        for test in shown {
            assert!(exists(test), "{id}: there is no test {test}");
        }
    }
    for row in rows("S") {
        assert!(ids.insert(row[0].clone()), "{} twice", row[0]);
        for test in tests(&row[2]) {
            assert!(exists(test), "{}: there is no test {test}", row[0]);
        }
        let says_why = row[2].starts_with("not ");
        assert!(says_why || !tests(&row[2]).is_empty(), "{}", row[0]);
    }
    for row in rows("N") {
        assert!(ids.insert(row[0].clone()), "{} twice", row[0]);
    }
}

#[test]
fn every_promise_has_a_fault_that_its_test_must_find() {
    let promises: BTreeMap<String, Vec<String>> = rows("M")
        .into_iter()
        .map(|row| (row[0].clone(), row))
        .collect();
    let mutations = mutations();
    for mutation in &mutations {
        let row = promises.get(&mutation.id);
        let row = row.unwrap_or_else(|| panic!("{} is no promise", mutation.id));
        let test = mutation.test.trim_start_matches("tests/");
        assert!(
            tests(&row[2]).contains(&test),
            "{}: {test} is not in its row",
            mutation.id
        );
    }
    for (id, row) in promises {
        let has_one = mutations.iter().any(|mutation| mutation.id == id);
        // What no single line can break says so.
        assert!(
            has_one != row[3].starts_with("(no line"),
            "{id}: {}",
            row[3]
        );
    }
}

#[test]
fn every_fault_still_has_its_place_in_the_sources() {
    for Mutation {
        id, file, old, new, ..
    } in mutations()
    {
        let count = read(&file).matches(&old).count();
        assert_eq!(count, 1, "{id}: `{old}` must stand once in {file}");
        assert_ne!(old, new, "{id}");
    }
}

#[test]
fn what_verify_calls_by_design_is_documented_where_it_says() {
    for design in &BY_DESIGN {
        let (page, anchor) = design.docs.split_once('#').unwrap();
        let page = read(page);
        let headings = page.lines().filter_map(|line| line.strip_prefix("## "));
        let mut anchors =
            headings.map(|heading| heading.to_lowercase().replace(',', "").replace(' ', "-"));
        assert!(
            anchors.any(|it| it == anchor),
            "{}: {}",
            design.name,
            design.docs
        );
    }
}
