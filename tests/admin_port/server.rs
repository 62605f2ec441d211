//! A running admin port and a client that speaks raw bytes to it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use prometheus::Registry;
use serde_json::{Value, json};
use spectap::admin::{Access, AdminState, Readiness, router, serve};
use spectap::clock::Clock;
use spectap::counters::TapCounters;
use spectap::export::prometheus::{BuildInfo, register};
use spectap::observation::{Observation, ObservationSink};
use spectap::runs::Runs;
use spectap::stats::{Facet, Statistics};
use spectap::store::ObservationRing;
use spectap::store::records::Manifest;
use spectap::switch::InjectSwitch;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Far above what anything here takes: a test that hangs fails by it.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) counters: TapCounters,
    pub(crate) registry: Registry,
    statistics: Arc<Statistics>,
    ring: Arc<ObservationRing>,
    pub(crate) inject: InjectSwitch,
    pub(crate) runs: Runs,
    pub(crate) readiness: Arc<Readiness>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

/// What a test may choose.
#[derive(Default)]
pub(crate) struct Choice {
    /// The address that the port believes to be bound to; tests always listen on loopback.
    pub(crate) believed: Option<SocketAddr>,
    pub(crate) token: Option<&'static str>,
    pub(crate) protect_metrics: bool,
    pub(crate) upstream: Option<String>,
    pub(crate) clock: Clock,
    /// Facet that the acceptance counters carry.
    pub(crate) facet: Option<Facet>,
    /// The engine's counters.
    pub(crate) scraped: spectap::scrape::Server,
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::start_with(Choice::default()).await
    }

    pub(crate) async fn start_with(choice: Choice) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let registry = Registry::new();
        let counters = TapCounters::register(&registry).unwrap();
        let statistics = Statistics::with_clock(choice.clock.clone());
        let statistics = Arc::new(match choice.facet {
            Some(facet) => statistics.counting_by(facet),
            None => statistics,
        });
        let build = BuildInfo {
            version: "0.1.0".to_owned(),
            commit: String::new(),
        };
        register(&registry, statistics.clone(), &build, 5000).unwrap();
        let ring = Arc::new(ObservationRing::new());
        let inject = InjectSwitch::new(true);
        let runs = Runs::new(choice.clock.clone());
        let readiness = Arc::new(Readiness::new(choice.upstream));
        let state = AdminState {
            registry: registry.clone(),
            statistics: statistics.clone(),
            ring: ring.clone(),
            inject: inject.clone(),
            manifest: Arc::new(Manifest::of_this_build(
                std::time::SystemTime::UNIX_EPOCH,
                None,
                Default::default(),
            )),
            runs: runs.clone(),
            server: choice.scraped,
            readiness: readiness.clone(),
            access: Arc::new(Access::new(
                choice.believed.unwrap_or(address),
                choice.token.map(str::to_owned),
                choice.protect_metrics,
            )),
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(serve(listener, router(state), async {
            let _ = stopped.await;
        }));
        Self {
            address,
            counters,
            registry,
            statistics,
            ring,
            inject,
            runs,
            readiness,
            stop: Some(stop),
            task,
        }
    }

    /// Begins the shutdown and waits until `serve` has returned.
    pub(crate) async fn stop(mut self) {
        let _ = self.stop.take().unwrap().send(());
        within(&mut self.task).await.unwrap();
    }

    /// GET with the Host header that a usual client sends.
    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.get_with(path, "").await
    }

    /// GET with further header lines, each ended by CRLF.
    pub(crate) async fn get_with(&self, path: &str, headers: &str) -> Answer {
        self.send("GET", path, headers, "").await
    }

    pub(crate) async fn post_json(&self, path: &str, body: &str) -> Answer {
        self.send("POST", path, "Content-Type: application/json\r\n", body)
            .await
    }

    pub(crate) async fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> Answer {
        let length = match (method, body.len()) {
            ("GET" | "HEAD", 0) => String::new(),
            (_, length) => format!("Content-Length: {length}\r\n"),
        };
        let host = self.address;
        self.raw(&format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}{length}\r\n{body}"
        ))
        .await
    }

    /// Sends bytes as they are and reads until the port closes.
    pub(crate) async fn raw(&self, request: &str) -> Answer {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut bytes = Vec::new();
        within(stream.read_to_end(&mut bytes)).await.unwrap();
        Answer::parse(&bytes)
    }

    /// Hands an observation to everything that keeps one.
    pub(crate) fn record(&self, observation: Observation) {
        let observation = Arc::new(observation);
        self.statistics.record(observation.clone());
        self.ring.record(observation);
    }
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Answer {
    fn parse(bytes: &[u8]) -> Self {
        let mut headers = [httparse::EMPTY_HEADER; 32];
        let mut head = httparse::Response::new(&mut headers);
        let length = match head.parse(bytes) {
            Ok(httparse::Status::Complete(length)) => length,
            other => panic!("{other:?}: {}", String::from_utf8_lossy(bytes)),
        };
        let answer = Self {
            status: head.code.unwrap(),
            headers: head
                .headers
                .iter()
                .map(|header| {
                    let value = String::from_utf8(header.value.to_vec()).unwrap();
                    (header.name.to_ascii_lowercase(), value)
                })
                .collect(),
            body: String::from_utf8(bytes[length..].to_vec()).unwrap(),
        };
        assert_eq!(answer.header("transfer-encoding"), None, "{answer:?}");
        answer
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(it, _)| it == name);
        let value = found.next().map(|(_, value)| value.as_str());
        assert!(found.next().is_none(), "{name} twice: {self:?}");
        value
    }

    pub(crate) fn json(&self) -> Value {
        assert_eq!(
            self.header("content-type"),
            Some("application/json"),
            "{self:?}"
        );
        serde_json::from_str(&self.body).unwrap()
    }

    /// Checks the shape of an error and gives its code and its sentence.
    #[track_caller]
    pub(crate) fn error(&self, status: u16) -> (String, String) {
        assert_eq!(self.status, status, "{self:?}");
        let body = self.json();
        let text = |name: &str| body["error"][name].as_str().unwrap().to_owned();
        let (code, message) = (text("code"), text("message"));
        assert_eq!(body, json!({"error": {"code": code, "message": message}}));
        (code, message)
    }
}

