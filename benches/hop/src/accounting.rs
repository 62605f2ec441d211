//! Holds spectap's own counters against what the engine double sent. A reading in which something went unseen is no
//! reading.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::engine::counts::Counts;
use crate::fetch;

/// How long spectap may take to finish its books.
const PATIENCE: Duration = Duration::from_secs(5);

/// Waits until the counters agree.
///
/// # Errors
///
/// They don't after five seconds: says where.
pub fn check(engine: SocketAddr, admin: SocketAddr) -> Result<()> {
    let started = Instant::now();
    loop {
        let differences = differences(engine, admin)?;
        if differences.is_empty() {
            return Ok(());
        }
        if started.elapsed() > PATIENCE {
            bail!(
                "spectap's counters do not account for what the engine sent:\n  {}",
                differences.join("\n  ")
            );
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What the engine did.
///
/// # Errors
///
/// It does not answer.
pub fn of_engine(engine: SocketAddr) -> Result<Counts> {
    Ok(serde_json::from_slice(&fetch::get(
        engine,
        "/bench/counts",
    )?)?)
}

fn differences(engine: SocketAddr, admin: SocketAddr) -> Result<Vec<String>> {
    let sent = of_engine(engine)?;
    let summary: Value = serde_json::from_slice(&fetch::get(admin, "/api/v1/summary")?)?;
    let metrics = String::from_utf8(fetch::get(admin, "/metrics")?)?;
    let mut differences = compare(&sent, &summary["n"], &metrics);
    // Whole streams alone: of one that was cut, nobody knows what was still on its way.
    if sent.streams > 0 && sent.cut == 0 {
        expect(
            &mut differences,
            "content chunks",
            sent.events,
            content_chunks(admin)?,
        );
    }
    Ok(differences)
}

fn compare(sent: &Counts, n: &Value, metrics: &str) -> Vec<String> {
    let mut differences = Vec::new();
    let mut expect = |what: &str, sent: u64, seen: u64| expect(&mut differences, what, sent, seen);
    let exchanges = |what: &str| n[what].as_u64().unwrap_or(u64::MAX);
    let metric = |name: &str| sum(metrics, &format!("spectap_{name}"));

    expect("refused by the engine", 0, sent.refused);
    expect("exchanges", sent.requests, exchanges("exchanges"));
    expect("recorded", sent.records, exchanges("recorded"));
    expect("absent", sent.cut, exchanges("absent"));
    for none in ["zero_step", "malformed", "ambiguous", "unobserved"] {
        expect(none, 0, exchanges(none));
    }
    // Injection is on by default, so every stream that came to its end was asked for usage, and was given back as it
    // would have been without.
    expect(
        "usage events of whole streams",
        sent.streams,
        sent.usage_events,
    );
    expect(
        "stripped events",
        sent.usage_events,
        metric("stripped_events_total"),
    );
    let steps = metric("spec_decode_num_drafts_total");
    expect("verify steps", sent.steps, steps);
    let drafted = metric("spec_decode_num_draft_tokens_total");
    expect("drafted tokens", sent.drafted, drafted);
    let accepted = metric("spec_decode_num_accepted_tokens_total");
    expect("accepted tokens", sent.accepted, accepted);
    expect(
        "completion tokens",
        sent.tokens,
        metric("generation_tokens_total"),
    );
    for none in [
        "unobserved_total",
        "strips_skipped_total",
        "injections_skipped_total",
        "replays_total",
        "upstream_errors_total",
        "upstream_retries_total",
    ] {
        expect(none, 0, metric(none));
    }
    differences
}

fn expect(differences: &mut Vec<String>, what: &str, sent: u64, seen: u64) {
    if sent != seen {
        differences.push(format!("{what}: {sent} expected, {seen} seen"));
    }
}

/// Sum over all label sets of a series.
fn sum(metrics: &str, name: &str) -> u64 {
    let of_series = |line: &&str| {
        line.strip_prefix(name)
            .is_some_and(|rest| rest.starts_with(['{', ' ']))
    };
    let value = |line: &str| line.rsplit(' ').next()?.parse::<f64>().ok();
    metrics
        .lines()
        .filter(of_series)
        .filter_map(value)
        .sum::<f64>() as u64
}

/// Content chunks of all streams that are listed one by one.
fn content_chunks(admin: SocketAddr) -> Result<u64> {
    let (mut chunks, mut after) = (0, String::new());
    loop {
        let path = format!("/api/v1/requests?limit=1000&after={after}");
        let page: Value = serde_json::from_slice(&fetch::get(admin, &path)?)?;
        let requests = page["requests"].as_array().context("no list of requests")?;
        let streams = requests.iter().filter(|request| request["stream"] == true);
        chunks += streams
            .filter_map(|request| request["content_chunks"].as_u64())
            .sum::<u64>();
        match page["next"].as_str() {
            Some(next) => next.clone_into(&mut after),
            None => return Ok(chunks),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_is_summed_over_its_labels_and_no_other_is_taken_for_it() {
        let metrics = "# HELP spectap_a_total x\nspectap_a_total{b=\"c d\"} 3\nspectap_a_total{b=\"e\"} 4\n\
            spectap_a_total_more 100\nspectap_b_total 7\n";
        assert_eq!(sum(metrics, "spectap_a_total"), 7);
        assert_eq!(sum(metrics, "spectap_b_total"), 7);
        assert_eq!(sum(metrics, "spectap_c_total"), 0);
    }

    #[test]
    fn each_count_that_differs_is_named() {
        let mut sent = Counts {
            requests: 2,
            ..Counts::default()
        };
        sent.stream_ended(10, true);
        sent.reply_ended();
        let n = serde_json::json!({"exchanges": 2, "recorded": 2, "absent": 0, "zero_step": 0, "malformed": 0,
            "ambiguous": 0, "unobserved": 0});
        let metrics = "spectap_stripped_events_total 1\nspectap_spec_decode_num_drafts_total 42\n\
            spectap_spec_decode_num_draft_tokens_total 168\nspectap_spec_decode_num_accepted_tokens_total 84\n\
            spectap_generation_tokens_total 126\n";
        assert_eq!(compare(&sent, &n, metrics), [""; 0]);
        let metrics = metrics.replace("events_total 1", "events_total 0");
        assert_eq!(
            compare(&sent, &n, &metrics),
            ["stripped events: 1 expected, 0 seen"]
        );
    }
}
