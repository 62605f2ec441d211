//! The dashboard's JSON is one that Grafana takes, and hangs together.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

use super::{root, run, skip, text};

const FILE: &str = "deploy/grafana/spectap.json";

/// What Grafana itself sets.
const BUILT_IN: [&str; 2] = ["__range", "__rate_interval"];

fn board() -> Value {
    serde_json::from_str(&text(FILE)).unwrap()
}

fn panels(board: &Value) -> &Vec<Value> {
    board["panels"].as_array().unwrap()
}

/// Variables that a text names, as `$name` or `${name}`.
fn variables(text: &str) -> BTreeSet<String> {
    let places = text.split('$').skip(1);
    places
        .map(|place| {
            let name = place.strip_prefix('{').unwrap_or(place);
            name.chars()
                .take_while(|letter| letter.is_ascii_alphanumeric() || *letter == '_')
                .collect()
        })
        .collect()
}

#[test]
fn it_has_the_shape_of_grafanas_own_types() {
    const TEST: &str = "it_has_the_shape_of_grafanas_own_types";
    let tools = root().join(".work/grafana");
    if !tools.join("node_modules/.bin/tsc").exists() {
        return skip(TEST, "Grafana's types are not installed (make tools)");
    }
    run(Command::new("sh")
        .arg(root().join("tests/prometheus/grafana/check.sh"))
        .arg(tools)
        .arg(root().join(FILE)));
}

#[test]
fn every_variable_is_offered_and_used() {
    let board = board();
    let list = board["templating"]["list"].as_array().unwrap();
    let offered: BTreeSet<String> = list
        .iter()
        .map(|variable| variable["name"].as_str().unwrap().to_owned())
        .collect();
    let used: BTreeSet<String> = variables(&board["panels"].to_string())
        .into_iter()
        .filter(|name| !BUILT_IN.contains(&name.as_str()))
        .collect();
    assert_eq!(used, offered);
    for expected in ["datasource", "model", "engine", "tag", "namespace", "pod"] {
        assert!(offered.contains(expected), "no variable {expected}");
    }
    // A variable may ask by those before it.
    let mut before = BTreeSet::from(["datasource".to_owned()]);
    for variable in list {
        let asked = variables(&variable["query"].to_string());
        assert!(asked.is_subset(&before), "{variable}");
        before.insert(variable["name"].as_str().unwrap().to_owned());
    }
}

#[test]
fn panels_have_ids_and_explanations_and_do_not_overlap() {
    let board = board();
    let mut ids = BTreeSet::new();
    let mut cells = BTreeSet::new();
    for panel in panels(&board) {
        let title = panel["title"].as_str().unwrap();
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{title}");
        let place = |name: &str| panel["gridPos"][name].as_u64().unwrap();
        assert!(place("x") + place("w") <= 24, "{title} is too wide");
        for x in place("x")..place("x") + place("w") {
            for y in place("y")..place("y") + place("h") {
                assert!(cells.insert((x, y)), "{title} covers another panel");
            }
        }
        if panel["type"] != "row" {
            let description = panel["description"].as_str().unwrap();
            assert!(description.len() > 3, "{title} says not what it is");
        }
    }
    assert!(ids.len() > 20, "only {} panels", ids.len());
}
