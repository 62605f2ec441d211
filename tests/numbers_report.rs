//! `spectap report` against a real socket: what it prints, and what it says when it can't.

#![allow(
    clippy::expect_used,
    reason = "a test fails loudly; clippy sees only the test functions as tests"
)]

mod numbers_support;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use numbers_support::{aiperf_observations, observation, record, recorded, statistics};
use spectap::cli::report::{ReportArgs, ReportFormat, ReportSource};
use spectap::export::table::Look;
use spectap::export::{By, Query, snapshot, summary, table};
use spectap::observation::Observation;
use spectap::report::run;
use spectap::stats::Window;

/// Answers one request with these bytes; gives the address and, at the end, the request's head.
fn answer_once(response: Vec<u8>) -> (String, thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    let server = thread::spawn(move || {
        let (mut connection, _) = listener.accept().expect("a connection");
        let mut head = Vec::new();
        let mut piece = [0; 1024];
        while !head.windows(4).any(|four| four == b"\r\n\r\n") {
            let read = connection.read(&mut piece).expect("a request");
            assert!(read > 0, "the request ended early");
            head.extend_from_slice(&piece[..read]);
        }
        // The other side may hang up early, when the answer is not what it wants.
        let _ = connection.write_all(&response);
        String::from_utf8(head).expect("text")
    });
    (address, server)
}

fn ok(body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

fn snapshot_answer(exchanges: Vec<Observation>) -> Vec<u8> {
    let snapshot = snapshot(&statistics(exchanges), &Query::default());
    ok(&serde_json::to_string(&snapshot).expect("JSON"))
}

async fn report(from: &str, format: ReportFormat, by: Vec<By>) -> Result<String, String> {
    let args = ReportArgs {
        files: Vec::new(),
        from: from.to_owned(),
        admin_token_file: None,
        bodies: None,
        format,
        source: ReportSource::Requests,
        by,
        window: Window::All,
        run: None,
        filter: Vec::new(),
        all: false,
        labels: None,
        draft_cost: None,
    };
    let mut out = Vec::new();
    match run(&args, &mut out).await {
        Ok(()) => Ok(String::from_utf8(out).expect("text")),
        Err(error) => Err(error.to_string()),
    }
}

async fn failure(response: &str) -> String {
    let (address, server) = answer_once(response.as_bytes().to_vec());
    let error = report(&address, ReportFormat::Table, Vec::new())
        .await
        .expect_err("no report");
    server.join().expect("the server");
    error.replace(&address, "http://TAP")
}

#[tokio::test]
async fn it_prints_the_table_that_the_tap_itself_would_print() {
    let exchanges = aiperf_observations("aiperf-vllm");
    let summary = summary(&statistics(exchanges.clone()), &Query::default());
    let expected = format!(
        "{}{}{}\n{}",
        table::spec_decode(&summary),
        table::beyond(&summary, Look::default()),
        table::cost_wanted(summary.advice.as_ref().expect("advice")),
        table::traffic("Traffic", &summary.metrics, Look::default()).expect("lengths")
    );
    let (address, server) = answer_once(snapshot_answer(exchanges));
    let text = report(&address, ReportFormat::Table, Vec::new()).await;
    assert_eq!(text, Ok(expected));
    let head = server.join().expect("the server");
    assert!(
        head.starts_with("GET /api/v1/snapshot HTTP/1.1\r\n"),
        "{head}"
    );
}

#[tokio::test]
async fn by_model_adds_a_section_for_each_model() {
    let mut other = recorded(vec![record(&[0, 0, 4])]);
    other.model = Some("other-model".into());
    let exchanges = vec![recorded(vec![record(&[3, 1])]), other];
    let (address, server) = answer_once(snapshot_answer(exchanges));
    let text = report(&address, ReportFormat::Table, vec![By::Model])
        .await
        .expect("a report");
    server.join().expect("the server");
    let titles: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with("Spec Decode") && !line.contains("Steps"))
        .collect();
    assert_eq!(
        titles,
        [
            "Spec Decode",
            "Spec Decode: model m",
            "Spec Decode: model other-model"
        ]
    );
    assert!(text.contains("  Accepted drafts per step (% of steps):  0: 0%   1: 0%   2: 100%\n"));
}

#[tokio::test]
async fn requests_without_a_tag_stand_under_none_and_not_under_unknown() {
    let mut tagged = recorded(vec![record(&[0, 4])]);
    tagged.tag = Some("math".into());
    let exchanges = vec![recorded(vec![record(&[3, 1])]), tagged];
    let (address, server) = answer_once(snapshot_answer(exchanges));
    let text = report(&address, ReportFormat::Table, vec![By::Tag])
        .await
        .expect("a report");
    server.join().expect("the server");
    for title in ["Spec Decode: tag (none)", "Spec Decode: tag math"] {
        assert!(
            text.lines().any(|line| line.trim() == title),
            "{title}: {text}"
        );
    }
}

#[tokio::test]
async fn json_is_the_summary() {
    let (address, server) = answer_once(snapshot_answer(vec![recorded(vec![record(&[3, 1])])]));
    let text = report(&address, ReportFormat::Json, Vec::new())
        .await
        .expect("a report");
    server.join().expect("the server");
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(json["n"]["recorded"], 1);
    assert_eq!(
        json["metrics"]["spec_decode_token_weighted_acceptance_length"]["avg"],
        1.25
    );
}

