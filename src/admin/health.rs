//! `/livez` and `/readyz`: whether the process runs, and whether it should be sent traffic.

use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::StatusCode;
use tokio::sync::Mutex;

use super::router::AdminState;

/// How long what was found about the engine is taken for true.
const KEPT_FOR: Duration = Duration::from_secs(1);

/// How long the engine may take to accept a connection; below the 1 s that a Kubernetes probe waits by default.
const LONGEST_WAIT: Duration = Duration::from_millis(800);

/// The answer of who asks for the engine: why it can't be reached, in one line.
pub type Reached = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

type Reach = dyn Fn() -> Reached + Send + Sync;

/// Whether the tap should be sent traffic: the engine accepts connections, and the tap is not draining.
pub struct Readiness {
    engine: Option<Box<Reach>>,
    draining: AtomicBool,
    /// Locked while the engine is asked, so that many probes at once are one connection.
    found: Mutex<Option<(Instant, Result<(), String>)>>,
}

impl Readiness {
    /// Readiness that depends on the tap alone.
    pub fn alone() -> Self {
        Self::of(None)
    }

    /// Readiness that depends on the engine, too: `reach` opens a connection to it and sends no request.
    pub fn with_engine(reach: impl Fn() -> Reached + Send + Sync + 'static) -> Self {
        Self::of(Some(Box::new(reach)))
    }

    fn of(engine: Option<Box<Reach>>) -> Self {
        Self {
            engine,
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

    /// Whether the tap is ready. Opens at most one connection to the engine a second, and never sends it a request.
    ///
    /// # Errors
    ///
    /// Why it is not, in one line.
    pub async fn check(&self) -> Result<(), String> {
        if self.is_draining() {
            return Err("draining: spectap is about to stop".to_owned());
        }
        let Some(reach) = &self.engine else {
            return Ok(());
        };
        let mut found = self.found.lock().await;
        match &*found {
            Some((at, result)) if at.elapsed() < KEPT_FOR => result.clone(),
            _ => {
                let result = within_limit(reach()).await;
                *found = Some((Instant::now(), result.clone()));
                result
            }
        }
    }
}

async fn within_limit(reached: Reached) -> Result<(), String> {
    match tokio::time::timeout(LONGEST_WAIT, reached).await {
        Ok(reached) => reached,
        Err(_) => Err(format!(
            "the engine did not accept a connection within {} ms",
            LONGEST_WAIT.as_millis()
        )),
    }
}

impl fmt::Debug for Readiness {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Readiness")
            .field("asks_for_engine", &self.engine.is_some())
            .field("draining", &self.draining)
            .finish_non_exhaustive()
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
