//! `/livez` and `/readyz`: whether the process runs, and whether it should be sent traffic.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::StatusCode;
use tokio::net::TcpStream;
use tokio::sync::Mutex;

use super::router::AdminState;

/// How long what was found about the engine is taken for true.
const KEPT_FOR: Duration = Duration::from_secs(1);

/// How long the engine may take to accept a connection; below the 1 s that a Kubernetes probe waits by default.
const LONGEST_WAIT: Duration = Duration::from_millis(800);

/// Whether the tap should be sent traffic: the engine accepts connections, and the tap is not draining.
#[derive(Debug)]
pub struct Readiness {
    upstream: Option<String>,
    draining: AtomicBool,
    /// Locked while the engine is asked, so that many probes at once are one connection.
    found: Mutex<Option<(Instant, Result<(), String>)>>,
}

impl Readiness {
    /// Readiness that depends on the engine at `upstream` (`host:port`), or on the tap alone for `None`.
    pub fn new(upstream: Option<String>) -> Self {
        Self {
            upstream,
            draining: AtomicBool::new(false),
            found: Mutex::new(None),
        }
    }

    /// Turns readiness off for good: the tap is about to stop.
    pub fn start_draining(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// Whether [`Readiness::start_draining`] was called.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Whether the tap is ready. Opens at most one connection to the engine a second, and never sends it a byte.
    ///
    /// # Errors
    ///
    /// Why it is not, in one line.
    pub async fn check(&self) -> Result<(), String> {
        if self.is_draining() {
            return Err("draining: spectap is about to stop".to_owned());
        }
        let Some(upstream) = &self.upstream else {
            return Ok(());
        };
        let mut found = self.found.lock().await;
        match &*found {
            Some((at, result)) if at.elapsed() < KEPT_FOR => result.clone(),
            _ => {
                let result = connect(upstream).await;
                *found = Some((Instant::now(), result.clone()));
                result
            }
        }
    }
}

async fn connect(upstream: &str) -> Result<(), String> {
    match tokio::time::timeout(LONGEST_WAIT, TcpStream::connect(upstream)).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(format!("upstream {upstream} is not reachable: {error}")),
        Err(_) => Err(format!(
            "upstream {upstream} did not accept a connection within {} ms",
            LONGEST_WAIT.as_millis()
        )),
    }
}

pub(super) async fn live() -> &'static str {
    "alive\n"
}

pub(super) async fn ready(State(state): State<AdminState>) -> (StatusCode, String) {
    match state.readiness.check().await {
        Ok(()) => (StatusCode::OK, "ready\n".to_owned()),
        Err(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")),
    }
}
