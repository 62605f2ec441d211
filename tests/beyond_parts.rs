//! `spectap compare` of parts of files and of pairs of requests, and what it looks like by tag and by position.

#![allow(
    clippy::expect_used,
    reason = "a test fails loudly; clippy sees only the test functions as tests"
)]

mod numbers_support;

use std::fs;
use std::path::Path;

use clap::Parser;
use numbers_support::{record, recorded, statistics};
use serde_json::{Value, json};
use spectap::cli::{Cli, Command};
use spectap::compare::run;
use spectap::export::{Query, snapshot};
use spectap::observation::Observation;

async fn compare(arguments: &[&str]) -> Result<String, String> {
    let command = ["spectap", "compare"].iter().chain(arguments);
    let Command::Compare(args) = Cli::try_parse_from(command).expect("flags").command else {
        unreachable!()
    };
    let mut out = Vec::new();
    match run(&args, &mut out).await {
        Ok(()) => Ok(String::from_utf8(out).expect("text")),
        Err(error) => Err(error.to_string()),
    }
}

/// Requests of k = 4, by turns with the tags `math` and `prose`.
fn requests(n: u64, run: &str, base: usize) -> Vec<Observation> {
    (0..n)
        .map(|number| {
            let mut histogram = [1, 1, 1, 1, 1];
            histogram[base + usize::from(number % 3 == 0)] += 15;
            let mut observation = recorded(vec![record(&histogram)]);
            observation.id = format!("{number:026}");
            observation.x_request_id = Some(format!("prompt-{number}"));
            observation.run = Some(run.to_owned());
            observation.tag = Some(["math", "prose"][number as usize % 2].to_owned());
            observation.timing.inter_token_latency_ms = Some(10.0 + (number % 7) as f64);
            observation
        })
        .collect()
}

fn write(path: &Path, observations: &[Observation]) {
    let lines: Vec<String> = observations
        .iter()
        .map(|observation| serde_json::to_string(observation).expect("JSON"))
        .collect();
    fs::write(path, lines.join("\n")).expect("a file");
}

/// A records file with the runs `old` and `new`.
fn two_runs() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("records.jsonl");
    write(
        &path,
        &[requests(80, "old", 0), requests(70, "new", 1)].concat(),
    );
    let path = path.to_str().expect("a plain path").to_owned();
    (folder, path)
}

#[tokio::test]
async fn two_runs_of_one_file_are_compared_by_name() {
    let (_folder, file) = two_runs();
    let [old, new] = [format!("{file}#run=old"), format!("{file}#run=new")];
    let text = compare(&[&old, &new, "--format=json"]).await.expect("JSON");
    let json: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(
        (&json["base"]["n"], &json["base"]["name"]),
        (&json!(80), &json!(old))
    );
    assert_eq!(json["others"][0]["run"]["n"], 70);
    let error = compare(&[&old, &format!("{file}#run=none")]).await;
    assert_eq!(
        error.expect_err("no such run"),
        format!("{file}#run=none: there is no exchange of that run; the runs there are: new, old")
    );
}

#[tokio::test]
async fn tables_have_a_verdict_by_tag_and_by_position_with_n() {
    let (_folder, file) = two_runs();
    let [old, new] = [format!("{file}#run=old"), format!("{file}#run=new")];
    let text = compare(&[&old, &new]).await.expect("tables");
    let rows_below = |title: &str| -> Vec<Vec<&str>> {
        let mut lines = text
            .lines()
            .skip_while(|line| !line.trim().starts_with(title));
        assert!(lines.next().is_some(), "{title} is missing in\n{text}");
        let rows = lines.skip(1).map(|line| line.split("  ").map(str::trim));
        let rows = rows.map(|cells| cells.filter(|cell| !cell.is_empty()).collect::<Vec<_>>());
        rows.take_while(|cells| cells.len() == 8).collect()
    };
    let by_tag = rows_below("Acceptance Length (ratio) by tag:");
    let ends: Vec<_> = by_tag
        .iter()
        .map(|cells| (cells[0], cells[6], cells[7]))
        .collect();
    assert_eq!(
        ends,
        [
            ("math", "40 / 35", "higher"),
            ("prose", "40 / 35", "higher")
        ]
    );
    let by_position = rows_below("Steps that accepted the draft at each position");
    let ends: Vec<_> = by_position
        .iter()
        .map(|cells| (cells[0], cells[6], cells[7]))
        .collect();
    assert_eq!(
        ends,
        [
            ("0", "80 / 70", "higher"),
            ("1", "80 / 70", "higher"),
            ("2", "80 / 70", "no evidence"),
            ("3", "80 / 70", "no evidence"),
        ]
    );
    assert_eq!(rows_below("Inter-Token Latency (ms) by tag:").len(), 2);
    assert!(
        text.ends_with("hold together at 95 %, by drawing requests anew.\n"),
        "{text}"
    );
}

