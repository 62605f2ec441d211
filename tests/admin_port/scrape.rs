//! A real Prometheus scrapes both texts.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::exposition::{skip, with_series};
use crate::server::{DEADLINE, Server};

/// Ends the process when the test ends, however it does.
struct Prometheus(Child);

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn a_real_prometheus_scrapes_both_texts() {
    const TEST: &str = "a_real_prometheus_scrapes_both_texts";
    if Command::new("prometheus")
        .arg("--version")
        .output()
        .is_err()
    {
        return skip(TEST, "there is no prometheus on PATH");
    }
    let server = with_series().await;
    let classic = ClassicOnly::in_front_of(&server).await;
    let directory = tempfile::tempdir().unwrap();
    let config = format!(
        "scrape_configs:\n\
         - job_name: openmetrics\n  scrape_interval: 1s\n  static_configs: [{{targets: ['{}']}}]\n\
         - job_name: classic\n  scrape_interval: 1s\n  static_configs: [{{targets: ['{}']}}]\n",
        server.address, classic
    );
    std::fs::write(directory.path().join("prometheus.yml"), config).unwrap();
    let port = free_port().await;
    let _prometheus = start(directory.path(), port);
    for job in ["openmetrics", "classic"] {
        wait_for(port, &format!("up{{job=\"{job}\"}}"), "1").await;
        let bucket = format!("spectap_test_seconds_bucket{{job=\"{job}\",le=~\"1|1.0\"}}");
        for (query, value) in [
            (format!("spectap_requests_total{{job=\"{job}\"}}"), "41"),
            (format!("spectap_requests_in_flight{{job=\"{job}\"}}"), "3"),
            (bucket, "2"),
            (
                format!("sum(spectap_spec_decode_num_accepted_tokens_total{{job=\"{job}\"}})"),
                "14",
            ),
            (
                format!("spectap_spec_decode_num_drafts_total{{job=\"{job}\",tag=\"math\"}}"),
                "4",
            ),
            (
                format!(
                    "sum by (temperature) (spectap_spec_decode_num_drafts_total{{job=\"{job}\",temperature=\"0\"}})"
                ),
                "8",
            ),
        ] {
            wait_for(port, &query, value).await;
        }
    }
    // The format that each got: only OpenMetrics gives the bare counter its suffix.
    wait_for(
        port,
        "count(spectap_without_suffix_total{job=\"openmetrics\"})",
        "1",
    )
    .await;
    wait_for(port, "count(spectap_without_suffix{job=\"classic\"})", "1").await;
}

/// A way to the port that asks for the classic text only, whatever the scraper says.
struct ClassicOnly;

impl ClassicOnly {
    async fn in_front_of(server: &Server) -> std::net::SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let target = server.address;
        tokio::spawn(async move {
            while let Ok((mut scraper, _)) = listener.accept().await {
                let mut seen = Vec::new();
                while !seen.ends_with(b"\r\n\r\n") {
                    match scraper.read_u8().await {
                        Ok(byte) => seen.push(byte),
                        Err(_) => break,
                    }
                }
                let mut port = TcpStream::connect(target).await.unwrap();
                let ask = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: text/plain;version=0.0.4\r\nConnection: close\r\n\r\n";
                port.write_all(ask.as_bytes()).await.unwrap();
                let _ = tokio::io::copy(&mut port, &mut scraper).await;
            }
        });
        address
    }
}

fn start(directory: &Path, port: u16) -> Prometheus {
    let child = Command::new("prometheus")
        .arg(format!(
            "--config.file={}",
            directory.join("prometheus.yml").display()
        ))
        .arg(format!(
            "--storage.tsdb.path={}",
            directory.join("data").display()
        ))
        .arg(format!("--web.listen-address=127.0.0.1:{port}"))
        .arg("--log.level=warn")
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    Prometheus(child)
}

async fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap().port()
}

/// Asks Prometheus until a query gives this value for its only series.
async fn wait_for(port: u16, query: &str, expected: &str) {
    let end = Instant::now() + DEADLINE;
    let mut last = String::new();
    while Instant::now() < end {
        if let Some(answer) = ask(port, query).await {
            let result = &answer["data"]["result"];
            if result.as_array().is_some_and(|it| it.len() == 1)
                && result[0]["value"][1] == expected
            {
                return;
            }
            last = answer.to_string();
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{query} did not become {expected}: {last}");
}

async fn ask(port: u16, query: &str) -> Option<Value> {
    let query: String = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.ok()?;
    let request = format!("GET /api/v1/query?query={query} HTTP/1.0\r\nHost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()
}
