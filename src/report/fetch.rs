//! Gets snapshots and exchanges from a running tap, with a deadline and in bounded memory.

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{Request, StatusCode, Uri, request};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy::{self, Client};
use hyper_util::rt::TokioExecutor;
use serde::Deserialize;

use crate::export::Query;
use crate::export::snapshot::{Snapshot, VERSION};
use crate::observation::Observation;

/// How long the whole answer may take.
const DEADLINE: Duration = Duration::from_secs(10);

/// Largest answer that is read: the exchanges that a full tap keeps take about a third of it.
const LARGEST_ANSWER: usize = 512 << 20;

/// The numbers.
const SNAPSHOT: &str = "/api/v1/snapshot";

/// The exchanges that are kept, as a records file.
const EXPORT: &str = "/api/v1/export?format=jsonl";

/// The exchanges that are kept, newest first.
const REQUESTS: &str = "/api/v1/requests";

/// Of these as many as one page has, with numbers.
const RECORDED: &str = "acceptance=recorded&limit=1000";

/// Why the snapshot could not be had.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The address is no plain `http://HOST:PORT`.
    #[error(
        "{from}: not an address of a tap; should be http://HOST:PORT, such as http://127.0.0.1:8091"
    )]
    Address {
        /// What was given.
        from: String,
    },
    /// No connection.
    #[error(
        "can't reach {from}: {reason}; is `spectap serve` running, and is this its admin address?"
    )]
    Connect {
        /// Where.
        from: String,
        /// What the system said.
        reason: String,
    },
    /// A connection, but no whole answer.
    #[error(
        "no proper answer from {from}: {reason}; is this the admin address of `spectap serve`?"
    )]
    Answer {
        /// Where.
        from: String,
        /// What went wrong.
        reason: String,
    },
    /// No answer in time.
    #[error("no answer from {from} within {} s; is this the admin address of `spectap serve`?", DEADLINE.as_secs())]
    Deadline {
        /// Where.
        from: String,
    },
    /// The admin port asks for a token and none was given.
    #[error("{from} asks for its admin token; give the file that holds it with --admin-token-file")]
    TokenWanted {
        /// Where.
        from: String,
    },
    /// It asks for another token.
    #[error(
        "{from} refuses the token of --admin-token-file; it must be the one that `spectap serve` was started with"
    )]
    TokenRefused {
        /// Where.
        from: String,
    },
    /// It answers to nobody, or does not take the question.
    #[error("{from} refuses: {reason}")]
    Refused {
        /// Where.
        from: String,
        /// What it says.
        reason: String,
    },
    /// Another status than 200.
    #[error("{from}{path} answers {status}; is this the admin address of `spectap serve`?")]
    Status {
        /// Where.
        from: String,
        /// What was asked for.
        path: &'static str,
        /// The status.
        status: StatusCode,
    },
    /// The answer is no snapshot.
    #[error("{from}{path} is no {what}: {reason}; is this the admin address of `spectap serve`?")]
    NotThat {
        /// Where.
        from: String,
        /// What was asked for.
        path: &'static str,
        /// What it should have been.
        what: &'static str,
        /// What the JSON reader said.
        reason: String,
    },
    /// A snapshot of another version.
    #[error(
        "{from} sends snapshots of version {version}, this spectap reads version {VERSION}; use the same version on both sides"
    )]
    Version {
        /// Where.
        from: String,
        /// Its version.
        version: u64,
    },
}

/// Gets the snapshot of the tap whose admin port is at `from`.
pub(crate) async fn snapshot(
    from: &str,
    query: &Query,
    token: Option<&str>,
) -> Result<Snapshot, FetchError> {
    let from = from.trim_end_matches('/');
    read(
        from,
        &get(from, SNAPSHOT, &query.for_snapshot(), token).await?,
    )
}

/// Gets the exchanges that the tap keeps, oldest first, as the lines of a records file.
pub(crate) async fn export(from: &str, token: Option<&str>) -> Result<Bytes, FetchError> {
    get(from.trim_end_matches('/'), EXPORT, "", token).await
}

/// Gets the newest exchanges with acceptance numbers.
pub(super) async fn recorded(
    from: &str,
    token: Option<&str>,
) -> Result<Vec<Observation>, FetchError> {
    let (recorded, _) = page(from, RECORDED, token).await?;
    Ok(recorded)
}

/// Gets one page of the exchanges that the tap keeps, newest first, and what the next page begins after.
pub(crate) async fn requests(
    from: &str,
    limit: usize,
    after: Option<&str>,
    token: Option<&str>,
) -> Result<(Vec<Observation>, Option<String>), FetchError> {
    let after = after.map(|after| format!("&after={after}"));
    let parameters = format!("limit={limit}{}", after.unwrap_or_default());
    page(from, &parameters, token).await
}

async fn page(
    from: &str,
    parameters: &str,
    token: Option<&str>,
) -> Result<(Vec<Observation>, Option<String>), FetchError> {
    #[derive(Deserialize)]
    struct Page {
        requests: Vec<Observation>,
        next: Option<String>,
    }
    let from = from.trim_end_matches('/');
    let body = get(from, REQUESTS, parameters, token).await?;
    let page: Page = serde_json::from_slice(&body).map_err(|error| FetchError::NotThat {
        from: from.into(),
        path: REQUESTS,
        what: "list of exchanges",
        reason: error.to_string(),
    })?;
    Ok((page.requests, page.next))
}

