//! The `spectap` program: parse, run, and tell by the exit code.

use std::process::ExitCode;

use clap::Parser;
use spectap::cli::Cli;

fn main() -> ExitCode {
    match spectap::run::run(Cli::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            error.code()
        }
    }
}
