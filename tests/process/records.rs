//! The records file of a running tap, and reports made of it.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::commands::simulate;
use crate::program::{Running, output};

const DEADLINE: Duration = Duration::from_secs(30);

/// A chat request through the tap; gives the answer.
fn chat(data: SocketAddr, n: u32, stream: bool) -> String {
    let body = format!(
        r#"{{"model":"demo","messages":[{{"role":"user","content":"count {n}"}}],"max_tokens":40,"n":{n},"stream":{stream}}}"#
    );
    let mut client = TcpStream::connect(data).unwrap();
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nX-Request-ID: r-{n}\r\n\
         Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    client.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    answer
}

fn get(admin: SocketAddr, path: &str) -> String {
    let mut client = TcpStream::connect(admin).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    client.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    answer
}

/// The run that the tap is in.
fn name_of_run(admin: SocketAddr) -> String {
    let answer = get(admin, "/api/v1/runs");
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let runs: Value = serde_json::from_str(body).unwrap();
    runs["runs"][0]["name"].as_str().unwrap().to_owned()
}

fn metric(admin: SocketAddr, series: &str) -> u64 {
    let text = get(admin, "/metrics");
    let line = text.lines().find_map(|line| line.strip_prefix(series));
    line.map_or(0, |value| value.trim().parse().unwrap())
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < DEADLINE, "never came: {what}");
        std::thread::yield_now();
    }
}

fn report(arguments: &[&str]) -> String {
    let (code, out, errors) = output(&[&["report"], arguments].concat());
    assert_eq!(code, Some(0), "{errors}");
    out
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&report(&[arguments, &["--format=json"]].concat())).unwrap()
}

/// The same of records files, without the member that only files have.
fn json_of_files(arguments: &[&str]) -> Value {
    let mut report = json(arguments);
    let records = report.as_object_mut().unwrap().remove("records").unwrap();
    assert_eq!(records[0]["sha256"].as_str().unwrap().len(), 64);
    report
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The file and the older ones beside it.
fn files(path: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(path.parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
}

#[test]
fn the_facet_that_is_named_stands_on_the_counters_of_a_running_tap() {
    let (_engine, address) = simulate("vllm");
    let (_tap, data, admin) = Running::serve(address, &["--metric-facet=stream"]);
    chat(data, 1, true);
    chat(data, 1, false);
    for value in ["true", "false"] {
        let series = format!(
            "spectap_spec_decode_requests_total{{acceptance=\"recorded\",backend=\"vllm\",model_name=\"demo\",\
             reason=\"none\",stream=\"{value}\"}}"
        );
        until(&series, || metric(admin, &series) == 1);
    }
}

#[test]
fn records_on_standard_output_are_what_the_tap_shows_and_nothing_else() {
    let (_engine, address) = simulate("vllm");
    let (tap, data, admin) = Running::serve(address, &["--records=-"]);
    for number in 0..5 {
        chat(data, 1, number % 2 == 0);
    }
    let from = format!("http://{admin}");
    until("five exchanges", || {
        json(&["--from", &from])["n"]["exchanges"] == 5
    });
    let live = json(&["--from", &from]);
    tap.signal("TERM");
    let (code, out) = tap.end();
    assert_eq!(code, Some(0));
    let lines: Vec<Value> = out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 6, "{out}");
    assert_eq!(lines[0]["manifest"]["form"], 1);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("collected.jsonl");
    fs::write(&path, out).unwrap();
    let collected = json_of_files(&[text(&path)]);
    assert_eq!(collected["metrics"], live["metrics"]);
}

#[test]
fn the_numbers_of_a_records_file_equal_those_of_the_tap_that_wrote_it() {
    for (engine, format) in [("vllm", "spectap"), ("trtllm", "aiperf")] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("records.jsonl");
        let (_engine, address) = simulate(engine);
        let flags = [
            "--records",
            text(&path),
            "--records-format",
            format,
            "--note=drafter=made-up",
            // A file has none of the engine's own counters.
        ];
        let (tap, data, admin) = Running::serve(address, &flags);
        for round in 0..24 {
            chat(data, 1 + u32::from(round % 5 == 0), round % 2 == 0);
        }
        let from = format!("http://{admin}");
        until("24 exchanges", || {
            json(&["--from", &from])["n"]["exchanges"] == 24
        });
        let live = json(&["--from", &from, "--by=model,engine,route"]);
        let hours = json(&["--from", &from, "--by=hour"]);
        let narrowed = json(&["--from", &from, "--filter=model=other"]);
        // All of it is of the run that began with the tap.
        let run = format!("--run={}", name_of_run(admin));
        let of_run = json(&["--from", &from, &run, "--by=model,stream"]);
        let hours_of_run = json(&["--from", &from, &run, "--by=hour,model"]);
        tap.signal("TERM");
        assert_eq!(tap.end().0, Some(0));

        let kept = json_of_files(&[text(&path), "--by=model,engine,route"]);
        assert_eq!(kept, live);
        assert!(kept["n"]["recorded"].as_u64().unwrap() > 10, "{kept}");
        assert_eq!(kept["manifests"][0]["notes"]["drafter"], "made-up");
        assert_eq!(json_of_files(&[text(&path), "--by=hour"]), hours);
        let hour = hours["groups"][0]["key"]["hour"].as_str().unwrap();
        assert!(hour.ends_with(":00Z") && hour.len() == 17, "{hour}");
        assert_eq!(
            json_of_files(&[text(&path), "--filter=model=other"]),
            narrowed
        );
        assert_eq!(narrowed["n"]["exchanges"], 0);
        assert_eq!(of_run["n"], live["n"]);
        let of_file = |by: &str| json_of_files(&[text(&path), &run, by]);
        assert_eq!(of_file("--by=model,stream"), of_run);
        assert_eq!(of_file("--by=hour,model"), hours_of_run);
        let (code, _, errors) = output(&["report", text(&path), "--run=another"]);
        assert_eq!(code, Some(1));
        assert!(
            errors.contains(
                "--run another: there is no exchange of that run; the runs there are: 20"
            ),
            "{errors}"
        );

        let lines = report(&[text(&path), "--format=jsonl"]);
        let copy = directory.path().join("copy.jsonl");
        fs::write(&copy, lines).unwrap();
        assert_eq!(
            json_of_files(&[text(&copy), "--by=model,engine,route"]),
            live
        );
    }
}