async fn get(
    from: &str,
    path: &'static str,
    parameters: &str,
    token: Option<&str>,
) -> Result<Bytes, FetchError> {
    let uri = address(from, path, parameters)?;
    tokio::time::timeout(DEADLINE, answer(from, path, uri, token))
        .await
        .map_err(|_| FetchError::Deadline { from: from.into() })?
}

fn address(from: &str, path: &str, parameters: &str) -> Result<Uri, FetchError> {
    let wrong = || FetchError::Address { from: from.into() };
    let base: Uri = from.parse().map_err(|_| wrong())?;
    // A port that is none would be read as 80.
    let has_port = base.authority().is_some_and(|authority| {
        authority.port_u16().is_some() || authority.as_str() == authority.host()
    });
    let plain = base.scheme_str() == Some("http") && base.path() == "/" && base.query().is_none();
    let plain = plain && has_port;
    if !plain {
        return Err(wrong());
    }
    let mark = if parameters.is_empty() { "" } else { "?" };
    format!("{from}{path}{mark}{parameters}")
        .parse()
        .map_err(|_| wrong())
}

async fn answer(
    from: &str,
    path: &'static str,
    uri: Uri,
    token: Option<&str>,
) -> Result<Bytes, FetchError> {
    let (status, body) = send(from, Request::get(uri), token, Bytes::new()).await?;
    if status == StatusCode::OK {
        return Ok(body);
    }
    let from = from.to_owned();
    Err(match refused(&from, status, &body, token.is_some()) {
        Some(refused) => refused,
        None => FetchError::Status { from, path, status },
    })
}

/// Asks the admin port something else than numbers: POSTs `json` where there is one. A status that is no refusal is the
/// caller's to judge.
pub(crate) async fn ask(
    from: &str,
    path: &str,
    json: Option<&'static str>,
    token: Option<&str>,
) -> Result<(StatusCode, Bytes), FetchError> {
    let from = from.trim_end_matches('/');
    let uri = address(from, path, "")?;
    let request = match json {
        Some(_) => Request::post(uri).header(CONTENT_TYPE, "application/json"),
        None => Request::get(uri),
    };
    let body = Bytes::from_static(json.unwrap_or_default().as_bytes());
    let (status, body) = tokio::time::timeout(DEADLINE, send(from, request, token, body))
        .await
        .map_err(|_| FetchError::Deadline { from: from.into() })??;
    match refused(from, status, &body, token.is_some()) {
        Some(refused) => Err(refused),
        None => Ok((status, body)),
    }
}

async fn send(
    from: &str,
    mut request: request::Builder,
    token: Option<&str>,
    body: Bytes,
) -> Result<(StatusCode, Bytes), FetchError> {
    let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
    if let Some(token) = token {
        request = request.header(AUTHORIZATION, format!("Bearer {token}"));
    }
    let request = request
        .body(Full::new(body))
        .map_err(|_| FetchError::TokenRefused { from: from.into() })?;
    let response = client
        .request(request)
        .await
        .map_err(|error| unreached(from, &error))?;
    let status = response.status();
    let body = Limited::new(response.into_body(), LARGEST_ANSWER)
        .collect()
        .await
        .map_err(|error| FetchError::Answer {
            from: from.into(),
            reason: innermost(error.as_ref()),
        })?
        .to_bytes();
    Ok((status, body))
}

/// Why the admin port does not answer to us, if it is that.
fn refused(from: &str, status: StatusCode, body: &[u8], has_token: bool) -> Option<FetchError> {
    let from = from.to_owned();
    match status {
        StatusCode::UNAUTHORIZED if has_token => Some(FetchError::TokenRefused { from }),
        StatusCode::UNAUTHORIZED => Some(FetchError::TokenWanted { from }),
        StatusCode::FORBIDDEN | StatusCode::BAD_REQUEST => {
            reason(body).map(|reason| FetchError::Refused { from, reason })
        }
        _ => None,
    }
}

/// The sentence of an error that the admin port answers with.
fn reason(body: &[u8]) -> Option<String> {
    let answer: serde_json::Value = serde_json::from_slice(body).ok()?;
    Some(answer.get("error")?.get("message")?.as_str()?.to_owned())
}

fn unreached(from: &str, error: &legacy::Error) -> FetchError {
    let (from, reason) = (from.to_owned(), innermost(error));
    if error.is_connect() {
        FetchError::Connect { from, reason }
    } else {
        FetchError::Answer { from, reason }
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

fn read(from: &str, body: &[u8]) -> Result<Snapshot, FetchError> {
    #[derive(Deserialize)]
    struct Versioned {
        version: u64,
    }
    let no_snapshot = |error: serde_json::Error| FetchError::NotThat {
        from: from.into(),
        path: SNAPSHOT,
        what: "snapshot",
        reason: error.to_string(),
    };
    let Versioned { version } = serde_json::from_slice(body).map_err(no_snapshot)?;
    if version != u64::from(VERSION) {
        return Err(FetchError::Version {
            from: from.into(),
            version,
        });
    }
    serde_json::from_slice(body).map_err(no_snapshot)
}
