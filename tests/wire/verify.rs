//! `spectap verify`: finds nothing by accident in front of any simulated engine, and every fault of a bad hop.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Parser;
use serde_json::Value;
use spectap::cli::{Cli, Command};
use spectap::simulate::{Acceptance, Engine, EngineKind, Model, Running, Settings};
use spectap::verify::{self, Verdict, VerifyError};
use tokio::runtime::Runtime;

use crate::support::bad_proxy::{self, Fault};
use crate::support::origin::{Origin, Then};
use crate::support::tap::Tap;

/// What may differ by design between a simulated engine and a tap in front of it.
const DESIGN: [&str; 5] = [
    "host-required",
    "http-1-0",
    "connection-kept",
    "hop-by-hop",
    "interim-answers",
];

fn engine(runtime: &Runtime, kind: EngineKind, change: impl FnOnce(&mut Settings)) -> Running {
    let model = Model::new("m", Acceptance::parse("0.8,0.7,0.6").unwrap());
    let mut settings = Settings::new(kind, vec![model]);
    settings.prefill_time = Duration::from_millis(10);
    settings.step_time = Duration::from_millis(10);
    change(&mut settings);
    runtime.block_on(Engine::start(settings)).unwrap()
}

fn run(
    direct: SocketAddr,
    through: SocketAddr,
    flags: &[&str],
) -> Result<(Verdict, Value), VerifyError> {
    let base = [
        "spectap".to_owned(),
        "verify".to_owned(),
        "--yes".to_owned(),
        "--format=json".to_owned(),
        format!("--upstream=http://{direct}"),
        format!("--through=http://{through}"),
    ];
    let flags = flags.iter().map(|flag| (*flag).to_owned());
    let cli = Cli::try_parse_from(base.into_iter().chain(flags)).unwrap();
    let Command::Verify(args) = cli.command else {
        unreachable!()
    };
    let mut out = Vec::new();
    let verdict = verify::run(&args, &mut out)?;
    Ok((verdict, serde_json::from_slice(&out).unwrap()))
}

/// The names of what differs, by design or by accident.
fn names(result: &Value, by_design: bool) -> Vec<&str> {
    let differences = result["differences"].as_array().unwrap();
    let wanted = differences
        .iter()
        .filter(|one| one["by_design"] == by_design);
    wanted.map(|one| one["name"].as_str().unwrap()).collect()
}

fn finds_nothing_by_accident(kind: EngineKind) {
    let runtime = Runtime::new().unwrap();
    let engine = engine(&runtime, kind, |_| {});
    let tap = Tap::before(engine.address);
    let (verdict, result) = run(engine.address, tap.data, &[]).unwrap();
    assert_eq!(verdict, Verdict::Same, "{result:#}");
    assert_eq!(
        result["not_repeated"].as_array().unwrap().len(),
        0,
        "{result:#}"
    );
    assert!(result["requests"].as_u64().unwrap() > 30);
    for name in names(&result, true) {
        assert!(DESIGN.contains(&name), "{name} in {result:#}");
    }
    assert!(
        names(&result, true).contains(&"host-required"),
        "{result:#}"
    );
}

#[test]
fn verify_finds_nothing_by_accident_in_front_of_vllm() {
    finds_nothing_by_accident(EngineKind::Vllm);
}

#[test]
fn verify_finds_nothing_by_accident_in_front_of_tensorrt_llm() {
    finds_nothing_by_accident(EngineKind::TensorrtLlm);
}

#[test]
fn verify_finds_nothing_by_accident_in_front_of_sglang() {
    finds_nothing_by_accident(EngineKind::Sglang);
}

#[test]
fn verify_finds_nothing_by_accident_in_front_of_llama_cpp() {
    finds_nothing_by_accident(EngineKind::LlamaCpp);
}

fn swap_first_two(mut lines: Vec<String>) -> Vec<String> {
    lines.swap(0, 1);
    lines
}

fn without_server(mut lines: Vec<String>) -> Vec<String> {
    lines.retain(|line| !line.to_lowercase().starts_with("server"));
    lines
}

fn with_via(mut lines: Vec<String>) -> Vec<String> {
    lines.push("via: 1.1 bad".to_owned());
    lines
}

fn titled(lines: Vec<String>) -> Vec<String> {
    let title = |line: String| line[..1].to_uppercase() + &line[1..];
    lines.into_iter().map(title).collect()
}

fn other_type(lines: Vec<String>) -> Vec<String> {
    let change = |line: String| line.replace("application/json", "application/JSON");
    lines.into_iter().map(change).collect()
}

fn without_finish_reason(data: Vec<u8>) -> Vec<u8> {
    let text = String::from_utf8(data).unwrap();
    text.replace(
        "\"finish_reason\":\"length\"",
        "\"finish_reason\":\"stop!!\"",
    )
    .into_bytes()
}

