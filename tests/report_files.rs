//! Reports made of files: AIPerf's own CSV, the matrix of categories, captured bodies, and the benchmark knobs.

#![allow(
    clippy::expect_used,
    reason = "a test fails loudly; clippy sees only the test functions as tests"
)]

mod numbers_support;

use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser;
use numbers_support::{aiperf_file, aiperf_observations, observation, record, recorded};
use serde_json::{Value, json};
use spectap::cli::{Cli, Command};
use spectap::observation::Observation;
use spectap::report::run;
use tempfile::TempDir;

/// A records file with these exchanges.
fn records(exchanges: &[Observation]) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("records.jsonl");
    let lines: Vec<String> = exchanges
        .iter()
        .map(|exchange| serde_json::to_string(exchange).expect("JSON"))
        .collect();
    fs::write(&path, lines.join("\n")).expect("a file");
    (directory, path)
}

async fn report(arguments: &[&str]) -> Result<String, String> {
    let command = ["spectap", "report"].iter().chain(arguments);
    let Command::Report(args) = Cli::try_parse_from(command).expect("flags").command else {
        unreachable!()
    };
    let mut out = Vec::new();
    match run(&args, &mut out).await {
        Ok(()) => Ok(String::from_utf8(out).expect("text")),
        Err(error) => Err(error.to_string()),
    }
}

async fn report_of(exchanges: &[Observation], arguments: &[&str]) -> String {
    let (_directory, path) = records(exchanges);
    let path = path.to_str().expect("a plain path");
    report(&[&[path], arguments].concat())
        .await
        .expect("a report")
}

fn tagged(model: &str, tag: Option<&str>, id: &str, histogram: &[u64]) -> Observation {
    Observation {
        model: Some(model.into()),
        tag: tag.map(str::to_owned),
        x_request_id: Some(id.into()),
        ..recorded(vec![record(histogram)])
    }
}

#[tokio::test]
async fn a_file_is_grouped_by_a_facet_and_by_the_hour_at_once() {
    let streamed = |stream| Observation {
        stream,
        ..tagged("m", None, "a", &[1, 1])
    };
    let text = report_of(
        &[streamed(true), streamed(false), streamed(true)],
        &["--by=hour,stream", "--format=json"],
    )
    .await;
    let json: Value = serde_json::from_str(&text).expect("JSON");
    let groups = json["groups"].as_array().expect("a list");
    let found: Vec<_> = groups
        .iter()
        .map(|group| (&group["key"]["stream"], &group["n"]["recorded"]))
        .collect();
    assert_eq!(
        found,
        [(&json!("false"), &json!(1)), (&json!("true"), &json!(2))]
    );
    assert!(groups[0]["key"]["hour"].is_string(), "{text}");
}

/// The rows that a CSV of AIPerf has about speculative decoding, in its order.
fn spec_decode_rows(csv: &str) -> Vec<&str> {
    let labels = [
        "Acceptance Length",
        "Accepted ",
        "Draft ",
        "Spec Decode ",
        "Overall Draft",
        "Token-Weighted",
        "Zero-Step",
        "Total Accepted",
        "Total Draft",
        "Total Spec",
        "Metric,",
    ];
    csv.split("\r\n")
        .filter(|row| labels.iter().any(|label| row.starts_with(label)))
        .collect()
}

#[tokio::test]
async fn the_csv_has_aiperfs_rows_character_for_character() {
    for name in [
        "aiperf-vllm",
        "aiperf-trtllm",
        "aiperf-zero-only",
        "aiperf-nostats",
    ] {
        let ours = report_of(&aiperf_observations(name), &["--format=csv"]).await;
        let theirs = aiperf_file(name, "profile_export_aiperf.csv");
        assert_eq!(spec_decode_rows(&ours), spec_decode_rows(&theirs), "{name}");
        let blocks: Vec<&str> = ours.split("\r\n\r\n").collect();
        assert_eq!(blocks.len(), 2, "{ours}");
        assert!(
            blocks[1].starts_with("Metric,Value\r\n") && ours.ends_with("\r\n"),
            "{ours}"
        );
        assert!(!ours.replace("\r\n", "").contains('\n'));
    }
}

