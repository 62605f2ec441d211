//! Every alert has a paragraph that its annotation leads to, and cases for firing and for staying quiet.

use std::collections::BTreeSet;
use std::fs;

use super::{rule_tests, text};

const PAGE: &str = "https://github.com/spectap/spectap/blob/main/docs/alerts.md#";

fn alerts(rules: &str) -> Vec<&str> {
    let lines = rules.lines().map(str::trim);
    lines
        .filter_map(|line| line.strip_prefix("- alert: "))
        .collect()
}

#[test]
fn every_alert_leads_to_its_paragraph() {
    let (rules, page) = (text("deploy/prometheus/alerts.yml"), text("docs/alerts.md"));
    let alerts = alerts(&rules);
    assert!(alerts.len() > 5, "{alerts:?}");
    let links: Vec<&str> = rules
        .lines()
        .filter_map(|line| line.trim().strip_prefix("runbook_url: "))
        .collect();
    let expected: Vec<String> = alerts
        .iter()
        .map(|alert| format!("{PAGE}{}", alert.to_lowercase()))
        .collect();
    assert_eq!(links, expected, "one link each, in the order of the alerts");
    let headings: Vec<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("## "))
        .collect();
    assert_eq!(
        headings, alerts,
        "one paragraph each, and none of an alert that is not there"
    );
}

#[test]
fn every_alert_has_a_case_for_firing_and_one_for_staying_quiet() {
    let rules = text("deploy/prometheus/alerts.yml");
    let (mut fires, mut stays_quiet) = (BTreeSet::new(), BTreeSet::new());
    for file in rule_tests() {
        let cases = fs::read_to_string(file).unwrap();
        // What stands behind a name, up to the next one, is what is expected of it.
        for case in cases.split("alertname: ").skip(1) {
            let name: String = case.chars().take_while(char::is_ascii_alphabetic).collect();
            let (_, expected) = case.split_once("exp_alerts:").unwrap();
            if expected.trim_start().starts_with("[]") {
                stays_quiet.insert(name);
            } else {
                fires.insert(name);
            }
        }
    }
    let all: BTreeSet<String> = alerts(&rules).into_iter().map(str::to_owned).collect();
    assert_eq!(fires, all);
    assert_eq!(stays_quiet, all);
}
