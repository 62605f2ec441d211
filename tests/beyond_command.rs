//! `spectap compare` and the lines below the table of `spectap report`: what a person sees.

#![allow(
    clippy::expect_used,
    reason = "a test fails loudly; clippy sees only the test functions as tests"
)]

mod numbers_support;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::thread;

use numbers_support::{observation, record, recorded, statistics};
use spectap::cli::compare::{CompareArgs, CompareFormat};
use spectap::cli::report::{ReportArgs, ReportFormat, ReportSource};
use spectap::compare::run;
use spectap::export::table::Look;
use spectap::export::{By, Query, snapshot, summary, table};
use spectap::observation::Observation;
use spectap::stats::Window;

/// Requests that accept more or fewer drafts, all of k = 4.
fn requests(n: u64, base: u64) -> Vec<Observation> {
    (0..n)
        .map(|number| {
            let mut histogram = [1, 1, 1, 1, 1];
            histogram[((base + number) % 3 + base) as usize] += 15;
            let mut observation = recorded(vec![record(&histogram)]);
            observation.id = format!("{number:026}");
            observation.timing.inter_token_latency_ms = Some(10.0 + (number % 7) as f64);
            observation.spec_decode_acceptance[0].completion_tokens = Some(100);
            observation
        })
        .collect()
}

async fn compare(files: &[&Path], format: CompareFormat) -> Result<String, String> {
    let mut names = files.iter().map(|file| file.display().to_string());
    let args = CompareArgs {
        base: names.next().expect("a base"),
        others: names.collect(),
        admin_token_file: None,
        window: Window::All,
        pair: None,
        format,
        seed: 1,
    };
    let mut out = Vec::new();
    match run(&args, &mut out).await {
        Ok(()) => Ok(String::from_utf8(out).expect("text")),
        Err(error) => Err(error.to_string()),
    }
}

fn write_snapshot(path: &Path, observations: Vec<Observation>, pretty: bool) {
    let snapshot = snapshot(&statistics(observations), &Query::default());
    let text = if pretty {
        serde_json::to_string_pretty(&snapshot)
    } else {
        serde_json::to_string(&snapshot)
    };
    fs::write(path, text.expect("JSON")).expect("a file");
}

fn write_lines(path: &Path, observations: &[Observation]) {
    let mut text = "{\"manifest\":{\"version\":\"0.1.0\"}}\n".to_owned();
    for (number, observation) in observations.iter().enumerate() {
        let mut line = serde_json::to_value(observation).expect("JSON");
        if number % 2 == 1 {
            // As `--records-format aiperf` writes it.
            line["spec_decode_acceptance"] = line["spec_decode_acceptance"][0].take();
        }
        text.push_str(&line.to_string());
        text.push('\n');
    }
    text.push_str("{\"id\":\"cut of");
    fs::write(path, text).expect("a file");
}

#[tokio::test]
async fn snapshots_and_observations_line_by_line_give_the_same_comparison() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name);
    let (one, pretty, lines) = (file("one.json"), file("pretty.json"), file("lines.jsonl"));
    write_snapshot(&one, requests(50, 0), false);
    write_snapshot(&pretty, requests(60, 1), true);
    write_lines(&lines, &requests(60, 1));
    let of_snapshot = compare(&[&one, &pretty], CompareFormat::Json)
        .await
        .expect("a comparison");
    let of_lines = compare(&[&one, &lines], CompareFormat::Json)
        .await
        .expect("a comparison");
    let name = |path: &Path| format!("{:?}", path.display().to_string());
    assert_eq!(
        of_snapshot.replace(&name(&pretty), "OTHER"),
        of_lines.replace(&name(&lines), "OTHER")
    );
    let json: serde_json::Value = serde_json::from_str(&of_lines).expect("JSON");
    assert_eq!(json["base"]["n"], 50);
    assert_eq!(json["base"]["k"], serde_json::json!([4]));
    let other = &json["others"][0];
    assert_eq!(other["run"]["n"], 60);
    let length = &other["differences"][0];
    assert_eq!(length["verdict"], "higher");
    assert_eq!(length["unit"], "ratio");
    assert!(length["interval"]["low"].as_f64().expect("a number") > 0.0);
    assert_eq!(other["differences"][2]["verdict"], "no_evidence");
    assert_eq!(other["positions"].as_array().expect("a list").len(), 4);
}

