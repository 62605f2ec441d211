//! Recording rules, alerts and dashboard: what they name exists, and the real tools take them.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod dashboard;
mod names;
mod real;
mod runbooks;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn text(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// The files of `deploy/prometheus/tests`.
fn rule_tests() -> Vec<PathBuf> {
    let folder = root().join("deploy/prometheus/tests");
    let files = fs::read_dir(folder).unwrap();
    let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

/// Says that a check was left out, or fails where nothing may be left out.
fn skip(test: &str, reason: &str) {
    assert!(
        std::env::var_os("CI").is_none_or(|value| value != "true"),
        "{test}: {reason}, and with CI=true nothing is skipped"
    );
    eprintln!("SKIPPED {test}: {reason}");
}

/// Whether a command runs and ends well.
fn works(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

/// Runs to the end; what it printed, and it must have ended well.
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}\n{printed}");
    printed
}