#[tokio::test]
async fn pairs_are_told_with_those_that_are_left_out() {
    let (_folder, file) = two_runs();
    let [old, new] = [format!("{file}#run=old"), format!("{file}#run=new")];
    let text = compare(&[&old, &new, "--pair=x_request_id"])
        .await
        .expect("tables");
    let line = "  Paired by x_request_id: 70 pairs. Left out, since they have no partner: \
                10 requests of the base and 0 of this run.\n";
    assert!(text.contains(line), "{text}");
    assert!(text.contains("70 / 70"), "{text}");
    assert!(
        text.ends_with("hold together at 95 %, by drawing pairs of requests anew.\n"),
        "{text}"
    );
    let unpaired = compare(&[&old, &new]).await.expect("tables");
    assert!(!unpaired.contains("Paired"), "{unpaired}");
}

#[tokio::test]
async fn markdown_has_the_same_cells_and_breaks_at_no_name() {
    let (folder, file) = two_runs();
    let odd = folder.path().join("a`|b");
    fs::copy(&file, &odd).expect("a copy");
    let odd = odd.to_str().expect("a plain path");
    let markdown = compare(&[&file, odd, "--format=markdown"])
        .await
        .expect("markdown");
    assert!(
        markdown.starts_with(&format!(
            "Base: `{file} (150 requests with numbers, k = 4)`\n"
        )),
        "{markdown}"
    );
    assert!(markdown.contains("a'|b (150 requests"), "{markdown}");
    for part in [
        "### Whole run\n\n| figure | base | other | difference | interval | relative | n | verdict |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|\n| Acceptance Length (ratio) |",
        "### Steps that accepted the draft at each position (% of steps)\n\n| position |",
        "### Draft Acceptance Rate (%) by tag\n\n| tag |",
        "| 150 / 150 | no evidence |",
    ] {
        assert!(markdown.contains(part), "{part} is missing in\n{markdown}");
    }
}

#[tokio::test]
async fn what_a_file_can_not_give_is_said() {
    let (folder, file) = two_runs();
    let path = folder.path().join("snapshot.json");
    let taken = snapshot(&statistics(requests(40, "old", 0)), &Query::default());
    fs::write(&path, serde_json::to_string(&taken).expect("JSON")).expect("a file");
    let path = path.to_str().expect("a plain path");
    for (arguments, says) in [
        (
            vec![&*file, path, "--pair=tag-index"],
            "a snapshot has no single exchanges to pair",
        ),
        (
            vec![&*file, path, "--window=5m"],
            "a window (--window) is counted back from now",
        ),
        (
            vec![&*file, &format!("{path}#run=old")],
            "a snapshot does not tell runs apart; take one of that run",
        ),
        (
            vec![&*file, "other.jsonl#runs=old"],
            "runs=old: write run=NAME",
        ),
    ] {
        let error = compare(&arguments).await.expect_err("no comparison");
        assert!(error.contains(says), "{error}");
    }
    // A snapshot has its tags.
    let text = compare(&[path, &format!("{path}#tag=math")])
        .await
        .expect("tables");
    assert!(text.contains("40 / 20 few"), "{text}");
}

#[tokio::test]
async fn forced_acceptance_is_marked() {
    let (folder, file) = two_runs();
    let forced = folder.path().join("forced.jsonl");
    let manifest = json!({"manifest": {
        "form": 1, "version": "0.1.0", "commit": "", "start": "2026-12-01T09:00:00Z", "engine": null,
        "notes": {"acceptance": "synthetic"}
    }});
    let records = fs::read_to_string(&file).expect("the records");
    fs::write(&forced, format!("{manifest}\n{records}")).expect("a file");
    let forced = forced.to_str().expect("a plain path");
    let text = compare(&[&file, forced]).await.expect("tables");
    assert!(text.contains("k = 4, forced acceptance)\n"), "{text}");
    let text = compare(&[&file, forced, "--format=json"])
        .await
        .expect("JSON");
    let json: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(json["others"][0]["run"]["mark"], "forced acceptance");
    assert_eq!(json["base"].get("mark"), None);
}

#[test]
fn a_wrong_way_to_pair_is_answered_with_the_right_ones() {
    let error = Cli::try_parse_from(["spectap", "compare", "a", "b", "--pair=prompt"])
        .expect_err("no such way")
        .to_string();
    assert!(error.contains("write x_request_id or tag-index"), "{error}");
}