#[tokio::test]
async fn nobody_there_is_said_with_the_address_and_a_hint() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    drop(listener);
    let error = report(&address, ReportFormat::Table, Vec::new())
        .await
        .expect_err("no report");
    assert!(
        error.starts_with(&format!("can't reach {address}: Connection refused")),
        "{error}"
    );
    assert!(error.contains("is `spectap serve` running"), "{error}");
}

#[tokio::test]
async fn an_address_that_is_none_is_refused_at_once() {
    for from in [
        "127.0.0.1:8091",
        "https://127.0.0.1:8091",
        "http://127.0.0.1:8091/api",
        "",
        "http://",
    ] {
        let error = report(from, ReportFormat::Table, Vec::new())
            .await
            .expect_err("no report");
        assert!(
            error.contains("should be http://HOST:PORT"),
            "{from}: {error}"
        );
    }
}

#[tokio::test]
async fn what_is_no_tap_is_said_plainly() {
    assert_eq!(
        failure("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n").await,
        "http://TAP/api/v1/snapshot answers 404 Not Found; is this the admin address of `spectap serve`?"
    );
    let error = failure("SSH-2.0-OpenSSH_9.6\r\n").await;
    assert!(
        error.starts_with("no proper answer from http://TAP: "),
        "{error}"
    );
    let error = failure("HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n{\"version\":1").await;
    assert!(
        error.starts_with("no proper answer from http://TAP: "),
        "{error}"
    );
    let error = failure("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi").await;
    assert!(
        error.starts_with("http://TAP/api/v1/snapshot is no snapshot: expected value"),
        "{error}"
    );
}

#[tokio::test]
async fn the_token_is_sent_and_its_lack_is_said_with_the_flag_that_gives_it() {
    assert_eq!(
        failure("HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n").await,
        "http://TAP asks for its admin token; give the file that holds it with --admin-token-file"
    );
    let closed = r#"{"error":{"code":"token_required","message":"not bound to loopback"}}"#;
    assert_eq!(
        failure(&format!(
            "HTTP/1.1 403 Forbidden\r\ncontent-length: {}\r\n\r\n{closed}",
            closed.len()
        ))
        .await,
        "http://TAP refuses: not bound to loopback"
    );

    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("token");
    std::fs::write(&file, "secret\n").expect("a file");
    let with_token = async |format: ReportFormat, response: Vec<u8>| {
        let (address, server) = answer_once(response);
        let args = ReportArgs {
            files: Vec::new(),
            from: address.clone(),
            admin_token_file: Some(file.clone()),
            bodies: None,
            format,
            source: ReportSource::Requests,
            by: Vec::new(),
            filter: Vec::new(),
            window: Window::All,
            run: None,
            all: false,
            labels: None,
            draft_cost: None,
        };
        let result = run(&args, &mut Vec::new()).await;
        let head = server.join().expect("the server").to_lowercase();
        assert!(
            head.contains("\r\nauthorization: bearer secret\r\n"),
            "{head}"
        );
        result.map_err(|error| error.to_string().replace(&address, "http://TAP"))
    };
    let answer = snapshot_answer(vec![recorded(vec![record(&[3, 1])])]);
    assert_eq!(with_token(ReportFormat::Table, answer).await, Ok(()));
    let refused = b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n".to_vec();
    assert_eq!(
        with_token(ReportFormat::Jsonl, refused).await,
        Err(
            "http://TAP refuses the token of --admin-token-file; it must be the one that `spectap serve` was started with"
                .to_owned()
        )
    );
}

#[tokio::test]
async fn a_snapshot_of_another_version_is_refused_by_number() {
    let answer = String::from_utf8(ok(r#"{"version":99,"anything":[]}"#)).expect("text");
    assert_eq!(
        failure(&answer).await,
        "http://TAP sends snapshots of version 99, this spectap reads version 3; use the same version on both sides"
    );
}

#[test]
fn the_live_table_has_a_line_per_model_and_a_dash_for_what_is_not_known() {
    let mut zero_step = recorded(vec![record(&[0, 0])]);
    zero_step.model = Some("other-model".into());
    let query = Query {
        by: vec![By::Model, By::Engine],
        ..Query::default()
    };
    let exchanges = vec![
        recorded(vec![record(&[3, 1])]),
        recorded(vec![record(&[1, 3])]),
        zero_step,
        observation(),
    ];
    let live = table::by_group(&summary(&statistics(exchanges), &query));
    assert_eq!(
        live,
        "model        engine   n  recorded  length    rate  steps  zero-step\n\
         m            unknown  1         0       -       -      -          0\n\
         m            vllm     2         2    1.50  50.00%      8          0\n\
         other-model  vllm     1         0       -       -      -          1\n"
    );
    let nothing = table::by_group(&summary(&statistics([]), &Query::default()));
    assert_eq!(
        nothing,
        "n  recorded  length  rate  steps  zero-step\n0         0       -     -      -          0\n"
    );
}

#[tokio::test]
async fn a_model_without_numbers_gets_its_own_sentence() {
    let mut silent = observation();
    silent.model = Some("silent".into());
    let exchanges = vec![recorded(vec![record(&[3, 1])]), silent];
    let (address, server) = answer_once(snapshot_answer(exchanges));
    let text = report(&address, ReportFormat::Table, vec![By::Model])
        .await
        .expect("a report");
    server.join().expect("the server");
    assert!(
        text.ends_with(
            "\nSpec Decode: model silent: No acceptance numbers: 1 exchange, 1 absent (unknown): \
             the responses give no hint why\n"
        ),
        "{text}"
    );
}
