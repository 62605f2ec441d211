//! Every flag teaches, has an environment variable, and refuses a wrong value before a port is bound.

use std::net::TcpListener;

use clap::CommandFactory;
use spectap::cli::Cli;

use crate::program::{output, spectap};

#[test]
fn every_flag_has_a_help_text_and_an_environment_variable() {
    let root = Cli::command();
    root.clone().debug_assert();
    for command in std::iter::once(&root).chain(root.get_subcommands()) {
        for flag in command.get_arguments() {
            let name = format!("{} --{}", command.get_name(), flag.get_id());
            if matches!(flag.get_id().as_str(), "help" | "version") {
                continue;
            }
            let variable = flag
                .get_env()
                .map(|name| name.to_string_lossy().into_owned());
            // What a command is about is no setting.
            assert!(
                flag.is_positional() || variable.is_some_and(|name| name.starts_with("SPECTAP_")),
                "{name}"
            );
            assert!(
                flag.get_help()
                    .is_some_and(|help| help.to_string().len() > 10),
                "{name}"
            );
        }
    }
}

#[test]
fn version_has_the_commit() {
    let (code, out, _) = output(&["--version"]);
    assert_eq!(code, Some(0));
    let commit = out
        .trim()
        .split(" (")
        .nth(1)
        .and_then(|rest| rest.strip_suffix(')'));
    assert!(
        out.starts_with("spectap 0.") && commit.is_some_and(|commit| commit.len() >= 7),
        "{out}"
    );
}

#[test]
fn help_leads_to_the_first_success() {
    let (code, out, _) = output(&["--help"]);
    assert_eq!(code, Some(0));
    for text in [
        "spectap demo",
        "--per-request-spec-decode-metrics summary",
        "Exit codes",
        "report",
    ] {
        assert!(out.contains(text), "{text} is missing in\n{out}");
    }
}

#[test]
fn a_wrong_value_names_the_flag_the_value_and_what_would_be_right() {
    let serve = |flags: &[&'static str]| [&["serve"][..], flags].concat();
    let up = "--upstream=http://127.0.0.1:9";
    let cases = [
        (
            serve(&["--upstream=127.0.0.1:8000"]),
            "--upstream",
            "127.0.0.1:8000",
            "http://127.0.0.1:8000",
        ),
        (
            serve(&["--upstream=ftp://h"]),
            "--upstream",
            "ftp",
            "only http://, https:// and unix:",
        ),
        (
            serve(&["--upstream=http://h/v1"]),
            "--upstream",
            "http://h/v1",
            "http://HOST:PORT",
        ),
        (serve(&[]), "--upstream", "--upstream", "Usage"),
        (
            serve(&["--upstream=https://h", "--upstream-ca=/no/such.pem"]),
            "--upstream-ca",
            "/no/such.pem",
            "PEM file",
        ),
        (
            serve(&["--upstream=https://h", "--upstream-server-name=a b"]),
            "--upstream-server-name",
            "a b",
            "host name",
        ),
        (
            serve(&[up, "--tls-cert=/no/such.pem"]),
            "--tls-cert",
            "/no/such.pem",
            "--tls-key",
        ),
        (
            serve(&[up, "--listen=8090"]),
            "--listen",
            "8090",
            "127.0.0.1:8090",
        ),
        (
            serve(&[up, "--admin-listen=localhost:8091"]),
            "--admin-listen",
            "localhost:8091",
            "IP address",
        ),
        (
            vec!["report", "--by=model,colour"],
            "--by",
            "colour",
            "comma list of model, engine",
        ),
        (
            vec!["demo", "--listen=8090"],
            "--listen",
            "8090",
            "127.0.0.1:8090",
        ),
        (
            serve(&[up, "--protect-metrics"]),
            "--protect-metrics",
            "true",
            "--admin-token-file",
        ),
        (
            serve(&[up, "--metric-facet=model"]),
            "--metric-facet",
            "model",
            "context, prompt, cached, temperature, format, reasoning, stream, concurrency",
        ),
        (serve(&[up, "--grace=fast"]), "--grace", "fast", "25s"),
        (serve(&[up, "--workers=0"]), "--workers", "0", "auto"),
        (
            serve(&[up, "--max-connections=0"]),
            "--max-connections",
            "0",
            "auto, or a number",
        ),
        (
            serve(&[up, "--idle-timeout=0s"]),
            "--idle-timeout",
            "0s",
            "above zero",
        ),
        (
            serve(&[up, "--total-timeout=500000000000y"]),
            "--total-timeout",
            "500000000000y",
            "a year at most",
        ),
        (
            serve(&[up, "--workers=257"]),
            "--workers",
            "257",
            "1 to 256",
        ),
        (serve(&[up, "--engine=gpt"]), "--engine", "gpt", "vllm"),
        (serve(&[up, "--inject=maybe"]), "--inject", "maybe", "auto"),
        (
            serve(&[up, "--expose-usage=no"]),
            "--expose-usage",
            "no",
            "as-requested",
        ),
        (
            serve(&[up, "--lane=127.0.0.1:1"]),
            "--lane",
            "127.0.0.1:1",
            "ADDRESS=URL",
        ),
        (
            serve(&[up, "--admin-listen=127.0.0.1:8090"]),
            "--listen",
            "127.0.0.1:8090",
            "own",
        ),
        (
            serve(&["--upstream=http://127.0.0.1:8090"]),
            "--upstream",
            "127.0.0.1:8090",
            "the engine's",
        ),
        (
            serve(&[up, "--tag-header=Authorization"]),
            "--tag-header",
            "Authorization",
            "secrets",
        ),
        (
            serve(&[up, "--tag-body=messages"]),
            "--tag-body",
            "messages",
            "metadata.NAME",
        ),
        (
            serve(&[up, "--admin-token-file=/nothing/here"]),
            "--admin-token-file",
            "/nothing/here",
            "readable",
        ),
        (
            serve(&[up, "--log=what=ever="]),
            "--log",
            "what=ever=",
            "such as",
        ),
        (
            vec!["simulate", "--engine=vllm", "--acceptance=1.5"],
            "--acceptance",
            "1.5",
            "0",
        ),
    ];
    for (arguments, flag, value, right) in cases {
        let (code, out, errors) = output(&arguments);
        assert_eq!(code, Some(2), "{arguments:?}: {errors}");
        assert_eq!(out, "", "{arguments:?}");
        for text in [flag, value, right] {
            assert!(
                errors.contains(text),
                "{arguments:?}: no {text:?} in {errors}"
            );
        }
        assert!(
            !errors.contains("panicked") && !errors.contains("stack backtrace"),
            "{errors}"
        );
    }
}

#[test]
fn a_port_in_use_is_named_with_its_flag() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for (flag, other) in [
        ("--listen", "--admin-listen=127.0.0.1:0"),
        ("--admin-listen", "--listen=127.0.0.1:0"),
    ] {
        let (code, _, errors) = output(&[
            "serve",
            "--upstream=http://127.0.0.1:9",
            flag,
            &address,
            other,
        ]);
        assert_eq!(code, Some(1));
        assert!(
            errors.contains(flag) && errors.contains(&address),
            "{errors}"
        );
    }
}