#[tokio::test]
async fn the_tables_say_what_there_is_and_what_there_is_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name);
    let (base, same, silent) = (file("base.json"), file("same.json"), file("silent.json"));
    write_snapshot(&base, requests(60, 0), false);
    write_snapshot(&same, requests(60, 0), false);
    let without: Vec<Observation> = (0..40)
        .map(|number| {
            let mut observation = observation();
            observation.id = format!("{number:026}");
            observation.timing.inter_token_latency_ms = Some(20.0 + (number % 7) as f64);
            observation
        })
        .collect();
    write_snapshot(&silent, without, false);
    let text = compare(&[&base, &same], CompareFormat::Table)
        .await
        .expect("a comparison");
    let line = |text: &str, start: &str| {
        text.lines()
            .find(|line| line.trim_start().starts_with(start))
            .unwrap_or_else(|| panic!("{start}: {text}"))
            .to_owned()
    };
    assert!(
        text.starts_with(&format!(
            "Base: {} (60 requests with numbers, k = 4)\n",
            base.display()
        )),
        "{text}"
    );
    assert!(
        line(&text, "Acceptance Length (ratio)").ends_with("60 / 60  no evidence"),
        "{text}"
    );
    assert!(
        line(&text, "Draft Acceptance Rate (%)").ends_with("no evidence"),
        "{text}"
    );
    assert!(text.contains("hold together at 95 %"), "{text}");
    // A base without speculation gives the speed-up.
    let text = compare(&[&silent, &base], CompareFormat::Table)
        .await
        .expect("a comparison");
    assert!(
        text.starts_with(&format!(
            "Base: {} (no speculation seen)\n",
            silent.display()
        )),
        "{text}"
    );
    assert!(
        line(&text, "Acceptance Length (ratio)").ends_with("unknown"),
        "{text}"
    );
    assert!(
        line(&text, "Inter-Token Latency (ms)").ends_with("lower"),
        "{text}"
    );
    assert!(
        line(&text, "Speed-up").contains("times as fast as in the base ("),
        "{text}"
    );
}

#[tokio::test]
async fn a_file_that_can_not_be_read_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = folder.path().join("missing.json");
    let error = compare(&[&missing, &missing], CompareFormat::Table)
        .await
        .expect_err("an error");
    assert!(
        error.starts_with(&format!("can't read {}: No such file", missing.display())),
        "{error}"
    );
    for (text, says) in [
        ("hello\n", "holds neither a snapshot"),
        ("", "holds neither a snapshot"),
        ("{\"a\":1}\n{\"b\":2}\n", "holds neither a snapshot"),
        (
            "{\"version\":3,\"groups\":[{}]}",
            "holds neither a snapshot",
        ),
        (
            "{\"version\":99,\"groups\":[]}",
            "is a snapshot of version 99",
        ),
    ] {
        let file = folder.path().join("file");
        fs::write(&file, text).expect("a file");
        let error = compare(&[&file, &file], CompareFormat::Table)
            .await
            .expect_err("an error");
        assert!(error.contains(says), "{text}: {error}");
    }
    let path = Path::new("http://127.0.0.1:1/path");
    let error = compare(&[path, path], CompareFormat::Table)
        .await
        .expect_err("an error");
    assert!(error.contains("should be http://HOST:PORT"), "{error}");
}

