//! The commands together: simulated engine, tap, client, report; and what is logged of it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use serde_json::Value;

use crate::program::{Running, output, spectap};

const BODY: &str = r#"{"model":"demo","messages":[{"role":"user","content":"hidden-prompt"}],"max_tokens":40,"stream":true}"#;

pub(crate) fn simulate(engine: &str) -> (Running, SocketAddr) {
    let arguments = [
        "simulate",
        "--engine",
        engine,
        "--listen=127.0.0.1:0",
        "--model=demo",
        "--step-time=0",
        "--prefill-time=0",
    ];
    let running = Running::start(&mut spectap(&arguments));
    let address = running.address_after(" on http://");
    (running, address)
}

pub(crate) fn chat(data: SocketAddr) -> String {
    let mut client = TcpStream::connect(data).unwrap();
    let request = format!(
        "POST /v1/chat/completions?api=hidden-query HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nAuthorization: Bearer hidden-key\r\n\
         Connection: close\r\nContent-Length: {}\r\n\r\n{BODY}",
        BODY.len()
    );
    client.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    answer
}

/// Reports until the exchange of a client that already has its answer is in it.
pub(crate) fn report(admin: SocketAddr, more: &[&str]) -> String {
    let from = format!("http://{admin}");
    let base = ["report", "--from", &from];
    for _ in 0..200 {
        let (code, out, errors) = output(&base.iter().chain(more).copied().collect::<Vec<_>>());
        assert_eq!(code, Some(0), "{errors}");
        if !out.contains("No acceptance numbers") {
            return out;
        }
    }
    panic!("nothing was ever recorded");
}

#[test]
fn a_request_through_serve_shows_up_in_the_report() {
    for engine in ["vllm", "trtllm"] {
        let (_engine, address) = simulate(engine);
        let (_tap, data, admin) = Running::serve(address, &[]);
        let answer = chat(data);
        assert!(
            answer.starts_with("HTTP/1.1 200 OK\r\n") && !answer.contains("\"usage\":{"),
            "{answer}"
        );
        let table = report(admin, &[]);
        assert!(
            table.contains("Spec Decode") && table.contains("Acceptance Length (ratio)"),
            "{table}"
        );
        assert!(
            table.contains("Accepted drafts per step (% of steps):"),
            "{table}"
        );
        let json: Value =
            serde_json::from_str(&report(admin, &["--format=json", "--by=model,engine"])).unwrap();
        assert_eq!(json["n"]["recorded"], 1);
        assert_eq!(json["groups"][0]["key"]["model"], "demo");
    }
}

#[test]
fn without_numbers_the_report_says_why_in_a_sentence() {
    let (_engine, address) = simulate("vllm");
    let (_tap, _, admin) = Running::serve(address, &[]);
    let (code, out, _) = output(&["report", "--from", &format!("http://{admin}")]);
    assert_eq!(code, Some(0));
    assert!(
        out.contains("No acceptance numbers") || out.contains("No exchange"),
        "{out}"
    );
}

#[test]
fn logs_are_quiet_by_default_and_never_tell_what_was_said() {
    let (_engine, address) = simulate("vllm");
    let (tap, data, admin) = Running::serve(address, &[]);
    chat(data);
    report(admin, &[]);
    assert!(tap.errors().lines().count() <= 3, "{}", tap.errors());

    let (tap, data, _) = Running::serve(address, &["--log=trace", "--log-format=json"]);
    let answer = chat(data);
    let line = tap.until("an exchange", |line| {
        line.contains("chat_completions").then(|| line.to_owned())
    });
    let line: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(line["level"], "DEBUG");
    let content = answer
        .split("\"content\":\"")
        .nth(2)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    for hidden in ["hidden-prompt", "hidden-key", "hidden-query"] {
        assert!(!tap.errors().contains(hidden), "{hidden}");
    }
    assert!(
        content.trim().len() < 4 || !tap.errors().contains(content.trim()),
        "{content}"
    );
}

#[test]
fn an_admin_port_that_answers_only_in_part_is_announced_as_such() {
    let tap = Running::start(&mut spectap(&[
        "serve",
        "--upstream=http://127.0.0.1:9",
        "--listen=127.0.0.1:0",
        "--admin-listen=0.0.0.0:0",
    ]));
    tap.until("what answers", |line| {
        line.contains("only /metrics, /livez and /readyz")
            .then(|| assert!(line.contains("--admin-token-file"), "{line}"))
    });
    let (_engine, address) = simulate("vllm");
    let (tap, data, admin) = Running::serve(address, &[]);
    chat(data);
    report(admin, &[]);
    assert!(!tap.errors().contains("only /metrics"), "{}", tap.errors());
}

#[test]
fn the_demo_runs_for_so_many_requests_and_ends_with_its_report() {
    let (code, out, errors) = output(&[
        "demo",
        "--requests=12",
        "--concurrency=6",
        "--listen=127.0.0.1:0",
        "--admin-listen=127.0.0.1:0",
    ]);
    assert_eq!(code, Some(0), "{errors}");
    for text in [
        "chat-8b",
        "code-32b",
        "reasoning-70b",
        "Spec Decode",
        "Accepted drafts per step",
    ] {
        assert!(out.contains(text), "{text} is missing in\n{out}");
    }
}

#[test]
fn report_narrows_to_a_window_and_a_run_and_groups_by_facet() {
    let (_engine, address) = simulate("vllm");
    let (_tap, data, admin) = Running::serve(address, &[]);
    chat(data);
    report(admin, &[]);
    let mut client = TcpStream::connect(admin).unwrap();
    let body = r#"{"name":"k = 8, new"}"#;
    write!(
        client,
        "POST /api/v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    let from = format!("http://{admin}");
    let nothing = output(&["report", "--from", &from, "--run", "k = 8, new"]);
    assert!(nothing.1.contains("No acceptance numbers"), "{nothing:?}");
    chat(data);
    let narrowed = [
        "--run=k = 8, new",
        "--window=5m",
        "--by=stream",
        "--format=json",
    ];
    // The exchange may end a moment after the client has its answer.
    let json = (0..200)
        .map(|_| serde_json::from_str::<Value>(&report(admin, &narrowed)).unwrap())
        .find(|json| json["n"]["recorded"] == 1)
        .expect("the exchange of the run");
    assert_eq!(json["scope"]["window"], "5m");
    assert_eq!(json["scope"]["run"], "k = 8, new");
    assert_eq!(json["groups"][0]["key"]["stream"], "true");
    let all: Value = serde_json::from_str(&report(admin, &["--format=json"])).unwrap();
    assert_eq!(all["n"]["recorded"], 2);

    let (code, _, errors) = output(&["report", "--from", &from, "--run", "unheard-of"]);
    assert_eq!(code, Some(1));
    assert!(
        errors.contains("run=unheard-of: there is no such run"),
        "{errors}"
    );
    let (code, _, errors) = output(&["report", "--by=context,stream"]);
    assert_eq!(code, Some(2));
    assert!(errors.contains("at most one of context"), "{errors}");
    let (code, _, errors) = output(&["report", "--window=7m"]);
    assert_eq!(code, Some(2));
    assert!(errors.contains("1m, 5m, 15m, 1h or all"), "{errors}");
    let single_exchanges = ["report", "--window=5m", "records.jsonl"];
    let (code, _, errors) = output(&single_exchanges);
    assert_eq!(code, Some(2));
    assert!(errors.contains("it does not go with files"), "{errors}");
}
