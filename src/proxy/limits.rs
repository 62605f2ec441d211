//! How many clients are served at the same time, and what becomes of the rest: nothing is refused, they wait in the
//! system's queue until there is room. Waiting costs no processor time, whatever it is that is wanting.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use prometheus::IntGauge;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::counters::TapCounters;

/// Most clients of one listener, unless the user says otherwise.
const MOST_CLIENTS: u64 = 16_384;

/// File descriptors that are no client's: listeners, the admin port, files.
const OWN_FILES: u64 = 128;

/// Pause after an accept that failed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Time between two lines in the log about accepts that fail.
const TOLD_AGAIN: Duration = Duration::from_secs(60);

/// Linux's numbers for "too many open files", of the process and of the system.
const NO_FILES: [i32; 2] = [24, 23];

/// Most clients of each of `listeners`, where the process may open `files` files: half of them are for clients and half
/// for what they ask of the server.
pub fn clients_for(files: u64, listeners: usize) -> usize {
    let share = files.saturating_sub(OWN_FILES) / 2 / listeners.max(1) as u64;
    share.clamp(1, MOST_CLIENTS) as usize
}

/// The way in to one listener, on one worker.
pub(super) struct Door {
    seats: Arc<Semaphore>,
    counters: TapCounters,
    /// Accepts that failed in a row.
    failed: u64,
    /// When the log last heard of it. At the limit files come and go, and accepts with them.
    told: Option<Instant>,
    /// Whether it heard of the failures that go on now.
    is_told: bool,
}

/// The place of one client, for as long as its socket is open.
pub(super) struct Seat {
    _place: OwnedSemaphorePermit,
    open: IntGauge,
}

impl Door {
    /// All workers of a listener share its seats.
    pub(super) fn new(seats: Arc<Semaphore>, counters: TapCounters) -> Self {
        Self {
            seats,
            counters,
            failed: 0,
            told: None,
            is_told: false,
        }
    }

    /// The next client, as soon as there is one and room for it.
    pub(super) async fn next(&mut self, listener: &TcpListener) -> (TcpStream, Seat) {
        let place = self.place().await;
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    self.recovered();
                    let open = self.counters.client_connections.clone();
                    open.inc();
                    let seat = Seat {
                        _place: place,
                        open,
                    };
                    return (stream, seat);
                }
                Err(error) => self.rest_after(&error).await,
            }
        }
    }

    async fn place(&self) -> OwnedSemaphorePermit {
        if let Ok(place) = Arc::clone(&self.seats).try_acquire_owned() {
            return place;
        }
        self.pauses("max_connections");
        match Arc::clone(&self.seats).acquire_owned().await {
            Ok(place) => place,
            // Nobody ever closes the semaphore.
            Err(_) => std::future::pending().await,
        }
    }

    async fn rest_after(&mut self, error: &io::Error) {
        let client_left = matches!(
            error.kind(),
            io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset
        );
        if client_left {
            return;
        }
        let no_files = error
            .raw_os_error()
            .is_some_and(|code| NO_FILES.contains(&code));
        self.pauses(if no_files { "file_limit" } else { "error" });
        let is_due = self.told.is_none_or(|told| told.elapsed() >= TOLD_AGAIN);
        if self.failed == 0 && is_due {
            (self.told, self.is_told) = (Some(Instant::now()), true);
            tracing::warn!(%error, "can not accept a connection; clients wait");
        }
        self.failed += 1;
        tokio::time::sleep(ACCEPT_PAUSE).await;
    }

    fn recovered(&mut self) {
        if std::mem::take(&mut self.is_told) {
            tracing::info!(tries = self.failed, "connections are accepted again");
        }
        self.failed = 0;
    }

    fn pauses(&self, reason: &str) {
        self.counters
            .accept_pauses
            .with_label_values(&[reason])
            .inc();
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.open.dec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_files_are_for_clients() {
        assert_eq!(clients_for(1024, 1), 448);
        assert_eq!(clients_for(1024, 4), 112);
        assert_eq!(clients_for(u64::MAX, 1), 16_384);
        assert_eq!(clients_for(20, 1), 1);
    }
}
