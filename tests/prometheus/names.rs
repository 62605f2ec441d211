//! Every series that a rule, an alert or a panel names is one that the exporter or a recording rule gives.

use std::collections::BTreeSet;

use super::text;

const FILES: [&str; 3] = [
    "deploy/prometheus/rules.yml",
    "deploy/prometheus/alerts.yml",
    "deploy/grafana/spectap.json",
];

/// Words that are names of series: those of the tap, and recorded ones (`level:what:how`).
fn named(text: &str) -> BTreeSet<&str> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == ':';
    text.split(|letter| !is_part(letter))
        .map(|word| word.trim_end_matches(':'))
        .filter(|word| word.contains("spectap_"))
        .collect()
}

/// The series that `docs/metrics.md` has a line for; another test holds that page and the code against each other.
fn documented() -> BTreeSet<String> {
    let page = text("docs/metrics.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let names = rows.filter_map(|row| row.split('`').next());
    names
        .filter(|name| name.starts_with("spectap_"))
        .map(str::to_owned)
        .collect()
}

fn is_given(name: &str, documented: &BTreeSet<String>, recorded: &BTreeSet<&str>) -> bool {
    let of_histogram = ["_bucket", "_sum", "_count"]
        .iter()
        .filter_map(|suffix| name.strip_suffix(suffix));
    recorded.contains(name)
        || std::iter::once(name)
            .chain(of_histogram)
            .any(|name| documented.contains(name))
}

#[test]
fn every_series_that_is_asked_for_is_given() {
    let rules = text(FILES[0]);
    let recorded: BTreeSet<&str> = rules
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- record: "))
        .collect();
    assert!(recorded.len() > 15, "found only {recorded:?}");
    let documented = documented();
    assert!(documented.len() > 30, "found only {documented:?}");
    for file in FILES {
        let text = text(file);
        let names = named(&text);
        let expected = if file.ends_with("alerts.yml") { 5 } else { 10 };
        assert!(names.len() > expected, "{file}: found only {names:?}");
        let unknown: Vec<&&str> = names
            .iter()
            .filter(|name| !is_given(name, &documented, &recorded))
            .collect();
        assert!(unknown.is_empty(), "{file} asks for {unknown:?}");
    }
}

#[test]
fn a_name_that_nothing_gives_is_found() {
    let nothing = BTreeSet::new();
    let asked = named("sum(rate(spectap_invented_total[5m])) / model:spectap_invented:rate5m");
    assert_eq!(asked.len(), 2);
    assert!(
        !asked
            .iter()
            .any(|name| is_given(name, &documented(), &nothing))
    );
}

#[test]
fn rules_stand_before_those_that_read_them() {
    let rules = text(FILES[0]);
    let mut recorded: BTreeSet<&str> = BTreeSet::new();
    let mut current = "";
    for line in rules.lines().filter(|line| !line.trim().starts_with('#')) {
        if let Some(name) = line.trim().strip_prefix("- record: ") {
            recorded.insert(current);
            current = name;
            continue;
        }
        for name in named(line).into_iter().filter(|name| name.contains(':')) {
            assert!(recorded.contains(name), "{current} reads {name} too early");
        }
    }
}