#[test]
fn the_environment_sets_a_flag() {
    let run = spectap(&["serve"])
        .env("SPECTAP_UPSTREAM", "nonsense")
        .output()
        .unwrap();
    let errors = String::from_utf8(run.stderr).unwrap();
    assert_eq!(run.status.code(), Some(2));
    assert!(
        errors.contains("--upstream") && errors.contains("nonsense"),
        "{errors}"
    );
}

#[test]
fn a_switch_in_the_environment_is_on_or_off_in_the_usual_words() {
    let errors_with = |value: &str| {
        let run = spectap(&["serve", "--upstream=http://127.0.0.1:9"])
            .env("SPECTAP_PROTECT_METRICS", value)
            // Ends it after the flags and before a port is bound.
            .env("SPECTAP_ADMIN_LISTEN", "127.0.0.1:8090")
            .output()
            .unwrap();
        assert_eq!(run.status.code(), Some(2), "{value}");
        String::from_utf8(run.stderr).unwrap()
    };
    for off in ["false", "0", "no", "off"] {
        assert!(errors_with(off).contains("used twice"), "{off}");
    }
    for on in ["true", "1", "yes", "on"] {
        assert!(errors_with(on).contains("--admin-token-file"), "{on}");
    }
    let errors = errors_with("maybe");
    assert!(
        errors.contains("--protect-metrics")
            && errors.contains("maybe")
            && errors.contains("true or false"),
        "{errors}"
    );
}

#[test]
fn the_flags_of_a_command_stand_together_and_those_of_logging_apart() {
    let (_, out, _) = output(&["serve", "--help"]);
    let place = |text: &str| out.find(text).unwrap();
    assert!(place("--upstream") < place("--listen") && place("--listen") < place("--lane"));
    assert!(place("--protect-metrics") < place("Logging, for every command:"));
    assert!(place("Logging, for every command:") < place("--log-format"));
}

#[test]
fn a_report_without_a_tap_says_what_to_do() {
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let (code, out, errors) = output(&["report", "--from", &format!("http://{free}")]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(
        errors.contains(&free.to_string()) && errors.contains("spectap serve"),
        "{errors}"
    );
}
