//! Every command that the documents show is one that the program and the Makefile know.

#![allow(clippy::unwrap_used, reason = "a test that can not go on fails")]

use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser;
use spectap::cli::Cli;

fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut documents = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    let docs = fs::read_dir(root.join("docs")).unwrap();
    documents.extend(
        docs.map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|e| e == "md")),
    );
    documents
}

/// The commands in a document's code: lines of blocks with their continuations, and inline code.
fn commands(text: &str, program: &str) -> Vec<String> {
    let joined = text.replace("\\\n", " ");
    let is_command = |code: &str| {
        let code = code.trim();
        code.strip_prefix(program)
            .is_some_and(|rest| rest.starts_with(' '))
            && !code.contains('…')
    };
    let of_blocks = joined.lines().filter(|line| line.starts_with("    "));
    let inline = joined.split('`').skip(1).step_by(2);
    of_blocks
        .chain(inline)
        .filter(|code| is_command(code))
        .map(|code| code.trim().to_owned())
        .collect()
}

/// The words of a command, its comment left out.
fn words(command: &str) -> Vec<String> {
    let command = command.split(" #").next().unwrap();
    command
        .split_whitespace()
        .map(|word| word.trim_matches(['\'', '"']).to_owned())
        .collect()
}

#[test]
fn every_spectap_command_is_understood() {
    let mut checked = 0;
    for document in documents() {
        for command in commands(&fs::read_to_string(&document).unwrap(), "spectap") {
            let words = words(&command);
            if let Err(error) = Cli::try_parse_from(&words) {
                let kind = error.kind();
                let is_help = matches!(
                    kind,
                    clap::error::ErrorKind::DisplayHelp | clap::error::ErrorKind::DisplayVersion
                );
                // `spectap serve` alone, as a name in a sentence, lacks only its upstream.
                let is_name =
                    kind == clap::error::ErrorKind::MissingRequiredArgument && words.len() == 2;
                assert!(
                    is_help || is_name,
                    "{}: {command}: {error}",
                    document.display()
                );
            }
            checked += 1;
        }
    }
    assert!(checked >= 4, "only {checked} commands were found");
}

#[test]
fn every_make_target_exists() {
    let makefile =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Makefile")).unwrap();
    for document in documents() {
        for command in commands(&fs::read_to_string(&document).unwrap(), "make") {
            let target = words(&command)[1].clone();
            let found = makefile
                .lines()
                .any(|line| line.starts_with(&format!("{target}:")));
            assert!(found, "{}: make {target}", document.display());
        }
    }
}