#[tokio::test]
async fn columns_of_groups_stand_in_front_and_are_quoted_where_they_must_be() {
    let exchanges = [
        tagged("a,\"b\"", None, "1", &[1, 1]),
        tagged("c", None, "2", &[1, 3]),
    ];
    let csv = report_of(&exchanges, &["--format=csv", "--by=model"]).await;
    assert!(csv.starts_with("model,Metric,avg,"), "{csv}");
    for row in [
        ",Acceptance Length (ratio),1.62,1.50,1.75,",
        "\"a,\"\"b\"\"\",Acceptance Length (ratio),1.50,",
        "c,Acceptance Length (ratio),1.75,",
        "c,Total Spec Decode Steps,4.00\r\n",
    ] {
        assert!(
            csv.contains(&format!("\r\n{row}")),
            "{row} is missing in {csv}"
        );
    }
}

#[tokio::test]
async fn the_matrix_of_tags_has_aiperfs_overall_and_the_pooled_value_beside_it() {
    // m/math: (3 of 4) and (1 of 4): length 1 + 4/8; m/qa: 1 + 2/16; pooled 1 + 6/24.
    let exchanges = [
        tagged("m", Some("math"), "1", &[1, 3]),
        tagged("m", Some("math"), "2", &[3, 1]),
        tagged("m", Some("qa"), "3", &[14, 2]),
        tagged("other", Some("qa"), "4", &[0, 2]),
        tagged("m", None, "5", &[0, 9]),
    ];
    let text = report_of(&exchanges, &["--format=json", "--by=tag"]).await;
    let matrix = &serde_json::from_str::<Value>(&text).expect("JSON")["categories"];
    assert_eq!(matrix["categories"], json!(["math", "qa"]));
    let m = &matrix["models"][0]["acceptance_length"];
    assert_eq!(m["categories"]["math"], json!({"value": 1.5, "n": 2}));
    assert_eq!(m["categories"]["qa"], json!({"value": 1.125, "n": 1}));
    assert_eq!(
        (&m["overall"], &m["pooled"], &m["n"]),
        (&json!(1.3125), &json!(1.25), &json!(3))
    );
    let rate = &matrix["models"][0]["draft_acceptance_rate"];
    assert_eq!(
        (&rate["unit"], &rate["pooled"]),
        (&json!("fraction"), &json!(0.25))
    );

    let csv = report_of(&exchanges, &["--format=csv", "--by=tag"]).await;
    let expected = "\r\nMetric,Model,math,qa,Overall,Pooled,n\r\n\
         accept_length,m,1.50,1.12,1.31,1.25,3\r\naccept_length,other,,2.00,2.00,2.00,1\r\n\
         accept_rate,m,0.50,0.12,0.31,0.25,3\r\naccept_rate,other,,1.00,1.00,1.00,1\r\n";
    assert!(csv.ends_with(expected), "{csv}");

    let table = report_of(&exchanges, &["--by=tag"]).await;
    for line in [
        "│     m │ 1.50 │ 1.12 │    1.31 │   1.25 │",
        "│       │  n 2 │  n 1 │         │    n 3 │",
        "│ other │    - │ 2.00 │    2.00 │   2.00 │",
    ] {
        assert!(table.contains(line), "{line} is missing in\n{table}");
    }
}

