//! `spectap top` as a user runs it: once for scripts, of several taps, and live in a terminal.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::commands::{chat, report, simulate};
use crate::program::{Running, output};

#[test]
fn once_prints_the_view_and_what_it_is_drawn_from() {
    let (_engine, engine) = simulate("vllm");
    let (_one, data_one, admin_one) = Running::serve(engine, &[]);
    let (_two, data_two, admin_two) = Running::serve(engine, &[]);
    for data in [data_one, data_one, data_two] {
        chat(data);
    }
    let steps = |admin| {
        let report: Value = serde_json::from_str(&report(admin, &["--format=json"])).unwrap();
        report["metrics"]["total_spec_decode_steps"]["avg"]
            .as_f64()
            .unwrap()
    };
    // A report waits until the last exchange is in it.
    let begun = Instant::now();
    let merged = loop {
        let urls = [admin_one, admin_two].map(|admin| format!("http://{admin}"));
        let (code, out, errors) = output(&[
            "top",
            "--once",
            "--format=json",
            "--window=all",
            &urls[0],
            &urls[1],
        ]);
        assert_eq!(code, Some(0), "{errors}");
        let merged: Value = serde_json::from_str(&out).unwrap();
        if merged["summary"]["n"]["recorded"] == 3 {
            break merged;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{merged}");
    };
    assert_eq!(
        merged["summary"]["metrics"]["total_spec_decode_steps"]["avg"]
            .as_f64()
            .unwrap(),
        steps(admin_one) + steps(admin_two),
        "taps are merged exactly"
    );
    // A filter narrows the figures, and the engine's own counters know no tags.
    let url = format!("http://{admin_one}");
    let filtered = [
        "top",
        "--once",
        "--format=json",
        "--window=all",
        "--filter=tag=none-has-it",
        &url,
    ];
    let (code, out, errors) = output(&filtered);
    assert_eq!(code, Some(0), "{errors}");
    let none: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(none["summary"]["n"]["exchanges"], 0, "{none}");
    assert!(
        none["summary"]["coverage"].is_null() && none["summary"]["server"].is_null(),
        "{none}"
    );
    let (code, out, errors) = output(&["top", "--once", "--by=model", &url, "http://127.0.0.1:1"]);
    assert_eq!(code, Some(0), "{errors}");
    assert!(
        out.starts_with("spectap top  1 of 2 taps  window 5m"),
        "{out}"
    );
    assert!(
        out.contains("down: can't reach http://127.0.0.1:1"),
        "{out}"
    );
    assert!(out.contains("\n2 requests, newest first\n"), "{out}");
    assert!(!out.contains('\u{1b}'), "no colour, no movement");
}

#[test]
fn an_engine_without_a_tap_shows_its_own_counters() {
    let (_engine, engine) = simulate("vllm");
    chat(engine);
    let url = format!("http://{engine}");
    let (code, out, errors) = output(&["top", "--once", "--format=json", &url]);
    assert_eq!(code, Some(0), "{errors}");
    let once: Value = serde_json::from_str(&out).unwrap();
    assert!(once["engine"]["steps"].as_u64().unwrap() > 0, "{once}");
    assert!(once["summary"].is_null(), "{once}");
    let (code, out, errors) = output(&["top", "--once", &url]);
    assert_eq!(code, Some(0), "{errors}");
    assert!(out.contains("since the engine began"), "{out}");
}

#[test]
fn without_a_tap_or_a_terminal_it_says_what_to_do() {
    let (code, _, errors) = output(&["top", "--once", "http://127.0.0.1:1"]);
    assert_eq!(code, Some(1));
    assert!(
        errors.contains("can't reach http://127.0.0.1:1"),
        "{errors}"
    );
    for arguments in [
        &["report", "--from=http://127.0.0.1:99999"][..],
        &["top", "--once", "http://127.0.0.1:99999"],
        &[
            "verify",
            "--yes",
            "--upstream=http://127.0.0.1:99999",
            "--through=http://127.0.0.1:1",
        ],
        &["serve", "--upstream=http://127.0.0.1:99999"],
        &[
            "serve",
            "--upstream=http://127.0.0.1:1",
            "--scrape=http://127.0.0.1:99999/metrics",
        ],
    ] {
        let (code, _, errors) = output(arguments);
        assert!(matches!(code, Some(1 | 2)), "{arguments:?}");
        assert!(
            errors.contains("99999") && errors.contains("http://"),
            "{errors}"
        );
    }
    let (code, _, errors) = output(&["top"]);
    assert_eq!(code, Some(1));
    assert!(
        errors.contains("no terminal") && errors.contains("--once"),
        "{errors}"
    );
    let (code, _, errors) = output(&["top", "--filter", "engine=tgi", "--once"]);
    assert_eq!(code, Some(2));
    assert!(
        errors.contains("--filter engine=tgi: should be"),
        "{errors}"
    );
}

/// A terminal by `script` (util-linux), which gives the program a pseudo-terminal of its own.
#[test]
fn in_a_terminal_it_draws_takes_keys_and_leaves_the_screen_as_it_was() {
    let (_engine, engine) = simulate("vllm");
    let (_tap, data, admin) = Running::serve(engine, &[]);
    chat(data);
    report(admin, &[]);
    let command = format!(
        "stty rows 30 cols 100; exec {} top --interval 200ms --window all http://{admin}",
        env!("CARGO_BIN_EXE_spectap")
    );
    let mut terminal = Command::new("script")
        .args([
            "--quiet",
            "--flush",
            "--return",
            "--command",
            &command,
            "/dev/null",
        ])
        .env("TERM", "xterm-256color")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut keys = terminal.stdin.take().unwrap();
    let mut screen = terminal.stdout.take().unwrap();
    let mut shown = Vec::new();
    let mut until = |wanted: &str, shown: &mut Vec<u8>| {
        let begun = Instant::now();
        let mut part = [0; 4096];
        while !String::from_utf8_lossy(shown).contains(wanted) {
            assert!(
                begun.elapsed() < Duration::from_secs(30),
                "never drew {wanted}"
            );
            let read = screen.read(&mut part).unwrap();
            assert!(read > 0, "it ended: {}", String::from_utf8_lossy(shown));
            shown.extend_from_slice(&part[..read]);
        }
    };
    // The alternate screen, then the view.
    until("\u{1b}[?1049h", &mut shown);
    until("newest", &mut shown);
    keys.write_all(b"?").unwrap();
    // Cells that stay as they were are not drawn again, so that a word is all that can be looked for.
    until("PgDn", &mut shown);
    keys.write_all(b"q").unwrap();
    until("\u{1b}[?1049l", &mut shown);
    assert_eq!(terminal.wait().unwrap().code(), Some(0));
}
