//! Engines that say what a test tells them to: which pages are asked for, and what is made of them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::support::{Tap, total};

/// An engine that answers each path with a fixed body.
#[derive(Clone)]
pub(crate) struct Pages {
    pub(crate) address: SocketAddr,
    bodies: Arc<Mutex<BTreeMap<String, (&'static str, String)>>>,
    asked: Arc<Mutex<BTreeMap<String, usize>>>,
}

impl Pages {
    pub(crate) async fn start(owned_by: Option<&str>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let pages = Self {
            address: listener.local_addr().unwrap(),
            bodies: Arc::default(),
            asked: Arc::default(),
        };
        if let Some(owned_by) = owned_by {
            let models = json!({"data": [{"id": "m", "owned_by": owned_by}]});
            pages.set("/v1/models", "application/json", &models.to_string());
        }
        let serving = pages.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    match stream.read_u8().await {
                        Ok(byte) => head.push(byte),
                        Err(_) => break,
                    }
                }
                let head = String::from_utf8(head).unwrap();
                let path = head.split(' ').nth(1).unwrap_or_default();
                let answer = serving.answer(path);
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        pages
    }

    pub(crate) fn set(&self, path: &str, kind: &'static str, body: &str) {
        let mut bodies = self.bodies.lock().unwrap();
        bodies.insert(path.to_owned(), (kind, body.to_owned()));
    }

    fn answer(&self, path: &str) -> String {
        *self
            .asked
            .lock()
            .unwrap()
            .entry(path.to_owned())
            .or_default() += 1;
        let bodies = self.bodies.lock().unwrap();
        let (status, (kind, body)) = match bodies.get(path) {
            Some(page) => ("200 OK", page.clone()),
            None => ("404 Not Found", ("text/plain", "nothing".to_owned())),
        };
        let length = body.len();
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        )
    }

    pub(crate) fn asked(&self, path: &str) -> usize {
        self.asked.lock().unwrap().get(path).copied().unwrap_or(0)
    }
}

const TEXT: &str = "text/plain; version=0.0.4";

fn vllm(ranks: &[(u64, u64, u64)]) -> String {
    let lines = ranks.iter().enumerate();
    lines
        .map(|(rank, (steps, drafted, accepted))| {
            let labels = format!("{{model_name=\"m\",engine=\"{rank}\"}}");
            format!(
                "vllm:spec_decode_num_drafts_total{labels} {steps}\n\
                 vllm:spec_decode_num_draft_tokens_total{labels} {drafted}\n\
                 vllm:spec_decode_num_accepted_tokens_total{labels} {accepted}\n"
            )
        })
        .collect()
}

#[tokio::test]
async fn tensorrt_llms_list_that_reading_empties_is_never_asked_for() {
    let pages = Pages::start(Some("tensorrt_llm")).await;
    pages.set("/metrics", "application/json", "[{\"iter\": 1}]");
    pages.set(
        "/prometheus/metrics",
        TEXT,
        "trtllm_spec_decode_num_draft_tokens_total{model_name=\"m\"} 30\n\
         trtllm_spec_decode_num_accepted_tokens_total{model_name=\"m\"} 12\n",
    );
    let upstream = format!("--upstream=http://{}", pages.address);
    let tap = Tap::start(&[&upstream]).await;
    let summary = tap
        .summary_once("", |summary| {
            total(summary, "total_draft_tokens").is_some() && pages.asked("/prometheus/metrics") > 3
        })
        .await;
    assert_eq!(summary["server"]["engine"], "tensorrt_llm");
    assert_eq!(pages.asked("/metrics"), 0);
    tap.stop().await;
}