#[tokio::test]
async fn aiperfs_categories_are_joined_by_the_request_id_without_warm_up_and_errors() {
    let exchanges = [
        tagged("m", None, "a", &[1, 3]),
        tagged("m", None, "b", &[2, 2]),
        tagged("m", None, "warm", &[0, 9]),
        tagged("m", None, "failed", &[0, 9]),
        tagged("m", Some("math"), "nobody", &[0, 9]),
    ];
    let line = |id: &str, kind: &str, phase: &str| json!({"metadata": {"x_request_id": id, "source_kind": kind, "benchmark_phase": phase}, "metrics": {}});
    let mut failed = line("failed", "mixed", "profiling");
    failed["error"] = json!({"message": "gone"});
    let profile = [
        line("a", "mixed", "profiling"),
        line("b", "low_entropy", "profiling"),
        line("warm", "mixed", "warmup"),
        failed,
        json!("torn"),
    ];
    let (directory, _) = records(&[]);
    let labels = directory.path().join("profile_export.jsonl");
    fs::write(&labels, profile.map(|line| line.to_string()).join("\n")).expect("a file");
    let labels = labels.to_str().expect("a plain path");
    let csv = report_of(&exchanges, &["--format=csv", "--labels", labels]).await;
    assert_eq!(
        csv,
        "Metric,Model,low_entropy,mixed,Overall,Pooled,n\r\naccept_length,m,1.50,1.75,1.62,1.62,2\r\n\
         accept_rate,m,0.50,0.75,0.62,0.62,2\r\n"
    );
    let none = report_of(&[tagged("m", None, "x", &[1, 3])], &["--labels", labels]).await;
    assert!(none.starts_with("No exchange has a label"), "{none}");
    let (_other, path) = records(&exchanges);
    let path = path.to_str().expect("a plain path");
    let error = report(&[path, "--labels", path])
        .await
        .expect_err("no labels");
    assert!(
        error.contains("metadata.x_request_id and metadata.source_kind"),
        "{error}"
    );
}

#[tokio::test]
async fn the_knobs_are_survival_by_position_up_to_k_and_the_length() {
    // k = 4; of 10 steps 6 accepted one or more, 3 two or more, 1 three, none all four.
    let exchanges = [recorded(vec![record(&[4, 3, 2, 1, 0])])];
    let text = report_of(&exchanges, &["--format=synthetic"]).await;
    for part in [
        "no valid text",
        "n = 1 requests, 10 verify steps, k = 4",
        "\"synthetic_acceptance_rates\": [0.6000, 0.3000, 0.1000, 0.0000]",
        "\"synthetic_acceptance_length\": 2.0000",
        "SGLANG_SIMULATE_ACC_LEN=2.0000",
        "TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS=1.0000",
    ] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    let nothing = report_of(&[observation()], &["--format=synthetic"]).await;
    assert!(nothing.starts_with("No acceptance numbers"), "{nothing}");
}

#[tokio::test]
async fn captured_bodies_give_what_the_tap_would_have_seen() {
    let captures = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/captures/vllm-0.32.0/ngram-detailed");
    let directory = tempfile::tempdir().expect("a directory");
    for name in ["chat-nonstream.http", "chat-stream-include-usage.http"] {
        fs::copy(captures.join(name), directory.path().join(name)).expect("a copy");
    }
    // The same reply without its head, and what is no reply.
    let reply = fs::read_to_string(captures.join("chat-nonstream.http")).expect("a capture");
    let body = reply.split_once("\r\n\r\n").expect("a head").1;
    fs::write(directory.path().join("body.json"), body).expect("a file");
    fs::write(directory.path().join("request.json"), "{\"model\":\"m\"}").expect("a file");
    fs::write(directory.path().join("notes.txt"), "x").expect("a file");
    let folder = directory.path().to_str().expect("a plain path");
    let text = report(&["--bodies", folder, "--format=json"])
        .await
        .expect("a report");
    let json: Value = serde_json::from_str(&text).expect("JSON");
    // Each is a reply of 4 steps that accepted 7 of 16 drafts.
    assert_eq!(json["n"]["recorded"], 3);
    assert_eq!(json["metrics"]["total_spec_decode_steps"]["avg"], 12.0);
    assert_eq!(
        json["pooled_spec_decode_acceptance_histogram"],
        json!({"1": 6, "2": 3, "3": 3})
    );
    assert!(json["metrics"].get("time_to_first_token").is_none());

    // They are narrowed and grouped as all others are.
    for (filter, n) in [("model=tiny-model", 3), ("engine=vllm", 3), ("tag=math", 0)] {
        let arguments = [
            "--bodies",
            folder,
            "--filter",
            filter,
            "--by=hour,engine",
            "--format=json",
        ];
        let text = report(&arguments).await.expect("a report");
        let json: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(json["n"]["recorded"], n, "{filter}");
        let groups = json["groups"].as_array().expect("a list");
        let of_groups = groups.iter().map(|group| {
            assert_eq!(group["key"]["engine"], "vllm");
            assert!(group["key"]["hour"].is_string());
            group["n"]["recorded"].as_u64().expect("a number")
        });
        assert_eq!(of_groups.sum::<u64>(), n, "{filter}");
    }
    let error = report(&["--bodies", folder, "--run=a"]).await;
    let error = error.expect_err("bodies are of no run");
    assert!(error.ends_with("the runs there are: none"), "{error}");

    let lines = report(&["--bodies", folder, "--format=jsonl"])
        .await
        .expect("lines");
    assert_eq!(lines.lines().count(), 4);
    assert!(lines.starts_with("{\"manifest\":"), "{lines}");
}

