//! Demo traffic: a client that asks several models for all kinds of responses and counts what came of it.
//!
//! It judges a response by its status and by whether its body ended well, and by nothing else.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

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

use super::acceptance::Acceptance;
use super::request::ACCEPTANCE;

/// What the traffic is like.
#[derive(Clone, Debug)]
pub struct Traffic {
    /// Where to send it, such as `http://127.0.0.1:8000`, without a slash at the end.
    pub base_url: String,
    /// The models asked, in turn, and how well their drafts do.
    pub models: Vec<(String, Acceptance)>,
    /// Categories of requests; each is asked equally often.
    pub categories: Vec<Category>,
    /// How many of a hundred clients leave in the middle of a response.
    pub leaving: u8,
    /// A drafter that fails for a while.
    pub collapse: Option<Collapse>,
    /// Requests on their way at the same time.
    pub concurrency: usize,
    /// How many requests to send; `None`: until told to stop.
    pub requests: Option<u64>,
    /// The most tokens that a request asks for.
    pub max_tokens: u64,
    /// Seed of what is asked.
    pub seed: u64,
}

/// A kind of request.
#[derive(Clone, Copy, Debug)]
pub struct Category {
    /// The tag that its requests carry.
    pub tag: &'static str,
    /// What its text does to the probability of each draft.
    pub factor: f64,
}

/// A drafter that fails for a while, again and again.
#[derive(Clone, Debug)]
pub struct Collapse {
    /// The model whose drafter it is.
    pub model: String,
    /// When it begins in each period, counted from its start.
    pub from: Duration,
    /// When it is over.
    pub until: Duration,
    /// Time after which all begins again.
    pub period: Duration,
    /// What it does to the probability of each draft.
    pub factor: f64,
}

/// Tokens that are asked for by a client who will not wait for them.
const FAR_TOO_MANY: u64 = 4_000;

/// Pieces of a response after which such a client leaves.
const PATIENCE: usize = 8;

/// A request to be sent.
#[derive(Clone, Debug, PartialEq)]
struct Question {
    path: &'static str,
    tag: Option<&'static str>,
    body: Value,
    /// Whether the client leaves in the middle of the response.
    leaves: bool,
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
    left: AtomicU64,
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
    /// The client left in the middle.
    pub left: u64,
}

impl Outcomes {
    /// All requests that ended.
    pub fn total(&self) -> u64 {
        self.complete + self.refused + self.broken + self.unreachable + self.left
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
            left: read(&self.0.left),
        }
    }
}

