//! `spectap verify` as a user runs it: what it says beforehand, and its exit codes.

use crate::program::{Running, output, spectap};

fn engine(flags: &[&str]) -> (Running, String) {
    let base = [
        "simulate",
        "--listen=127.0.0.1:0",
        "--prefill-time=5",
        "--step-time=5",
    ];
    let arguments: Vec<&str> = base.iter().chain(flags).copied().collect();
    let engine = Running::start(&mut spectap(&arguments));
    let address = engine.until("an address", |line| {
        let at = line.find("http://")?;
        line[at..].split_whitespace().next().map(str::to_owned)
    });
    (engine, address)
}

#[test]
fn verify_says_what_it_sends_and_sends_nothing_unasked() {
    let (_engine, url) = engine(&[]);
    let sides = [format!("--upstream={url}"), format!("--through={url}")];
    let arguments = ["verify", "--only=models,chat", &sides[0], &sides[1]];
    let (code, out, errors) = output(&arguments);
    assert_eq!((code, out.as_str()), (Some(2), ""));
    assert!(
        errors.contains("2 requests") && errors.contains("72 tokens"),
        "{errors}"
    );
    assert!(errors.contains("--yes"), "{errors}");
    let (code, out, errors) = output(&[&arguments[..], &["--yes"]].concat());
    assert_eq!(code, Some(0), "{errors}");
    assert!(out.contains("By accident: nothing"), "{out}");
    assert!(errors.contains("chat: same"), "{errors}");
}

#[test]
fn verify_tells_a_difference_by_its_exit_code() {
    let ((_one, direct), (_other, through)) = (engine(&[]), engine(&["--fingerprint=other"]));
    let (code, out, errors) = output(&[
        "verify",
        "--yes",
        "--only=chat",
        &format!("--upstream={direct}"),
        &format!("--through={through}"),
    ]);
    assert_eq!(code, Some(1), "{errors}");
    assert!(
        out.contains("By accident:\n  ") && out.contains("system_fingerprint"),
        "{out}"
    );
}

#[test]
fn verify_tells_that_it_could_not_run() {
    let (code, out, errors) = output(&[
        "verify",
        "--yes",
        "--upstream=http://127.0.0.1:9",
        "--through=http://127.0.0.1:9",
    ]);
    assert_eq!((code, out.as_str()), (Some(2), ""));
    assert!(errors.contains("--upstream"), "{errors}");
    let (code, _, errors) = output(&[
        "verify",
        "--yes",
        "--upstream=127.0.0.1:8000",
        "--through=http://a",
    ]);
    assert_eq!(code, Some(2));
    assert!(errors.contains("http://127.0.0.1:8000"), "{errors}");
}
