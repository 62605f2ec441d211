//! Gets a page from a server: with a deadline, and in bounded memory.

use std::error::Error;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, Method, Request, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

/// Largest answer that is read. A page of a large fleet has a few hundred KiB.
const LARGEST_ANSWER: usize = 16 << 20;

/// The text that is wanted; an engine may choose.
const EXPOSITION: &str =
    "text/plain;version=0.0.4;q=0.9,application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.1";

/// Asks one server at a time. Connections are not kept: a page is read once in a while, and an engine's idle limit is none of
/// our business.
#[derive(Clone, Debug)]
pub struct Requester {
    client: Client<HttpConnector, Full<Bytes>>,
    deadline: Duration,
    token: Option<String>,
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// Its status.
    pub status: u16,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its whole body.
    pub body: Bytes,
    /// From the request to the answer's head.
    pub to_head: Duration,
    /// From the request to the answer's end.
    pub to_end: Duration,
}

impl Fetched {
    /// Whether the body is told to be JSON.
    pub fn is_json(&self) -> bool {
        let value = self.headers.get(CONTENT_TYPE);
        value
            .and_then(|value| value.to_str().ok())
            .is_some_and(|value| value.trim_start().starts_with("application/json"))
    }

    /// The body as JSON, if it is such.
    pub fn json(&self) -> Option<serde_json::Value> {
        serde_json::from_slice(&self.body).ok()
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The address is none.
    #[error("{0} is no address; write it like http://127.0.0.1:8000/metrics")]
    Address(String),
    /// No connection.
    #[error("can't connect to {url}: {reason}")]
    Connect {
        /// Where.
        url: String,
        /// What the system said.
        reason: String,
    },
    /// A connection, but no whole answer.
    #[error("no whole answer from {url}: {reason}")]
    Answer {
        /// Where.
        url: String,
        /// What went wrong.
        reason: String,
    },
    /// Not in time.
    #[error("no answer from {url} within {} ms", deadline.as_millis())]
    Deadline {
        /// Where.
        url: String,
        /// How long was waited.
        deadline: Duration,
    },
}

impl Requester {
    /// One whose answers may take so long.
    pub fn new(deadline: Duration) -> Self {
        let mut builder = Client::builder(TokioExecutor::new());
        builder.pool_max_idle_per_host(0);
        Self {
            client: builder.build_http(),
            deadline,
            token: None,
        }
    }

    /// The same with a key that it sends along (`Authorization: Bearer`).
    #[must_use]
    pub fn with_token(self, token: Option<String>) -> Self {
        Self { token, ..self }
    }

    /// Gets a page.
    ///
    /// # Errors
    ///
    /// When there is no whole answer in time; any status is an answer.
    pub async fn get(&self, url: &str) -> Result<Fetched, Problem> {
        self.send(Method::GET, url, Bytes::new()).await
    }

    /// Sends a JSON body.
    ///
    /// # Errors
    ///
    /// When there is no whole answer in time; any status is an answer.
    pub async fn post(&self, url: &str, body: Bytes) -> Result<Fetched, Problem> {
        self.send(Method::POST, url, body).await
    }

    async fn send(&self, method: Method, url: &str, body: Bytes) -> Result<Fetched, Problem> {
        let wrong = || Problem::Address(url.to_owned());
        let uri: Uri = url.parse().map_err(|_| wrong())?;
        if uri.scheme_str() != Some("http") || uri.authority().is_none() {
            return Err(wrong());
        }
        let mut request = Request::builder()
            .method(&method)
            .uri(uri)
            .header(ACCEPT, EXPOSITION);
        if method == Method::POST {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        let request = request.body(Full::new(body)).map_err(|_| wrong())?;
        tokio::time::timeout(self.deadline, self.answer(url, request))
            .await
            .map_err(|_| Problem::Deadline {
                url: url.to_owned(),
                deadline: self.deadline,
            })?
    }

    async fn answer(&self, url: &str, request: Request<Full<Bytes>>) -> Result<Fetched, Problem> {
        let begin = Instant::now();
        let response = self.client.request(request).await.map_err(|error| {
            let (url, reason) = (url.to_owned(), innermost(&error));
            if error.is_connect() {
                Problem::Connect { url, reason }
            } else {
                Problem::Answer { url, reason }
            }
        })?;
        let to_head = begin.elapsed();
        let (head, body) = response.into_parts();
        let body = Limited::new(body, LARGEST_ANSWER).collect().await;
        let body = body.map_err(|error| Problem::Answer {
            url: url.to_owned(),
            reason: innermost(error.as_ref()),
        })?;
        Ok(Fetched {
            status: head.status.as_u16(),
            headers: head.headers,
            body: body.to_bytes(),
            to_head,
            to_end: begin.elapsed(),
        })
    }
}

// The outer errors only say "client error"; the one at the bottom says what happened.
fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