/// Waits for something that must come.
pub(crate) async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(DEADLINE, future)
        .await
        .expect("nothing came within the deadline")
}

/// An id that tells its number.
pub(crate) fn id(number: u128) -> String {
    ulid::Ulid::from(number).to_string()
}

pub(crate) fn observation(number: u128) -> Observation {
    serde_json::from_value(json!({
        "id": id(number), "request_id": "chatcmpl-1", "x_request_id": null, "trace_id": null,
        "started_at": "2026-12-01T09:00:00.000000Z", "ended_at": "2026-12-01T09:00:00.109000Z",
        "lane": "127.0.0.1:8090", "route": "chat_completions", "model": "m", "tag": null, "run": null,
        "stream": true, "n": 1, "prompts": 1, "stream_options_asked": null, "in_flight": 1, "status": 200,
        "outcome": "complete", "acceptance": "recorded", "reason": null, "finish_reasons": ["length"],
        "facets": {"temperature": "0", "format": "none"},
        "usage": {"prompt_tokens": 22, "completion_tokens": 48, "cached_tokens": null, "reasoning_tokens": null},
        "timing": {"time_to_first_byte_ms": 2.1, "time_to_first_token_ms": 41.0, "inter_token_latency_ms": 1.4,
            "inter_chunk_latency_ms": 2.9, "request_latency_ms": 108.2, "upstream_connect_ms": 0.2},
        "engine_metrics": {"queue_time_ms": 0.3}, "content_chunks": 12,
        "spec_decode_acceptance": [{"engine": "vllm", "provenance": "histogram", "choice_index": 0,
            "mean_acceptance_length": 2.75, "draft_acceptance_rate": 0.4375,
            "acceptance_histogram": {"1": 2, "2": 1, "3": 1}, "num_accepted_draft_tokens": 7,
            "num_draft_tokens": 16, "num_spec_steps": 4, "num_spec_tokens": 4, "completion_tokens": 48}]
    }))
    .unwrap()
}
