//! Lines, the queue, and what becomes of torn and foreign files. What a running tap writes is tested in
//! `tests/process/records.rs`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::SystemTime;

use prometheus::Registry;
use serde_json::Value;

use super::*;
use crate::record::{AcceptanceRecord, EngineName};
use crate::store::tests::observation;

fn manifest() -> Manifest {
    Manifest::of_this_build(
        SystemTime::UNIX_EPOCH,
        None,
        [("a".into(), "b".into())].into(),
    )
}

fn settings(path: &Path, format: RecordsFormat) -> RecordsSettings {
    RecordsSettings {
        path: path.to_owned(),
        max_bytes: 1 << 20,
        keep: 2,
        fsync: Fsync::Always,
        format,
    }
}

fn counters() -> RecordsCounters {
    RecordsCounters::register(&Registry::new()).unwrap()
}

/// A vLLM record of 4 steps of 2 drafts.
fn record() -> AcceptanceRecord {
    AcceptanceRecord {
        provenance: crate::record::Provenance::Histogram,
        mean_acceptance_length: Some(1.75),
        draft_acceptance_rate: Some(0.375),
        acceptance_histogram: [(0, 2), (1, 1), (2, 1)].into(),
        num_spec_steps: Some(4),
        num_spec_tokens: Some(2),
        ..AcceptanceRecord::of_counts(EngineName::Vllm, 3, 8)
    }
}

fn exchange(n: u32, records: Vec<AcceptanceRecord>) -> Observation {
    Observation {
        n,
        spec_decode_acceptance: records,
        ..observation(1)
    }
}

async fn write(path: &Path, format: RecordsFormat, exchanges: Vec<Observation>) {
    let file = RecordsFile::open(settings(path, format), manifest(), counters()).unwrap();
    let sink = file.sink();
    for exchange in exchanges {
        sink.record(Arc::new(exchange));
    }
    file.finish().await;
}

fn all(path: &Path) -> (Vec<Manifest>, Vec<Observation>, Skipped) {
    let (mut manifests, mut observations) = (Vec::new(), Vec::new());
    let read = read(path, |line| match line {
        Line::Head(head) => manifests.push(head.manifest),
        Line::Observation(observation) => observations.push(*observation),
    });
    (manifests, observations, read.unwrap().skipped)
}

fn shown(observations: &[Observation]) -> Vec<Value> {
    let shown = |it| serde_json::to_value(it).unwrap();
    observations.iter().map(shown).collect()
}

#[tokio::test]
async fn what_is_written_in_either_form_is_read_back_whole() {
    let zero_step = AcceptanceRecord {
        num_spec_steps: Some(0),
        acceptance_histogram: Default::default(),
        ..AcceptanceRecord::of_counts(EngineName::Vllm, 0, 0)
    };
    let exchanges = vec![
        exchange(1, vec![record()]),
        exchange(2, vec![record(), record()]),
        exchange(1, vec![zero_step]),
        exchange(
            1,
            vec![AcceptanceRecord::of_counts(EngineName::LlamaCpp, 3, 8)],
        ),
        exchange(1, Vec::new()),
    ];
    for format in [RecordsFormat::Spectap, RecordsFormat::Aiperf] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("records.jsonl");
        write(&path, format, exchanges.clone()).await;
        let (manifests, observations, skipped) = all(&path);
        assert_eq!(manifests, [manifest()]);
        assert_eq!(shown(&observations), shown(&exchanges), "{format:?}");
        assert_eq!(skipped, Skipped::default());
    }
}

#[tokio::test]
async fn aiperf_finds_a_record_only_where_it_would_have_one_itself() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("records.jsonl");
    let exchanges = vec![
        exchange(1, vec![record()]),
        exchange(2, vec![record(), record()]),
    ];
    write(&path, RecordsFormat::Aiperf, exchanges).await;
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|it| serde_json::from_str(it).unwrap())
        .collect();
    assert_eq!(lines[0]["metadata"]["benchmark_phase"], "warmup");
    assert_eq!(lines[1]["spec_decode_acceptance"]["num_spec_steps"], 4);
    let metrics = &lines[1]["metrics"];
    assert_eq!(metrics["spec_decode_acceptance_length"]["value"], 1.75);
    assert_eq!(metrics["spec_decode_draft_acceptance_rate"]["value"], 37.5);
    assert_eq!(metrics["spec_decode_draft_acceptance_rate"]["unit"], "%");
    assert_eq!(
        metrics["spec_decode_accepted_per_verified"]["value"],
        7.0 / 12.0
    );
    assert_eq!(lines[1]["metadata"]["benchmark_phase"], "profiling");
    assert!(lines[2].get("spec_decode_acceptance").is_none());
    assert!(lines[2]["metrics"].get("spec_decode_steps").is_none());
}

