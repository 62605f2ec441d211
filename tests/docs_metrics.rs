//! `docs/metrics.md` is complete: every name of the closed lists and every Prometheus series has its line.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use spectap::observation::{Acceptance, Observation, Outcome, Reason, Route};
use spectap::record::Recomputed;
use strum::VariantArray;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn page() -> String {
    fs::read_to_string(root().join("docs/metrics.md")).unwrap()
}

/// The names in the first column of the page's tables; a name may stand in two tables.
fn rows(page: &str) -> BTreeSet<&str> {
    page.lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .collect()
}

fn missing<'a>(names: impl IntoIterator<Item = &'a str>, rows: &BTreeSet<&str>) -> Vec<&'a str> {
    names
        .into_iter()
        .filter(|name| !rows.contains(name))
        .collect()
}

#[test]
fn every_reason_outcome_and_acceptance_has_its_line() {
    let page = page();
    let rows = rows(&page);
    let names = Reason::VARIANTS
        .iter()
        .map(|reason| reason.as_str())
        .chain(Outcome::VARIANTS.iter().map(|outcome| outcome.as_str()))
        .chain(
            Acceptance::VARIANTS
                .iter()
                .map(|acceptance| acceptance.as_str()),
        );
    assert_eq!(missing(names, &rows), [""; 0], "missing in docs/metrics.md");
}

#[test]
fn the_page_explains_no_reason_that_does_not_exist() {
    let page = page();
    let (_, section) = page.split_once("### Every `reason`").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let known: BTreeSet<&str> = Reason::VARIANTS
        .iter()
        .map(|reason| reason.as_str())
        .chain(["reason"])
        .collect();
    let invented: Vec<&str> = rows(section).difference(&known).copied().collect();
    assert_eq!(
        invented, [""; 0],
        "docs/metrics.md explains reasons that nothing gives"
    );
}

#[test]
fn every_route_is_named() {
    let page = page();
    let unnamed: Vec<&str> = Route::VARIANTS
        .iter()
        .map(|route| route.as_str())
        .filter(|route| !page.contains(&format!("`{route}`")))
        .collect();
    assert_eq!(unnamed, [""; 0], "routes missing in docs/metrics.md");
}

#[test]
fn every_prometheus_series_of_the_code_has_its_line() {
    let mut series = BTreeSet::new();
    let mut folders = vec![root().join("src")];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).unwrap();
        for path in entries.map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if !is_test(&path) {
                series.extend(series_names(&fs::read_to_string(&path).unwrap()));
            }
        }
    }
    assert!(
        series.contains("spectap_requests_total"),
        "found only {series:?}"
    );
    let page = page();
    let names = series.iter().map(String::as_str);
    assert_eq!(
        missing(names, &rows(&page)),
        [""; 0],
        "missing in docs/metrics.md"
    );
}

/// All names in the first cells of the page's tables, of which one may hold several.
fn members(page: &str) -> BTreeSet<&str> {
    page.lines()
        .filter(|line| line.starts_with("| `"))
        .flat_map(|line| {
            line[2..]
                .split('|')
                .next()
                .unwrap()
                .split('`')
                .skip(1)
                .step_by(2)
        })
        .collect()
}

#[test]
fn the_observation_that_the_page_shows_is_one_and_each_member_is_explained() {
    let page = page();
    let (_, section) = page.split_once("## JSON: `/api/v1/requests`").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let (_, example) = section.split_once("```json\n").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    let mut observation: Observation = serde_json::from_str(example).unwrap();
    // Members that are absent where there is nothing to say.
    let record = &mut observation.spec_decode_acceptance[0];
    record.choice_index = Some(0);
    record.per_step_accepted = Some(Vec::new());
    record.per_step_drafted = Some(Vec::new());
    record.recomputed = Some(Recomputed {
        mean_acceptance_length: None,
        draft_acceptance_rate: None,
    });
    (record.nominal_drafts, record.zero_filled) = (true, true);
    let whole = serde_json::to_value(&observation).unwrap();
    let members = members(section);
    for object in [&whole, &whole["spec_decode_acceptance"][0]] {
        let names = object.as_object().unwrap().keys().map(String::as_str);
        let unexplained: Vec<&str> = names.filter(|name| !members.contains(name)).collect();
        assert_eq!(unexplained, [""; 0], "not explained in docs/metrics.md");
    }
}

#[test]
fn every_kind_of_an_answer_that_spectap_makes_itself_has_its_line() {
    let page = page();
    for (file, one) in [
        ("refusal.rs", "connect-refused"),
        ("tls/fault.rs", "tls-name"),
    ] {
        let source = fs::read_to_string(root().join("src/proxy").join(file)).unwrap();
        let (_, kinds) = source.split_once("fn kind(&self)").unwrap();
        let (kinds, _) = kinds.split_once("\n    }\n").unwrap();
        let kinds: Vec<&str> = kinds.split('"').skip(1).step_by(2).collect();
        assert!(kinds.contains(&one), "found only {kinds:?}");
        assert_eq!(
            missing(kinds, &rows(&page)),
            [""; 0],
            "missing in docs/metrics.md"
        );
    }
}

fn is_test(path: &Path) -> bool {
    path.components().any(|part| {
        PathBuf::from(part.as_os_str())
            .file_stem()
            .is_some_and(|stem| stem == "tests")
    })
}

/// Texts that are the name of a series and nothing else: what is counted and its unit or kind, so at least three words.
fn series_names(source: &str) -> BTreeSet<String> {
    source
        .split('"')
        .filter(|text| text.starts_with("spectap_") && text.split('_').count() > 2)
        .filter(|text| {
            text.bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        })
        .map(str::to_owned)
        .collect()
}