#[test]
fn the_file_is_its_owners_alone_and_begins_with_the_manifest() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("records.jsonl");
    let (_engine, address) = simulate("vllm");
    let flags = [
        "--records",
        text(&path),
        "--note=acceptance=synthetic",
        "--engine=vllm",
    ];
    let (tap, data, admin) = Running::serve(address, &flags);
    chat(data, 1, true);
    let from = format!("http://{admin}");
    until("a record", || {
        json(&["--from", &from])["n"]["recorded"] == 1
    });
    let live = report(&["--from", &from, "--all"]);
    tap.signal("TERM");
    assert_eq!(tap.end().0, Some(0));

    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let content = fs::read_to_string(&path).unwrap();
    let manifest: Value = serde_json::from_str(content.lines().next().unwrap()).unwrap();
    let manifest = &manifest["manifest"];
    assert_eq!(manifest["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(manifest["engine"], "vllm");
    assert!(manifest["commit"].is_string() && manifest["start"].is_string());
    assert!(!content.contains("count 1"), "a prompt was kept");

    // Whoever forces the acceptance must not find a figure without the mark.
    assert_eq!(report(&[text(&path), "--all"]), live);
    let rows = live
        .lines()
        .filter(|line| line.starts_with('│') && line.contains('('));
    let marks = live.matches("forced acceptance").count();
    // Beside the rows: the histogram line, the certainty and what drafting bought.
    assert_eq!(marks, rows.count() + 3, "{live}");
    let markdown = report(&[text(&path), "--format=markdown"]);
    for line in markdown
        .lines()
        .filter(|line| line.starts_with("| ") && !line.contains("| avg |"))
    {
        assert!(line.contains("forced acceptance"), "{line}");
    }
    let csv = report(&[text(&path), "--format=csv"]);
    for line in csv
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("Metric"))
    {
        assert!(line.contains("forced acceptance"), "{line}");
    }
    let figures = &json(&[text(&path)])["metrics"];
    for (tag, figure) in figures.as_object().unwrap() {
        assert_eq!(figure["mark"], "forced acceptance", "{tag}");
    }
    assert!(
        report(&[text(&path), "--format=synthetic"])
            .contains("verify steps, k = 4, forced acceptance")
    );
}

#[test]
fn files_are_moved_aside_by_size_and_the_oldest_go() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("records.jsonl");
    let (_engine, address) = simulate("vllm");
    let flags = [
        "--records",
        text(&path),
        "--records-max-bytes=4096",
        "--records-keep=2",
    ];
    let (tap, data, admin) = Running::serve(address, &flags);
    for _ in 0..30 {
        chat(data, 1, false);
    }
    until("30 records", || {
        metric(admin, "spectap_records_written_total ") == 30
    });
    tap.signal("TERM");
    assert_eq!(tap.end().0, Some(0));

    let files = files(&path);
    assert_eq!(files.len(), 3, "{files:?}");
    let mut exchanges = 0;
    for file in &files {
        let content = fs::read_to_string(file).unwrap();
        assert!(
            content.len() <= 4096 && content.starts_with("{\"manifest\":"),
            "{content}"
        );
        exchanges += content.lines().count() - 1;
    }
    assert!((3..30).contains(&exchanges), "{exchanges}");
    let merged = json(&files.iter().map(|file| text(file)).collect::<Vec<_>>());
    assert_eq!(merged["n"]["exchanges"], exchanges);
    assert_eq!(merged["manifests"].as_array().unwrap().len(), 1);
}