/// Replaces the role's event, which stands alone in its chunk, by a comment of the same length.
fn without_the_first_event(data: Vec<u8>) -> Vec<u8> {
    let text = String::from_utf8(data).unwrap();
    let Some(at) = text.find("data: ").filter(|_| text.contains("\"role\"")) else {
        return text.into_bytes();
    };
    let end = at + text[at..].find("\n\n").unwrap();
    let comment = format!(":{}", " ".repeat(end - at - 1));
    (text[..at].to_owned() + &comment + &text[end..]).into_bytes()
}

fn finds(faults: &[(Fault, &str)]) {
    let runtime = Runtime::new().unwrap();
    let engine = engine(&runtime, EngineKind::Vllm, |_| {});
    for (fault, found) in faults {
        let bad = bad_proxy::start(engine.address, *fault);
        // One that is streamed and one that is not show all of these.
        let (verdict, result) = run(engine.address, bad, &["--only=models,chat-stream"]).unwrap();
        assert_eq!(verdict, Verdict::Different, "{fault:?}: {result:#}");
        assert!(
            names(&result, false).contains(found),
            "{fault:?}: {result:#}"
        );
    }
    let honest = bad_proxy::start(engine.address, Fault::Cuts(usize::MAX));
    let (verdict, result) = run(engine.address, honest, &["--only=models,chat-stream"]).unwrap();
    assert_eq!(verdict, Verdict::Same, "{result:#}");
}

#[test]
fn verify_finds_every_fault_in_the_heads_of_a_bad_hop() {
    finds(&[
        (Fault::Head(without_server), "field-missing"),
        (Fault::Head(with_via), "field-added"),
        (Fault::Head(swap_first_two), "field-order"),
        (Fault::Head(titled), "field-case"),
        (Fault::Head(other_type), "field-value"),
    ]);
}

#[test]
fn verify_finds_every_fault_in_the_bodies_of_a_bad_hop() {
    finds(&[
        (Fault::Body(without_finish_reason), "body"),
        (Fault::Body(without_the_first_event), "body"),
        (Fault::Cuts(1000), "cut"),
    ]);
}

#[test]
fn verify_finds_every_fault_in_the_course_of_a_bad_hop() {
    finds(&[
        (Fault::Buffers, "head-late"),
        (Fault::BuffersBodies, "buffered"),
        (Fault::Closes, "closed"),
    ]);
}

#[test]
fn verify_finds_a_clean_end_behind_a_cut() {
    let runtime = Runtime::new().unwrap();
    let engine = engine(&runtime, EngineKind::Vllm, |settings| {
        settings.faults.cut_after_events = Some(3);
    });
    let bad = bad_proxy::start(engine.address, Fault::EndsCleanly);
    let (_, result) = run(engine.address, bad, &["--only=chat-stream"]).unwrap();
    assert_eq!(names(&result, false), ["cut-hidden"], "{result:#}");
    let tap = Tap::before(engine.address);
    let (verdict, result) = run(engine.address, tap.data, &["--only=chat-stream"]).unwrap();
    assert_eq!(verdict, Verdict::Same, "{result:#}");
}

#[test]
fn verify_finds_repeated_headers_that_were_merged_or_parted() {
    let engine = Origin::start(|_, _, stream| {
        use std::io::Write;
        let head = "HTTP/1.1 200 OK\r\nset-cookie: a=1\r\nvary: x\r\nset-cookie: b=2\r\n";
        let body = "{\"data\":[{\"id\":\"m\"}]}";
        let _ = write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len());
        Then::KeepAlive
    });
    fn merged(_: Vec<String>) -> Vec<String> {
        let lines = ["set-cookie: a=1, b=2", "vary: x", "content-length: 21"];
        lines.map(str::to_owned).to_vec()
    }
    let bad = bad_proxy::start(engine.address, Fault::Head(merged));
    let (_, result) = run(engine.address, bad, &["--only=models,chat"]).unwrap();
    assert!(
        names(&result, false).contains(&"repeats-merged"),
        "{result:#}"
    );
    // The tap sends them next to each other, which is documented.
    let tap = Tap::before(engine.address);
    let (verdict, result) = run(engine.address, tap.data, &["--only=models,chat"]).unwrap();
    assert_eq!(verdict, Verdict::Same, "{result:#}");
    assert_eq!(names(&result, true), ["repeats-adjacent"], "{result:#}");
}

#[test]
fn verify_says_when_it_could_not_tell() {
    let runtime = Runtime::new().unwrap();
    let engine = engine(&runtime, EngineKind::Vllm, |settings| {
        settings.api_key = Some("k".to_owned());
    });
    // Everything is refused alike: that says nothing about streams.
    let error = run(
        engine.address,
        engine.address,
        &["--only=models,chat", "--model=m"],
    )
    .unwrap_err();
    assert!(error.to_string().contains("--api-key-file"), "{error}");
    let error = run(
        engine.address,
        engine.address,
        &["--only=nonsense", "--model=m"],
    )
    .unwrap_err();
    assert!(error.to_string().contains("chat-stream"), "{error}");
    let nobody = Origin::start(|_, _, _| Then::Close);
    let error = run(nobody.address, engine.address, &[]).unwrap_err();
    assert!(error.to_string().contains("--model"), "{error}");
}