#[tokio::test]
async fn a_server_without_series_is_looked_at_once_and_left_alone() {
    let pages = Pages::start(None).await;
    pages.set("/metrics", "application/json", "[{\"iter\": 1}]");
    let upstream = format!("--upstream=http://{}", pages.address);
    let tap = Tap::start(&[&upstream, "--scrape-interval=10ms"]).await;
    let begun = std::time::Instant::now();
    while pages.asked("/metrics") == 0 {
        assert!(begun.elapsed() < crate::support::DEADLINE);
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    // A reading that is wished for waits for the scraper, which has ended.
    let (mut asked, summary) = (pages.asked("/metrics"), tap.summary("").await);
    assert!(summary["server"].is_null(), "{summary}");
    // Twenty times the interval: one that read on would be seen.
    for _ in 0..10 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        asked = asked.max(pages.asked("/metrics"));
    }
    assert_eq!(asked, 1);
    tap.stop().await;
}

#[tokio::test]
async fn ranks_are_added_up_and_the_worst_comes_first() {
    let pages = Pages::start(Some("vllm")).await;
    pages.set("/metrics", TEXT, &vllm(&[(0, 0, 0), (0, 0, 0), (0, 0, 0)]));
    let tap = Tap::start(&[&format!("--upstream=http://{}", pages.address)]).await;
    tap.summary_once("", |summary| summary["server"].is_object())
        .await;
    pages.set(
        "/metrics",
        TEXT,
        &vllm(&[(100, 300, 150), (100, 300, 30), (100, 300, 120)]),
    );
    let summary = tap
        .summary_once("", |summary| {
            total(summary, "total_spec_decode_steps") == Some(300)
        })
        .await;
    let server = &summary["server"];
    let length = &server["metrics"]["spec_decode_token_weighted_acceptance_length"];
    assert_eq!(
        (length["avg"].as_f64(), length["n"].as_u64()),
        (Some(2.0), Some(300))
    );
    let ranks = server["ranks"].as_array().unwrap();
    let names: Vec<_> = ranks
        .iter()
        .map(|rank| rank["rank"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["1", "2", "0"]);
    let series = tap.metrics().await;
    let worst = "spectap_server_spec_decode_num_accepted_tokens_total{backend=\"vllm\",engine=\"1\",model_name=\"m\"} 30";
    assert!(series.contains(worst), "{series}");
    tap.stop().await;
}

#[tokio::test]
async fn after_a_restart_of_the_engine_no_number_goes_back() {
    let pages = Pages::start(Some("vllm")).await;
    pages.set("/metrics", TEXT, &vllm(&[(100, 300, 150)]));
    let tap = Tap::start(&[&format!("--upstream=http://{}", pages.address)]).await;
    tap.summary_once("", |summary| summary["server"].is_object())
        .await;
    for (page, steps, resets) in [((110, 330, 160), 10, 0), ((7, 21, 9), 17, 1)] {
        pages.set("/metrics", TEXT, &vllm(&[page]));
        let summary = tap
            .summary_once("", |summary| {
                total(summary, "total_spec_decode_steps") == Some(steps)
            })
            .await;
        assert_eq!(summary["server"]["resets"], resets);
    }
    let series = tap.metrics().await;
    let whole = "spectap_server_spec_decode_num_drafts_total{backend=\"vllm\",engine=\"0\",model_name=\"m\"} 117";
    assert!(series.contains(whole), "{series}");
    assert!(series.contains("spectap_server_resets_total 1"), "{series}");
    tap.stop().await;
}

#[tokio::test]
async fn a_page_that_can_not_be_read_any_more_is_told_and_the_last_figures_stay() {
    let pages = Pages::start(Some("vllm")).await;
    pages.set("/metrics", TEXT, &vllm(&[(100, 300, 150)]));
    let tap = Tap::start(&[
        &format!("--scrape=http://{}/metrics", pages.address),
        "--scrape-only",
    ])
    .await;
    tap.summary_once("", |summary| summary["server"].is_object())
        .await;
    pages.set("/metrics", "application/json", "[]");
    let summary = tap
        .summary_once("", |summary| summary["server"]["trouble"].is_string())
        .await;
    assert!(
        summary["server"]["speculates"].as_bool().unwrap(),
        "{summary}"
    );
    assert!(tap.data.is_none(), "there is no data port");
    tap.stop().await;
}
