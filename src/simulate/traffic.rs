//! Demo traffic: a client that asks several models for all kinds of responses and counts what came of it.
//!
//! It judges a response by its status and by whether its body ended well, and by nothing else.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use fastrand::Rng;
use http::{Method, Request, Uri, header};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// What the traffic is like.
#[derive(Clone, Debug)]
pub struct Traffic {
    /// Where to send it, such as `http://127.0.0.1:8000`, without a slash at the end.
    pub base_url: String,
    /// The models asked, in turn.
    pub models: Vec<String>,
    /// Requests on their way at the same time.
    pub concurrency: usize,
    /// How many requests to send; `None`: until told to stop.
    pub requests: Option<u64>,
    /// The most tokens that a request asks for.
    pub max_tokens: u64,
    /// Seed of what is asked.
    pub seed: u64,
}

/// How requests ended so far; clones share the counts.
#[derive(Clone, Debug, Default)]
pub struct Tally(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    complete: AtomicU64,
    refused: AtomicU64,
    broken: AtomicU64,
    unreachable: AtomicU64,
}

/// How many requests ended in which way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Outcomes {
    /// Status 200 and a body that ended well.
    pub complete: u64,
    /// Another status.
    pub refused: u64,
    /// A response that broke off.
    pub broken: u64,
    /// No response.
    pub unreachable: u64,
}

impl Outcomes {
    /// All requests that ended.
    pub fn total(&self) -> u64 {
        self.complete + self.refused + self.broken + self.unreachable
    }
}

impl Tally {
    /// The counts as they are now.
    pub fn outcomes(&self) -> Outcomes {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Outcomes {
            complete: read(&self.0.complete),
            refused: read(&self.0.refused),
            broken: read(&self.0.broken),
            unreachable: read(&self.0.unreachable),
        }
    }
}

/// Sends traffic until `stop` is cancelled or the wished number is sent, and waits for what is on its way.
///
/// A request once sent is always read to its end, so that client and server agree on what was said.
pub async fn run(traffic: Traffic, tally: Tally, stop: CancellationToken) -> Outcomes {
    let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new())
        // Below the idle time after which inference servers close a connection.
        .pool_idle_timeout(Duration::from_secs(2))
        .build(HttpConnector::new());
    let traffic = Arc::new(traffic);
    let next = Arc::new(AtomicU64::new(0));
    let mut workers = JoinSet::new();
    for _ in 0..traffic.concurrency.max(1) {
        let (client, traffic, next) = (client.clone(), Arc::clone(&traffic), Arc::clone(&next));
        let (tally, stop) = (tally.clone(), stop.clone());
        workers.spawn(async move {
            while !stop.is_cancelled() {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if traffic.requests.is_some_and(|most| number >= most) {
                    break;
                }
                let (path, body) = traffic.ask(number);
                if !send(&client, &traffic.base_url, path, &body, &tally.0).await {
                    // Nobody there: don't spin.
                    tokio::select! {
                        () = stop.cancelled() => {}
                        () = tokio::time::sleep(Duration::from_millis(100)) => {}
                    }
                }
            }
        });
    }
    while workers.join_next().await.is_some() {}
    tally.outcomes()
}

/// Sends one request and reads the response to its end; `false` when there was none.
async fn send(
    client: &Client<HttpConnector, Full<Bytes>>,
    base_url: &str,
    path: &str,
    body: &Value,
    counts: &Counts,
) -> bool {
    let count = |count: &AtomicU64| count.fetch_add(1, Ordering::Relaxed);
    let Ok(uri) = format!("{base_url}{path}").parse::<Uri>() else {
        count(&counts.unreachable);
        return false;
    };
    let mut request = Request::new(Full::new(Bytes::from(body.to_string())));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = uri;
    request.headers_mut().insert(
        header::CONTENT_TYPE,
        header::HeaderValue::from_static("application/json"),
    );
    let Ok(response) = client.request(request).await else {
        count(&counts.unreachable);
        return false;
    };
    let fine = response.status() == http::StatusCode::OK;
    let mut body = response.into_body();
    while let Some(frame) = body.frame().await {
        if frame.is_err() {
            count(&counts.broken);
            return true;
        }
    }
    count(if fine {
        &counts.complete
    } else {
        &counts.refused
    });
    true
}

impl Traffic {
    /// The path and the body of the request of that number. Most are plain; some are of the kinds for which engines
    /// tell no acceptance numbers.
    fn ask(&self, number: u64) -> (&'static str, Value) {
        let mut rng = Rng::with_seed(
            self.seed
                .wrapping_add(number.wrapping_mul(0x9E37_79B9_7F4A_7C15)),
        );
        let model = match self.models.len() {
            0 => "",
            models => self.models[(number % models as u64) as usize].as_str(),
        };
        let most = self.max_tokens.max(1);
        let max_tokens = if rng.u8(..100) < 4 {
            1
        } else {
            rng.u64((most / 8).max(1)..=most)
        };
        let prompt = "Explain how a draft model helps. ".repeat(rng.usize(1..=6));
        let mut body = json!({"model": model, "max_tokens": max_tokens, "temperature": 0});
        let chat = rng.u8(..100) < 70;
        if chat {
            body["messages"] = json!([{"role": "user", "content": prompt}]);
        } else {
            body["prompt"] = prompt.into();
        }
        if rng.u8(..100) < 75 {
            body["stream"] = true.into();
            match rng.u8(..3) {
                0 => body["stream_options"] = json!({"include_usage": true}),
                1 => body["stream_options"] = json!({"include_usage": false}),
                _ => {}
            }
        }
        match rng.u8(..100) {
            0..4 => body["n"] = 2.into(),
            4..8 => body["stop"] = json!([" batch"]),
            _ => {}
        }
        (
            if chat {
                "/v1/chat/completions"
            } else {
                "/v1/completions"
            },
            body,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traffic_is_the_same_for_the_same_seed_and_mixes_all_kinds() {
        let traffic = Traffic {
            base_url: String::new(),
            models: vec!["a".into(), "b".into()],
            concurrency: 1,
            requests: None,
            max_tokens: 64,
            seed: 9,
        };
        let asked: Vec<_> = (0..400).map(|number| traffic.ask(number)).collect();
        assert_eq!(
            asked,
            (0..400)
                .map(|number| traffic.ask(number))
                .collect::<Vec<_>>()
        );
        let any = |test: &dyn Fn(&Value) -> bool| asked.iter().any(|(_, body)| test(body));
        assert!(any(
            &|b| b["stream"] == true && b["stream_options"]["include_usage"] == true
        ));
        assert!(any(
            &|b| b["stream"] == true && b.get("stream_options").is_none()
        ));
        assert!(
            any(&|b| b["n"] == 2)
                && any(&|b| b["max_tokens"] == 1)
                && any(&|b| b["stop"].is_array())
        );
        assert!(any(&|b| b.get("stream").is_none()) && any(&|b| b["prompt"].is_string()));
        assert!(any(&|b| b["model"] == "a") && any(&|b| b["model"] == "b"));
    }
}