#[tokio::test]
async fn a_report_names_the_bytes_that_it_is_about() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("records.jsonl");
    // Its SHA-256 is sha256sum's.
    let line = r#"{"manifest":{"form":1,"version":"0.1.0","commit":"","start":"2026-12-01T09:00:00Z","engine":null}}"#;
    fs::write(&path, format!("{line}\n")).expect("a file");
    let path = path.to_str().expect("a plain path");
    let text = report(&[path, "--format=json"]).await.expect("a report");
    let json: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(
        json["records"],
        json!([{"file": path, "sha256": "eb7775cc5790e730b170021eacba859dcc8d3d1178e50438adb791668490ce5f", "exchanges": 0}])
    );
}

#[tokio::test]
async fn names_in_markdown_break_no_table() {
    let exchanges = [tagged("a|b<i>", None, "1", &[1, 1])];
    let text = report_of(&exchanges, &["--format=markdown", "--by=model", "--all"]).await;
    assert!(
        text.contains("### Spec Decode: model a\\|b&lt;i>\n"),
        "{text}"
    );
    let table: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
    assert!(
        table.contains(
            &"| Total Draft Tokens (tokens) | 2.00 | N/A | N/A | N/A | N/A | N/A | N/A | 1 |"
        ),
        "{text}"
    );
}

#[tokio::test]
async fn filters_and_merging_of_files_leave_the_right_exchanges() {
    let (_one, first) = records(&[tagged("a", None, "1", &[1, 3])]);
    let (_two, second) = records(&[
        tagged("b", None, "2", &[3, 1]),
        tagged("a", None, "3", &[4, 0]),
    ]);
    let paths = [
        first.to_str().expect("plain"),
        second.to_str().expect("plain"),
    ];
    let n = |text: String| {
        let json: Value = serde_json::from_str(&text).expect("JSON");
        (
            json["n"]["exchanges"].as_u64(),
            json["scope"]["filter"].clone(),
        )
    };
    let all = report(&[&paths[..], &["--format=json"]].concat())
        .await
        .expect("a report");
    assert_eq!(n(all), (Some(3), json!({})));
    let some = report(&[&paths[..], &["--format=json", "--filter=model=a"]].concat()).await;
    assert_eq!(n(some.expect("a report")), (Some(2), json!({"model": "a"})));
    let swapped = report(&[paths[1], paths[0], "--by=model"]).await;
    assert_eq!(report(&[paths[0], paths[1], "--by=model"]).await, swapped);
}

#[tokio::test]
async fn a_file_is_narrowed_to_a_run_and_names_those_there_are() {
    let of_run = |run: &str, histogram: &[u64]| Observation {
        run: Some(run.to_owned()),
        ..tagged("m", None, "1", histogram)
    };
    let exchanges = [
        of_run("k4", &[1, 3]),
        of_run("k8", &[4, 0]),
        of_run("k4", &[3, 1]),
    ];
    for by in ["--by=model", "--by=hour,tag"] {
        let text = report_of(&exchanges, &["--run=k4", by, "--format=json"]).await;
        let json: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(
            (&json["scope"]["run"], &json["n"]["recorded"]),
            (&json!("k4"), &json!(2))
        );
        assert_eq!(json["groups"][0]["n"]["recorded"], 2, "{by}");
    }
    let (_directory, path) = records(&exchanges);
    let error = report(&[path.to_str().expect("plain"), "--run=k2"]).await;
    assert_eq!(
        error.expect_err("no such run"),
        "--run k2: there is no exchange of that run; the runs there are: k4, k8"
    );
}