/// Sends traffic until `stop` is cancelled or the wished number is sent, and waits for what is on its way.
///
/// A request once sent is read to its end, so that client and server agree on what was said; some clients leave long before
/// that, which both sides see too.
pub async fn run(traffic: Traffic, tally: Tally, stop: CancellationToken) -> Outcomes {
    let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new())
        // Below the idle time after which inference servers close a connection.
        .pool_idle_timeout(Duration::from_secs(2))
        .build(HttpConnector::new());
    let traffic = Arc::new(traffic);
    let began = Instant::now();
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
                let question = traffic.ask(number, began.elapsed());
                if !send(&client, &traffic.base_url, &question, &tally.0).await {
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
    question: &Question,
    counts: &Counts,
) -> bool {
    let count = |count: &AtomicU64| count.fetch_add(1, Ordering::Relaxed);
    let Ok(uri) = format!("{base_url}{}", question.path).parse::<Uri>() else {
        count(&counts.unreachable);
        return false;
    };
    let mut request = Request::new(Full::new(Bytes::from(question.body.to_string())));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = uri;
    request.headers_mut().insert(
        header::CONTENT_TYPE,
        header::HeaderValue::from_static("application/json"),
    );
    if let Some(tag) = question.tag {
        let tag = header::HeaderValue::from_static(tag);
        request.headers_mut().insert("x-spectap-tag", tag);
    }
    let Ok(response) = client.request(request).await else {
        count(&counts.unreachable);
        return false;
    };
    let fine = response.status() == http::StatusCode::OK;
    let mut body = response.into_body();
    let mut pieces = 0;
    while let Some(frame) = body.frame().await {
        if frame.is_err() {
            count(&counts.broken);
            return true;
        }
        pieces += 1;
        if question.leaves && pieces >= PATIENCE {
            count(&counts.left);
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
    fn ask(&self, number: u64, elapsed: Duration) -> Question {
        let mut rng = Rng::with_seed(
            self.seed
                .wrapping_add(number.wrapping_mul(0x9E37_79B9_7F4A_7C15)),
        );
        let category = rng.choice(&self.categories);
        let turn = number.checked_rem(self.models.len() as u64);
        let model = turn.and_then(|turn| self.models.get(turn as usize));
        let most = self.max_tokens.max(1);
        let leaves = rng.u8(..100) < self.leaving;
        let max_tokens = match rng.u8(..100) {
            _ if leaves => FAR_TOO_MANY,
            0..4 => 1,
            _ => rng.u64((most / 8).max(1)..=most),
        };
        let prompt = "Explain how a draft model helps. ".repeat(1 << rng.u32(..7));
        let name = model.map_or("", |(name, _)| name.as_str());
        let mut body = json!({"model": name, "max_tokens": max_tokens});
        if let Some(temperature) = [None, Some(0.0), Some(0.5), Some(1.0)][rng.usize(..4)] {
            body["temperature"] = json!(temperature);
        }
        if let Some((_, acceptance)) = model {
            let factor = category.map_or(1.0, |category| category.factor);
            let factor = factor * self.factor_at(name, elapsed);
            body[ACCEPTANCE] = json!(acceptance.scaled(factor).probabilities());
        }
        let chat = rng.u8(..100) < 70;
        if chat {
            body["messages"] = json!([{"role": "user", "content": prompt}]);
        } else {
            body["prompt"] = prompt.into();
        }
        if leaves || rng.u8(..100) < 75 {
            body["stream"] = true.into();
            match rng.u8(..3) {
                0 => body["stream_options"] = json!({"include_usage": true}),
                1 => body["stream_options"] = json!({"include_usage": false}),
                _ => {}
            }
        }
        match rng.u8(..100) {
            0..4 if !leaves => body["n"] = 2.into(),
            4..8 if !leaves => body["stop"] = json!([" batch"]),
            _ => {}
        }
        Question {
            path: if chat {
                "/v1/chat/completions"
            } else {
                "/v1/completions"
            },
            tag: category.map(|category| category.tag),
            body,
            leaves,
        }
    }

    fn factor_at(&self, model: &str, elapsed: Duration) -> f64 {
        let Some(collapse) = self.collapse.as_ref().filter(|it| it.model == model) else {
            return 1.0;
        };
        let period = collapse.period.max(Duration::from_millis(1));
        let place = elapsed.as_millis() % period.as_millis();
        let fails = collapse.from.as_millis()..collapse.until.as_millis();
        if fails.contains(&place) {
            collapse.factor
        } else {
            1.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traffic() -> Traffic {
        let acceptance = || Acceptance::parse("0.8,0.6").unwrap();
        Traffic {
            base_url: String::new(),
            models: vec![("a".into(), acceptance()), ("b".into(), acceptance())],
            categories: vec![
                Category {
                    tag: "easy",
                    factor: 1.1,
                },
                Category {
                    tag: "hard",
                    factor: 0.5,
                },
            ],
            leaving: 3,
            collapse: Some(Collapse {
                model: "b".into(),
                from: Duration::from_secs(60),
                until: Duration::from_secs(90),
                period: Duration::from_secs(200),
                factor: 0.1,
            }),
            concurrency: 1,
            requests: None,
            max_tokens: 64,
            seed: 9,
        }
    }

    #[test]
    fn traffic_is_the_same_for_the_same_seed_and_mixes_all_kinds() {
        let traffic = traffic();
        let all = || -> Vec<_> {
            let numbers = 0..400;
            numbers
                .map(|number| traffic.ask(number, Duration::ZERO))
                .collect()
        };
        let asked = all();
        assert_eq!(asked, all());
        let any = |test: &dyn Fn(&Value) -> bool| asked.iter().any(|it| test(&it.body));
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
        assert!(any(&|b| b["temperature"] == 0.0) && any(&|b| b.get("temperature").is_none()));
        assert!(
            asked
                .iter()
                .any(|it| it.leaves && it.body["stream"] == true)
        );
        for tag in ["easy", "hard"] {
            assert!(asked.iter().any(|it| it.tag == Some(tag)), "{tag}");
        }
    }

    #[test]
    fn a_drafter_collapses_for_its_time_and_recovers() {
        let traffic = traffic();
        let first = |number: u64, second: u64| {
            let asked = traffic.ask(number, Duration::from_secs(second));
            let factor = if asked.tag == Some("easy") { 1.1 } else { 0.5 };
            asked.body["simulate_acceptance"][0].as_f64().unwrap() / (0.8 * factor)
        };
        for number in [0, 1, 2, 3] {
            for (second, fails) in [
                (0, false),
                (59, false),
                (60, true),
                (89, true),
                (90, false),
                (261, true),
            ] {
                let expected = if fails && number % 2 == 1 { 0.1 } else { 1.0 };
                let found = first(number, second);
                assert!(
                    (found - expected).abs() < 1e-9,
                    "{number} {second}: {found}"
                );
            }
        }
    }
}
