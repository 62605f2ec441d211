//! A simulated inference server, wire-exact per engine, and demo traffic for it.
//!
//! ```text
//! socket ──► http (request) ──► vllm | tensorrt_llm | sglang | llama_cpp ──► play ──► generation ◄── acceptance
//! socket ◄── response (bytes) ◄──────────────────┘                            ├─► counters (own metrics page)
//!                                                                             └─► log (own truth)
//! ```
//!
//! It is an independent double: it shares no code with the modules that observe, so that a fault of theirs can't hide
//! behind the same fault here. `tests/architecture.rs` guards that.

mod acceptance;
mod counters;
mod faults;
mod generation;
mod http;
mod llama_cpp;
mod log;
mod play;
mod request;
mod response;
mod settings;
mod sglang;
mod state;
mod tensorrt_llm;
pub mod traffic;
mod vllm;
mod vocabulary;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use acceptance::{Acceptance, AcceptanceError, MAX_POSITIONS, Step};
pub use faults::{Faults, RefusedMember};
pub use generation::{Finish, Generation, Piece};
pub use log::{Counts, Entry, Log, Outcome, SequenceEntry, Totals};
pub use settings::{EngineKind, Level, Model, Settings};

use response::Responder;
use state::State;

/// How long responses may go on after the engine was told to stop.
const GRACE: Duration = Duration::from_secs(5);

/// Serves on a bound listener until `shutdown` is cancelled; what is on its way then has five seconds to end. Nothing
/// that clients do ends it before.
pub async fn run(listener: TcpListener, settings: Settings, log: Log, shutdown: CancellationToken) {
    let state = Arc::new(State::new(settings, log));
    let tracker = TaskTracker::new();
    let kill = CancellationToken::new();
    loop {
        let stream = tokio::select! {
            () = shutdown.cancelled() => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                // A client that left before it was accepted, or a passing lack of file descriptors.
                Err(_) => {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    continue;
                }
            },
        };
        let (state, stop, kill) = (Arc::clone(&state), shutdown.clone(), kill.clone());
        tracker.spawn(async move {
            tokio::select! {
                // A client that has gone is no fault of ours; the log says what it got.
                _ = http::serve(stream, &state, stop) => {}
                () = kill.cancelled() => {}
            }
        });
    }
    tracker.close();
    if tokio::time::timeout(GRACE, tracker.wait()).await.is_err() {
        kill.cancel();
        tracker.wait().await;
    }
}

async fn answer(
    state: &Arc<State>,
    request: http::Request,
    responder: &mut Responder,
) -> io::Result<()> {
    if let Some((status, body)) = state.settings.faults.refusal(&request) {
        let json = Some("application/json");
        let extra = response::Extra::default();
        return responder.reply(status, json, &extra, &body).await;
    }
    match state.settings.engine {
        EngineKind::Vllm => vllm::answer(state, request, responder).await,
        EngineKind::TensorrtLlm => tensorrt_llm::answer(state, request, responder).await,
        EngineKind::Sglang => sglang::answer(state, request, responder).await,
        EngineKind::LlamaCpp => llama_cpp::answer(state, request, responder).await,
    }
}

/// A simulated engine on a port of its own; for tests and the demo.
pub struct Engine;

impl Engine {
    /// Starts an engine on a free port of 127.0.0.1.
    pub async fn start(settings: Settings) -> io::Result<Running> {
        let log = match &settings.log_file {
            Some(path) => Log::with_file(path)?,
            None => Log::new(),
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let shutdown = CancellationToken::new();
        let task = tokio::spawn(run(listener, settings, log.clone(), shutdown.clone()));
        Ok(Running {
            address,
            log,
            shutdown,
            task,
        })
    }
}

/// A simulated engine that runs; dropping it stops it.
#[derive(Debug)]
pub struct Running {
    /// Where it listens.
    pub address: SocketAddr,
    /// What it has sent so far.
    pub log: Log,
    /// Cancelled, it stops.
    pub shutdown: CancellationToken,
    task: JoinHandle<()>,
}

impl Running {
    /// The base URL, such as `http://127.0.0.1:8000`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Stops it and waits until it has ended, at most about five seconds.
    pub async fn stop(mut self) {
        self.shutdown.cancel();
        // It ends by itself only by a panic, which the panic hook has told.
        let _ = (&mut self.task).await;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}