#[test]
fn a_file_that_can_not_be_written_is_counted_and_told_once_and_traffic_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("records");
    let path = folder.join("records.jsonl");
    fs::create_dir(&folder).unwrap();
    let (_engine, address) = simulate("vllm");
    let (tap, data, admin) = Running::serve(address, &["--records", text(&path)]);
    chat(data, 1, true);
    until("a record", || {
        metric(admin, "spectap_records_written_total ") == 1
    });

    // Not even root can open a file below a file.
    fs::remove_dir_all(&folder).unwrap();
    fs::write(&folder, "").unwrap();
    let failed = "spectap_records_dropped_total{reason=\"write_failed\"} ";
    for lost in 1..=3 {
        chat(data, 1, true);
        until("a lost record", || metric(admin, failed) == lost);
    }
    let told = tap.errors().matches("records can not be written").count();
    assert_eq!(told, 1, "{}", tap.errors());

    fs::remove_file(&folder).unwrap();
    fs::create_dir(&folder).unwrap();
    chat(data, 1, true);
    until("a record again", || {
        metric(admin, "spectap_records_written_total ") == 2
    });
    tap.until("the end of the trouble", |line| {
        line.contains("records are written again").then_some(())
    });
    tap.signal("TERM");
    assert_eq!(tap.end().0, Some(0));
    assert_eq!(json(&[text(&path)])["n"]["exchanges"], 1);
}

/// A small file system of its own, unmounted at the end.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Nothing, where this user may not mount.
    fn mount(folder: &Path) -> Option<Self> {
        let mount = ["-t", "tmpfs", "-o", "size=64k", "tmpfs", text(folder)];
        let done = Command::new("mount").args(mount).output();
        done.is_ok_and(|done| done.status.success())
            .then(|| Self(folder.to_owned()))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_is_counted_and_told_and_writing_goes_on_when_there_is_room() {
    let directory = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(directory.path()) else {
        eprintln!("skipped: this user can not mount a small file system");
        return;
    };
    let path = disk.0.join("records.jsonl");
    let filler = disk.0.join("filler");
    let (_engine, address) = simulate("vllm");
    let (tap, data, admin) = Running::serve(address, &["--records", text(&path)]);
    chat(data, 1, true);
    until("a record", || {
        metric(admin, "spectap_records_written_total ") == 1
    });

    assert!(
        fs::write(&filler, vec![0; 128 << 10]).is_err(),
        "the disk is not full"
    );
    let full = "spectap_records_dropped_total{reason=\"disk_full\"} ";
    let mut sent = 1;
    // The last page of the file has room for some more.
    until("a full disk", || {
        chat(data, 1, true);
        sent += 1;
        metric(admin, full) >= 3
    });
    assert_eq!(
        tap.errors().matches("records can not be written").count(),
        1
    );

    fs::remove_file(&filler).unwrap();
    chat(data, 1, true);
    tap.until("the end of the trouble", |line| {
        line.contains("records are written again").then_some(())
    });
    until("all counted", || {
        metric(admin, "spectap_records_written_total ") + metric(admin, full) == sent + 1
    });
    let written = metric(admin, "spectap_records_written_total ");
    tap.signal("TERM");
    assert_eq!(tap.end().0, Some(0));
    let content = fs::read_to_string(&path).unwrap();
    assert_eq!(content.lines().count() as u64, written + 1);
    // A line that did not fit left nothing behind.
    assert!(
        content
            .lines()
            .all(|line| serde_json::from_str::<Value>(line).is_ok())
    );
}

#[test]
fn a_file_that_is_no_records_file_is_refused_before_a_port_is_bound() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notes.txt");
    fs::write(&path, "mine\n").unwrap();
    let missing = directory.path().join("no").join("records.jsonl");
    for (path, why) in [(&path, "holds no records"), (&missing, "may write to")] {
        let (code, _, errors) = output(&[
            "serve",
            "--upstream=http://127.0.0.1:9",
            "--records",
            text(path),
        ]);
        assert_eq!(code, Some(1));
        for part in ["--records", text(path), why] {
            assert!(errors.contains(part), "{errors}");
        }
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine\n");
}

#[test]
fn what_is_no_source_of_a_report_is_said_plainly() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("other.jsonl");
    fs::write(&path, "{\"a\":1}\n").unwrap();
    let (code, _, errors) = output(&["report", text(&path)]);
    assert_eq!(code, Some(1));
    assert!(
        errors.contains("holds no records of spectap (line 1: missing field"),
        "{errors}"
    );
    let (code, _, errors) = output(&["report", "--bodies", text(directory.path())]);
    assert_eq!(code, Some(1));
    assert!(errors.contains("holds no response"), "{errors}");
    for (flag, right) in [
        ("--filter=route=chat", "model=NAME"),
        ("--by=day", "hour"),
        ("--format=xml", "csv"),
    ] {
        let (code, _, errors) = output(&["report", flag]);
        assert_eq!(code, Some(2));
        assert!(errors.contains(right), "{errors}");
    }
}