#[tokio::test]
async fn a_later_start_cuts_a_torn_line_and_appends_with_a_manifest_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("records.jsonl");
    write(&path, RecordsFormat::Spectap, vec![observation(1)]).await;
    let whole = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{whole}{{\"id\":\"torn")).unwrap();
    write(&path, RecordsFormat::Spectap, vec![observation(2)]).await;
    let (manifests, observations, skipped) = all(&path);
    assert_eq!((manifests.len(), observations.len()), (2, 2));
    assert_eq!(skipped, Skipped::default());
    assert!(fs::read_to_string(&path).unwrap().starts_with(&whole));
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn somebody_elses_file_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notes.txt");
    fs::write(&path, "no line end").unwrap();
    let error = RecordsFile::open(
        settings(&path, RecordsFormat::Spectap),
        manifest(),
        counters(),
    )
    .err()
    .unwrap();
    assert!(matches!(error, OpenError::NotRecords), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "no line end");
}

#[tokio::test]
async fn a_foreign_file_that_takes_the_place_of_an_open_one_is_left_alone_too() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("records.jsonl");
    let counters = counters();
    let settings = settings(&path, RecordsFormat::Spectap);
    let file = RecordsFile::open(settings, manifest(), counters.clone()).unwrap();
    let other = directory.path().join("other");
    fs::write(&other, "mine").unwrap();
    fs::rename(&other, &path).unwrap();
    file.sink().record(Arc::new(observation(1)));
    file.finish().await;
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    assert_eq!(counters.dropped_so_far(Dropped::WriteFailed), 1);
}

#[test]
fn a_queue_that_is_full_drops_and_counts_and_never_waits() {
    let (sender, receiver) = sync_channel(2);
    let sink = RecordsSink {
        sender,
        queued_bytes: Arc::default(),
        counters: counters(),
    };
    for _ in 0..5 {
        sink.record(Arc::new(observation(1)));
    }
    assert_eq!(sink.counters.dropped_so_far(Dropped::QueueFull), 3);
    // What was dropped takes no room; what waits does.
    let waiting: usize = receiver
        .try_iter()
        .map(|message| match message {
            Message::Observation(_, bytes) => bytes,
            Message::Stop(_) => 0,
        })
        .sum();
    assert_eq!(sink.queued_bytes.load(Ordering::Relaxed), waiting);
}

#[test]
fn the_bytes_that_wait_are_bounded_too() {
    let (sender, _receiver) = sync_channel(10);
    let sink = RecordsSink {
        sender,
        queued_bytes: Arc::new(AtomicUsize::new(MOST_QUEUED_BYTES)),
        counters: counters(),
    };
    sink.record(Arc::new(observation(1)));
    assert_eq!(sink.counters.dropped_so_far(Dropped::QueueFull), 1);
    assert_eq!(sink.queued_bytes.load(Ordering::Relaxed), MOST_QUEUED_BYTES);
}

#[test]
fn a_newer_form_is_refused_and_other_lines_are_named() {
    let newer = r#"{"manifest":{"form":2,"version":"9","commit":"","start":"2026-12-01T00:00:00Z","engine":null}}"#;
    assert_eq!(
        read_line(newer.as_bytes()).unwrap_err(),
        "records of form 2, this spectap reads up to form 1"
    );
    assert_eq!(read_line(b"[]").unwrap_err(), "it is no JSON object");
    assert!(read_line(b"{\"id\":\"a").unwrap_err().contains("EOF"));
    assert!(read_line(b"{}").unwrap_err().contains("missing field"));
}
