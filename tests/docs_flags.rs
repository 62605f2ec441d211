//! `docs/configuration.md` lists every flag of every command with its variable and its default, and no other.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use clap::{Arg, ArgAction, Command, CommandFactory};
use spectap::cli::Cli;

/// A flag with its value's name, its variable, and its default where it has one.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    variable: String,
    default: Option<String>,
    takes_value: bool,
}

fn page() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/configuration.md")).unwrap()
}

/// The flags of the section with this heading.
fn documented(page: &str, heading: &str) -> BTreeMap<String, Row> {
    let start = page.find(&format!("\n## {heading}\n")).unwrap_or_else(|| {
        panic!("docs/configuration.md has no section '## {heading}'");
    });
    let section = page[start + 4..].split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| `--"));
    rows.map(|line| {
        let line = line.replace("\\|", "/");
        let cells: Vec<&str> = line
            .split('|')
            .map(|cell| cell.trim().trim_matches('`'))
            .collect();
        let (flag, value) = cells[1].split_once(' ').unwrap_or((cells[1], ""));
        assert!(cells[4].len() > 10, "{flag} has no meaning");
        let row = Row {
            variable: cells[2].to_owned(),
            default: Some(cells[3].to_owned()).filter(|default| !default.is_empty()),
            takes_value: !value.is_empty(),
        };
        (flag.to_owned(), row)
    })
    .collect()
}

fn row(flag: &Arg) -> (String, Row) {
    let takes_value = matches!(flag.get_action(), ArgAction::Set | ArgAction::Append);
    let defaults: Vec<_> = flag
        .get_default_values()
        .iter()
        .map(|value| value.to_string_lossy())
        .collect();
    let default = if takes_value {
        Some(defaults.join(",")).filter(|default| !default.is_empty())
    } else {
        Some("off".to_owned())
    };
    let variable = flag.get_env().unwrap().to_string_lossy().into_owned();
    let name = format!("--{}", flag.get_long().unwrap());
    let row = Row {
        variable,
        default,
        takes_value,
    };
    (name, row)
}

fn defined(command: &Command) -> BTreeMap<String, Row> {
    let flags = command.get_arguments();
    flags
        // What a command is about is told in words.
        .filter(|flag| flag.get_env().is_some() && !flag.is_positional())
        .map(row)
        .collect()
}

fn assert_same(heading: &str, documented: &BTreeMap<String, Row>, defined: &BTreeMap<String, Row>) {
    let names = |rows: &BTreeMap<String, Row>| rows.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(documented), names(defined), "{heading}");
    for (flag, told) in documented {
        let mut told = Row {
            variable: told.variable.clone(),
            default: told.default.clone(),
            takes_value: told.takes_value,
        };
        // Words for what no fixed value is: "learned", "the engine's".
        if defined[flag].default.is_none() {
            told.default = None;
        }
        assert_eq!(&told, &defined[flag], "{heading}: {flag}");
    }
}

#[test]
fn every_flag_of_every_command_is_documented_and_no_other() {
    let page = page();
    let root = Cli::command();
    let mut checked = 0;
    for command in root.get_subcommands() {
        let heading = format!("`spectap {}`", command.get_name());
        let flags = defined(command);
        assert_same(&heading, &documented(&page, &heading), &flags);
        checked += flags.len();
    }
    let heading = "Every command";
    assert_same(heading, &documented(&page, heading), &defined(&root));
    assert!(checked > 40, "only {checked} flags were compared");
}

#[test]
fn every_value_that_a_flag_takes_from_a_list_is_named() {
    let page = page();
    for command in Cli::command().get_subcommands() {
        let heading = format!("\n## `spectap {}`\n", command.get_name());
        let start = page.find(&heading).unwrap();
        let section = page[start + 4..].split("\n## ").next().unwrap();
        for flag in command
            .get_arguments()
            .filter(|flag| flag.get_action().takes_values() && !flag.is_positional())
        {
            let name = format!("| `--{}", flag.get_long().unwrap());
            let line = section
                .lines()
                .find(|line| line.starts_with(&name))
                .unwrap();
            for value in flag.get_possible_values() {
                assert!(
                    line.contains(value.get_name()),
                    "{name}: {} is not named",
                    value.get_name()
                );
            }
        }
    }
}

#[test]
fn every_endpoint_that_the_admin_port_lists_is_documented() {
    let page = page();
    let index = include_str!("../src/admin/index.rs");
    let paths = index
        .split_whitespace()
        .filter(|word| word.starts_with('/') && !word.starts_with("//"));
    let mut checked = 0;
    for path in paths {
        assert!(page.contains(&format!("| `{path}` |")), "{path}");
        checked += 1;
    }
    assert!(checked >= 8, "only {checked} paths were found");
}