#[test]
fn below_the_table_stand_certainty_gain_and_findings() {
    let of = |observations| summary(&statistics(observations), &Query::default());
    let text = table::beyond(&of(requests(20, 0)), Look::default());
    assert!(text.starts_with("\nAcceptance length "), "{text}");
    assert!(
        text.contains(" (95 % interval ") && text.contains(", n = 20, few);"),
        "{text}"
    );
    assert!(
        text.contains("of the output tokens came from drafts"),
        "{text}"
    );
    let text = table::beyond(&of(requests(40, 0)), Look::default());
    assert!(
        text.contains(", n = 40);") && !text.contains("few"),
        "{text}"
    );
    let look = Look {
        mark: Some("forced"),
        ..Look::default()
    };
    let text = table::beyond(&of(requests(40, 0)), look);
    assert_eq!(text.matches(". (forced)\n").count(), 2, "{text}");
    assert_eq!(table::beyond(&of(Vec::new()), look), "");
}

#[test]
fn every_figure_beyond_stands_in_the_summary_with_its_n() {
    let summary = summary(&statistics(requests(40, 0)), &Query::default());
    let json = serde_json::to_value(&summary).expect("JSON");
    let length = &json["metrics"]["spec_decode_token_weighted_acceptance_length"];
    assert_eq!(length["interval"]["level"], 0.95);
    assert_eq!(length["few_requests"], serde_json::Value::Null);
    for tag in [
        "draft_token_share",
        "wasted_drafts_per_accepted",
        "passes_that_drafted",
        "tokens_per_pass",
        "drafts_per_step",
    ] {
        assert_eq!(json["gain"][tag]["n"], 40, "{tag}");
        assert!(json["gain"][tag]["unit"].is_string(), "{tag}");
    }
    assert_eq!(json["survival"][3]["lower_bound"], false);
    assert_eq!(json["relations"][0]["with"], "inter_token_latency");
    assert_eq!(json["relations"][1]["with"], "concurrency");
    assert_eq!(json["advice"]["obstacle"], "too_few");
}

/// A tap that answers one request with the snapshot of these exchanges.
fn tap(observations: Vec<Observation>) -> (String, thread::JoinHandle<()>) {
    let snapshot = snapshot(&statistics(observations), &Query::default());
    let body = serde_json::to_string(&snapshot).expect("JSON");
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
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        connection.write_all(answer.as_bytes()).expect("an answer");
    });
    (address, server)
}

#[tokio::test]
async fn two_running_taps_are_compared_by_their_addresses() {
    let ((base, first), (other, second)) = (tap(requests(60, 1)), tap(requests(60, 0)));
    let text = compare(&[Path::new(&base), Path::new(&other)], CompareFormat::Table)
        .await
        .expect("a comparison");
    first.join().expect("the first tap");
    second.join().expect("the second tap");
    assert!(
        text.starts_with(&format!("Base: {base} (60 requests")),
        "{text}"
    );
    let length = text.lines().find(|line| line.contains("Acceptance Length"));
    assert!(length.expect("a line").ends_with("lower"), "{text}");
}

/// What `spectap report` prints about these exchanges.
async fn report(observations: Vec<Observation>, draft_cost: Option<f64>) -> String {
    let (from, server) = tap(observations);
    let args = ReportArgs {
        files: Vec::new(),
        admin_token_file: None,
        from,
        bodies: None,
        format: ReportFormat::Table,
        source: ReportSource::Requests,
        by: vec![By::Model],
        filter: Vec::new(),
        window: Window::All,
        run: None,
        all: false,
        labels: None,
        draft_cost,
    };
    let mut out = Vec::new();
    spectap::report::run(&args, &mut out)
        .await
        .expect("a report");
    server.join().expect("the tap");
    String::from_utf8(out).expect("text")
}

