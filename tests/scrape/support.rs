//! A tap that reads the counters of an engine, and a client of both.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use clap::Parser;
use serde_json::{Value, json};
use spectap::cli::{Cli, Command};
use spectap::config::Config;
use spectap::scrape::Requester;
use spectap::serve::Instance;
use spectap::simulate::{Acceptance, Counts, Engine, EngineKind, Log, Model, Running, Settings};

/// Far above what anything here takes: a test that hangs fails by it.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

pub(crate) struct Tap {
    instance: Instance,
    pub(crate) data: Option<SocketAddr>,
    pub(crate) admin: SocketAddr,
}

impl Tap {
    /// `serve` with these flags, on free ports.
    pub(crate) async fn start(flags: &[&str]) -> Self {
        let base = [
            "spectap",
            "serve",
            "--listen=127.0.0.1:0",
            "--admin-listen=127.0.0.1:0",
        ];
        let has_interval = flags
            .iter()
            .any(|flag| flag.starts_with("--scrape-interval"));
        let interval = (!has_interval).then_some(&"--scrape-interval=20ms");
        let cli = Cli::try_parse_from(base.iter().chain(interval).chain(flags)).unwrap();
        let Command::Serve(args) = cli.command else {
            unreachable!()
        };
        let instance = Instance::start(Config::check(&args).unwrap())
            .await
            .unwrap();
        Self {
            data: instance.addresses().first().copied(),
            admin: instance.admin_address(),
            instance,
        }
    }

    pub(crate) async fn summary(&self, query: &str) -> Value {
        get_json(self.admin, &format!("/api/v1/summary{query}")).await
    }

    /// The summary once `wanted` holds of it.
    pub(crate) async fn summary_once(&self, query: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let summary = self.summary(query).await;
            if wanted(&summary) {
                return summary;
            }
            let (server, coverage) = (&summary["server"], &summary["coverage"]);
            assert!(begun.elapsed() < DEADLINE, "{server:#} {coverage:#}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub(crate) async fn metrics(&self) -> String {
        get(self.admin, "/metrics").await
    }

    pub(crate) async fn stop(self) {
        self.instance.stop().await;
    }
}

/// The value of a counter in a summary's `server`.
pub(crate) fn total(summary: &Value, name: &str) -> Option<u64> {
    let value = summary["server"]["metrics"][name]["avg"].as_f64()?;
    Some(value as u64)
}

/// Whether the shares of the summary are exact.
pub(crate) fn is_settled(summary: &Value) -> bool {
    summary["coverage"]["settled"] == true
}

pub(crate) fn settings(kind: EngineKind) -> Settings {
    let acceptance = Acceptance::parse("0.8,0.6,0.5").unwrap();
    Settings::new(kind, vec![Model::new("m", acceptance)])
}

pub(crate) async fn engine(kind: EngineKind) -> Running {
    Engine::start(settings(kind)).await.unwrap()
}

pub(crate) async fn get(address: SocketAddr, path: &str) -> String {
    let answer = Requester::new(DEADLINE)
        .get(&format!("http://{address}{path}"))
        .await
        .unwrap();
    let body = String::from_utf8(answer.body.to_vec()).unwrap();
    assert_eq!(answer.status, 200, "{path}: {body}");
    body
}

pub(crate) async fn get_json(address: SocketAddr, path: &str) -> Value {
    serde_json::from_str(&get(address, path).await).unwrap()
}

/// Asks for a chat reply, with more members than the usual ones.
pub(crate) async fn chat(address: SocketAddr, more: &Value) {
    let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "Tell me."}], "max_tokens": 60,
        "stream": true});
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    let answer = Requester::new(DEADLINE)
        .post(
            &format!("http://{address}/v1/chat/completions"),
            body.to_string().into(),
        )
        .await
        .unwrap();
    assert_eq!(answer.status, 200, "{:?}", answer.body);
}

/// What the engine did, by its own log.
pub(crate) fn truth(log: &Log) -> Counts {
    log.totals().remove("m").unwrap_or_default().all
}
