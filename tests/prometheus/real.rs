//! promtool on the rules, and a real Prometheus before a fleet of taps.

use std::process::Command;

use super::{root, rule_tests, run, skip, works};

fn python() -> String {
    std::env::var("SPECTAP_TEST_PYTHON")
        .unwrap_or_else(|_| root().join(".venv/bin/python").display().to_string())
}

#[test]
fn rules_and_alerts_hold_what_their_cases_say() {
    const TEST: &str = "rules_and_alerts_hold_what_their_cases_say";
    if !works(Command::new("promtool").arg("--version")) {
        return skip(TEST, "there is no promtool on PATH");
    }
    let folder = root().join("deploy/prometheus");
    let files = ["rules.yml", "alerts.yml"].map(|file| folder.join(file));
    run(Command::new("promtool")
        .args(["check", "rules", "--lint-fatal"])
        .args(files));
    run(Command::new("promtool")
        .args(["test", "rules"])
        .args(rule_tests()));
}

#[test]
fn a_real_prometheus_shows_of_a_fleet_what_its_records_add_up_to() {
    const TEST: &str = "a_real_prometheus_shows_of_a_fleet_what_its_records_add_up_to";
    if !works(Command::new("prometheus").arg("--version")) {
        return skip(TEST, "there is no prometheus on PATH");
    }
    let python = python();
    if !works(Command::new(&python).args(["-c", "import yaml"])) {
        return skip(TEST, &format!("'{python}' has no PyYAML (pip)"));
    }
    let folder = tempfile::tempdir().unwrap();
    let printed = run(Command::new(python)
        .arg(root().join("tests/prometheus/observe.py"))
        .args(["--spectap", env!("CARGO_BIN_EXE_spectap")])
        .arg("--work")
        .arg(folder.path()));
    assert!(printed.contains("queries with data"), "{printed}");
}