#[tokio::test]
async fn a_draft_cost_adds_the_advice_for_all_and_for_each_group() {
    let observations = requests(60, 1);
    let plain = report(observations.clone(), None).await;
    assert!(!plain.contains("speed-up"), "{plain}");
    assert_eq!(
        plain
            .matches("The best draft depth needs --draft-cost")
            .count(),
        1,
        "{plain}"
    );
    let text = report(observations, Some(0.1)).await;
    let advice =
        "Estimate from the histogram of 1200 steps of 60 requests at k = 4, likely pessimistic";
    assert_eq!(text.matches(advice).count(), 2, "{text}");
    assert_eq!(
        text.matches("At a draft cost of 0.1 the estimate is best at depth")
            .count(),
        2,
        "{text}"
    );
    assert_eq!(
        text.matches("Drawing the requests anew, 95 % of the draws are best at depth")
            .count(),
        2,
        "{text}"
    );
    let few = report(requests(10, 1), Some(0.1)).await;
    assert!(
        few.contains("No advice on the draft depth: 200 steps of 10 requests are too few"),
        "{few}"
    );
}

/// Requests at depth 4 and 8 by turns; a step takes 10 ms and 0.2 ms more for each draft.
fn at_two_depths(n: u64) -> Vec<Observation> {
    let one = |number: u64| {
        let k = if number.is_multiple_of(2) { 4 } else { 8 };
        let mut histogram = vec![0; k + 1];
        (histogram[0], histogram[2], histogram[k]) = (10, 20, 10);
        let mut observation = recorded(vec![record(&histogram)]);
        let tokens = 1 + 40 + 40 + 10 * k as u64;
        observation.usage.completion_tokens = Some(tokens);
        observation.spec_decode_acceptance[0].completion_tokens = Some(tokens);
        // No two requests are the same to the tap.
        observation.in_flight = 1 + number % 3;
        let step = 10.0 + 0.2 * k as f64 + (number % 5) as f64 / 100.0;
        observation.timing.inter_token_latency_ms = Some(step * 40.0 / (tokens - 1) as f64);
        observation
    };
    (0..n).map(one).collect()
}

#[tokio::test]
async fn where_requests_ran_at_two_depths_the_cost_of_a_draft_is_measured() {
    let text = report(at_two_depths(100), None).await;
    let line = text
        .lines()
        .find(|line| line.starts_with("At a draft cost of "))
        .unwrap_or_else(|| panic!("{text}"));
    assert!(
        line.starts_with("At a draft cost of 0.020 (measured: 95 % interval 0."),
        "{line}"
    );
    assert!(
        line.contains(", n = 100 at k = 4, 8) the estimate is best at depth"),
        "{line}"
    );
    assert!(
        text.contains("50 requests that ran at other depths are left out."),
        "{text}"
    );
    assert!(!text.contains("needs --draft-cost"), "{text}");
    // A cost that is given counts, whatever could be measured.
    let given = report(at_two_depths(100), Some(0.3)).await;
    assert!(
        given.contains("At a draft cost of 0.3 the estimate"),
        "{given}"
    );
    assert!(!given.contains("measured:"), "{given}");
    let summary = summary(&statistics(at_two_depths(100)), &Query::default());
    let advice = serde_json::to_value(&summary).expect("JSON")["advice"].take();
    let cost = advice["draft_cost"].as_f64().expect("a number");
    assert!((cost - 0.02).abs() < 0.001, "{cost}");
    assert_eq!(advice["measured_cost"]["n"], 100);
    assert_eq!(advice["measured_cost"]["depths"][1]["k"], 8);
    assert_eq!(advice["best_interval"]["level"], 0.95);
    assert!(advice["depths"][0]["speed_up"].is_object());
    let one = serde_json::to_value(
        summary_of_one_depth(at_two_depths(100))
            .advice
            .expect("advice"),
    );
    assert_eq!(one.expect("JSON")["draft_cost"], serde_json::Value::Null);
}

fn summary_of_one_depth(observations: Vec<Observation>) -> spectap::export::Summary {
    let of_4 = observations
        .into_iter()
        .filter(|it| it.spec_decode_acceptance[0].num_spec_tokens == Some(4));
    summary(&statistics(of_4), &Query::default())
}
